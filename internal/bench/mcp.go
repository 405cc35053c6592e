package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"

	elfmcp "github.com/elfhost/elfhost/host/mcp"
)

// MCPPeer is the bare mcp-go server that MCP measures against.
func MCPPeer() error {
	s := server.NewMCPServer("peer", "1", server.WithToolCapabilities(true))
	s.AddTool(mcp.NewToolWithRawSchema("hello", "Greets somebody by name.", json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("Hello, " + r.GetString("name", "") + "!"), nil
		})
	s.AddTool(mcp.NewToolWithRawSchema("echo", "Echoes its arguments.", json.RawMessage(`{"type":"object"}`)),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			b, err := json.Marshal(r.GetArguments())
			return mcp.NewToolResultText(string(b)), err
		})
	return server.ServeStdio(s)
}

// MCP measures `elfhost mcp serve` against the peer, which self starts with
// the argument "peer". bin is a built elfhost, repo the source of the guests.
func MCP(ctx context.Context, w io.Writer, bin, self, repo string) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &mcpBench{w: w, bin: bin, self: self, dir: dir, env: append(os.Environ(), "ELFHOST_HOME="+filepath.Join(dir, "home"))}
	if err := b.guests(ctx, filepath.Join(repo, "examples", "hello"), 20); err != nil {
		return err
	}
	if err := b.small(); err != nil {
		return err
	}
	return errors.Join(b.calls(ctx, b.plugins[0], "hello", "a Wasm tool (standard Go)", "mcp.call.go", 1.5), b.calls(ctx, b.echo, "echo", "a Wasm tool (small guest)", "mcp.call.small", 1.3), b.starts(ctx), b.sessions(ctx), b.hanging(ctx))
}

type mcpBench struct {
	w              io.Writer
	bin, self, dir string
	env            []string
	plugins        []string
	echo           string // the small guest
}

// small writes the plugin of a few instructions.
func (b *mcpBench) small() error {
	b.echo = filepath.Join(b.dir, "echo")
	toml := "abi = \"elf/1\"\nname = \"echo\"\nversion = \"1.0.0\"\ndescription = \"Echoes.\"\nlicense = \"Apache-2.0\"\n" +
		"[[tools]]\nname = \"echo\"\ndescription = \"Echoes its arguments.\"\ninput = '{\"type\":\"object\"}'\n"
	return errors.Join(os.MkdirAll(b.echo, 0o700), os.WriteFile(filepath.Join(b.echo, "elf.toml"), []byte(toml), 0o600),
		os.WriteFile(filepath.Join(b.echo, "plugin.wasm"), echoModule(), 0o600))
}

// guests builds one plugin, and copies it under other names.
func (b *mcpBench) guests(ctx context.Context, source string, n int) error {
	wasm := filepath.Join(b.dir, "plugin.wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", wasm, ".")
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the guest: %w: %s", err, out)
	}
	code, err := os.ReadFile(wasm)
	if err != nil {
		return err
	}
	for i := range n {
		// Tools are named by the module: each copy gets a name of the same length.
		name := fmt.Sprintf("hel%02d", i)
		if i == 0 {
			name = "hello"
		}
		to := filepath.Join(b.dir, "p"+strconv.Itoa(i))
		toml := fmt.Sprintf("abi = \"elf/1\"\nname = %q\nversion = \"1.0.0\"\ndescription = \"Greets somebody by name.\"\nlicense = \"Apache-2.0\"\n", name)
		err := errors.Join(os.MkdirAll(to, 0o700), os.WriteFile(filepath.Join(to, "elf.toml"), []byte(toml), 0o600),
			os.WriteFile(filepath.Join(to, "plugin.wasm"), renamed(code, "hello", name), 0o600))
		if err != nil {
			return err
		}
		b.plugins = append(b.plugins, to)
	}
	return nil
}

// renamed changes the tool's name in the module's data, where it stands alone.
func renamed(code []byte, from, to string) []byte {
	return bytes.ReplaceAll(code, []byte(from), []byte(to))
}

func (b *mcpBench) serve(plugins int, more ...string) []string {
	return b.serveThese(b.plugins[:plugins], more...)
}

func (b *mcpBench) serveThese(plugins []string, more ...string) []string {
	args := []string{"mcp", "serve", "--dir", b.dir, "--allow", "hello", "--allow", "echo"}
	for _, p := range plugins {
		args = append(args, "--plugin", p)
	}
	return append(args, more...)
}

// open starts a server and shakes hands; the time is until its tools are listed.
func (b *mcpBench) open(ctx context.Context, argv ...string) (*client.Client, time.Duration, error) {
	began := time.Now()
	t := transport.NewStdioWithOptions(argv[0], nil, argv[1:], transport.WithCommandFunc(func(ctx context.Context, name string, _, args []string) (*exec.Cmd, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Env = b.env
		return cmd, nil
	}))
	//lint:ignore SA1019 the older era of the protocol is what this measures
	c := client.NewClient(t, client.WithLegacyProtocolOnly())
	err := c.Start(ctx)
	if err == nil {
		_, err = c.Initialize(ctx, mcp.InitializeRequest{})
	}
	if err == nil {
		_, err = c.ListTools(ctx, mcp.ListToolsRequest{})
	}
	if err != nil {
		return nil, 0, fmt.Errorf("starting %q: %w", argv, err)
	}
	return c, time.Since(began), nil
}

func hello(ctx context.Context, c *client.Client) error { return call(ctx, c, "hello") }

func call(ctx context.Context, c *client.Client, tool string) error {
	r := mcp.CallToolRequest{}
	r.Params.Name, r.Params.Arguments = tool, map[string]any{"name": "Ada"}
	res, err := c.CallTool(ctx, r)
	if err == nil && (res.IsError || len(res.Content) == 0) {
		err = fmt.Errorf("%s answered %+v", tool, res)
	}
	return err
}

// calls compares a plugin's tool with the same tool of the peer.
func (b *mcpBench) calls(ctx context.Context, plugin, tool, title, figure string, goal float64) error {
	ours, _, err := b.open(ctx, append([]string{b.bin}, b.serveThese([]string{plugin})...)...)
	if err != nil {
		return err
	}
	defer ours.Close()
	peer, _, err := b.open(ctx, b.self, "peer")
	if err != nil {
		return err
	}
	defer peer.Close()
	for range 20 { // from a warm cache
		err = errors.Join(err, call(ctx, ours, tool), call(ctx, peer, tool))
	}
	if err != nil {
		return err
	}
	t := Times(15, 100, func() { err = errors.Join(err, call(ctx, ours, tool)) }, func() { err = errors.Join(err, call(ctx, peer, tool)) })
	fmt.Fprintf(b.w, "%s over stdio %v, a bare mcp-go server %v\n", title, t[0], t[1])
	Figure(b.w, figure, float64(t[0])/float64(t[1]), goal)
	return err
}

func (b *mcpBench) starts(ctx context.Context) error {
	var ours, peer []time.Duration
	for i := range 6 {
		a, ta, err := b.open(ctx, append([]string{b.bin}, b.serve(len(b.plugins))...)...)
		if err != nil {
			return err
		}
		p, tp, err := b.open(ctx, b.self, "peer")
		if err != nil {
			return errors.Join(err, a.Close())
		}
		_, _ = a.Close(), p.Close()
		if i > 0 { // the first one fills the cache
			ours, peer = append(ours, ta), append(peer, tp)
		}
	}
	slices.Sort(ours)
	slices.Sort(peer)
	fmt.Fprintf(b.w, "start to the first list of tools: %v with %d plugins, %v bare\n", ours[2], len(b.plugins), peer[2])
	Figure(b.w, "mcp.start", float64(ours[2])/float64(peer[2]), 3)
	return nil
}

// sessions: 50 clients at once, 200 calls each.
func (b *mcpBench) sessions(ctx context.Context) error {
	const clients, calls = 50, 200
	cmd := exec.CommandContext(ctx, b.bin, b.serve(1, "--http", "127.0.0.1:0", "--token-env", "BENCH_TOKEN")...)
	cmd.Env = append(b.env, "BENCH_TOKEN=0123456789abcdef0123")
	said, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait() }()
	url, err := address(said)
	if err != nil {
		return err
	}
	open := func() (*client.Client, error) {
		t, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer 0123456789abcdef0123"}),
			transport.WithHTTPBasicClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}))
		if err != nil {
			return nil, err
		}
		//lint:ignore SA1019 the older era of the protocol is what this measures
		c := client.NewClient(t, client.WithLegacyProtocolOnly())
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
		_, err = c.Initialize(ctx, mcp.InitializeRequest{})
		return c, err
	}
	round := func() (failed int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		for range clients {
			wg.Go(func() {
				bad := 0
				c, err := open()
				if err != nil {
					bad = calls
				}
				for i := 0; i < calls && bad < calls; i++ {
					if hello(ctx, c) != nil {
						bad++
					}
				}
				if c != nil {
					_ = c.Close()
				}
				mu.Lock()
				failed += bad
				mu.Unlock()
			})
		}
		wg.Wait()
		return failed
	}
	began := time.Now()
	failed := round()
	before := residentOf(cmd.Process.Pid)
	took := time.Since(began)
	failed += round()
	after := residentOf(cmd.Process.Pid)
	fmt.Fprintf(b.w, "%d sessions of %d calls in %v; resident %d MiB, then %d MiB\n", clients, calls, took, before>>20, after>>20)
	Figure(b.w, "mcp.sessions.errors", float64(failed), 0)
	if before > 0 {
		Figure(b.w, "mcp.sessions.memory", float64(after)/float64(before), 1.15)
	}
	return nil
}

var served = regexp.MustCompile(`serving (http://\S+)`)

// address reads where the server listens, and goes on reading.
func address(r io.Reader) (string, error) {
	var text strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		text.Write(buf[:n])
		if m := served.FindStringSubmatch(text.String()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, r) }()
			return m[1], nil
		}
		if err != nil {
			return "", fmt.Errorf("the server did not start: %s", text.String())
		}
	}
}

// residentOf is what a process holds in memory; 0 where that cannot be read.
func residentOf(pid int) int64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(b))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// hanging: of 20 servers 3 never answer. What the first turn waits is what
// Start takes.
func (b *mcpBench) hanging(ctx context.Context) error {
	c := elfmcp.NewClient(elfmcp.Options{Runner: &reach.Runner{}})
	for i := range 20 {
		s := elfmcp.Server{Name: fmt.Sprintf("s%d", i), Command: b.self, Args: []string{"peer"}, Dir: b.dir, Rights: policy.Rights{Grants: policy.Unlimited()}, Startup: 10 * time.Second}
		if i < 3 {
			s.Args = []string{"hang"}
		}
		if err := c.Add(s); err != nil {
			return err
		}
	}
	began := time.Now()
	c.Start()
	took := time.Since(began)
	ready := 0
	for time.Since(began) < 9*time.Second && ready < 17 {
		time.Sleep(20 * time.Millisecond)
		ready = 0
		for _, s := range c.Status() {
			if s.State == "ready" {
				ready++
			}
		}
	}
	fmt.Fprintf(b.w, "20 servers, 3 hang: Start took %v, %d were ready after %v\n", took, ready, time.Since(began).Round(time.Millisecond))
	Figure(b.w, "mcp.start.delay.ms", float64(took.Microseconds())/1000, 50)
	Least(b.w, "mcp.start.ready", float64(ready), 17)
	closing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return c.Close(closing)
}
