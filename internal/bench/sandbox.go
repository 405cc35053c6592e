package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
)

// Verbs by which the program of the benchmark starts its peers.
const (
	MCPVerb  = "__mcp"
	OnceVerb = "__once"
)

// payload is 128 bytes of JSON.
var payload = []byte(`{"text":"` + strings.Repeat("x", 117) + `"}`)

// sandboxBench holds what is measured and its peers.
type sandboxBench struct {
	w     io.Writer
	dir   string
	self  string
	elf   []byte // the standard-Go guest
	other []byte // the same in Extism's ABI
	errs  []error
}

// Sandbox measures isolated calls against their peers, deadlines enforced.
func Sandbox(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &sandboxBench{w: w, dir: dir}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.elf, err = b.build(ctx, "elf"); err != nil {
		return err
	}
	if b.other, err = b.build(ctx, "extism"); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s/%s, %d processors, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	for _, part := range []func(context.Context) error{b.calls, b.throughput, b.deadlines, b.memory, b.loading} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return errors.Join(b.errs...)
}

func (b *sandboxBench) build(ctx context.Context, name string) ([]byte, error) {
	out := filepath.Join(b.dir, name+".wasm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-o", out, "github.com/elfhost/elfhost/internal/bench/sandbox/guests/"+name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the guest %s: %w: %s", name, err, msg)
	}
	return os.ReadFile(out)
}

// load loads a guest of ours; the cache is the benchmark's.
func (b *sandboxBench) load(ctx context.Context, wasm []byte, l abi.Limits, tools ...string) (*sandbox.Plugin, error) {
	loader := &sandbox.Loader{Dir: filepath.Join(b.dir, "cache"), Compiler: b.self}
	return b.loadWith(ctx, loader, wasm, l, tools...)
}

func (b *sandboxBench) loadWith(ctx context.Context, loader *sandbox.Loader, wasm []byte, l abi.Limits, tools ...string) (*sandbox.Plugin, error) {
	m := abi.Manifest{ABI: abi.Version, Name: "bench", Limits: l}
	for _, t := range tools {
		m.Tools = append(m.Tools, abi.ToolDecl{Name: t, Description: t, Input: json.RawMessage(`{"type":"object"}`)})
	}
	sum := sha256.Sum256(wasm)
	return loader.Load(ctx, sandbox.Package{Manifest: m, Digest: hex.EncodeToString(sum[:]), Source: host.Bundled,
		Wasm: func() ([]byte, error) { return wasm, nil }})
}

// do calls the first tool of a plugin.
func (b *sandboxBench) do(ctx context.Context, p *sandbox.Plugin, args []byte) {
	r, err := p.Tools()[0].Call(ctx, host.Call{Args: args})
	if err == nil && (r.IsError || len(r.Content) == 0) {
		err = fmt.Errorf("the guest says %q", r.Text())
	}
	b.fail(err)
}

func (b *sandboxBench) fail(err error) {
	if err != nil && len(b.errs) < 5 {
		b.errs = append(b.errs, err)
	}
}

func (b *sandboxBench) row(name string, d time.Duration) { fmt.Fprintf(b.w, "%-44s %12v\n", name, d) }

// calls compares one call with that of each peer.
func (b *sandboxBench) calls(ctx context.Context) error {
	std, err := b.load(ctx, b.elf, abi.Limits{}, "echo")
	if err != nil {
		return err
	}
	defer std.Close(ctx)
	small, err := b.load(ctx, echoModule(), abi.Limits{Output: 4 << 20}, "echo")
	if err != nil {
		return err
	}
	defer small.Close(ctx)
	mcp, err := startMCP(ctx, b.self)
	if err != nil {
		return err
	}
	defer mcp.Close()
	ext, err := newExtism(ctx, b.other)
	if err != nil {
		return err
	}
	defer ext.close(ctx)
	raw, err := newRaw(ctx, b.elf, filepath.Join(b.dir, "raw"), false)
	if err != nil {
		return err
	}
	defer raw.close(ctx)
	stops, err := newRaw(ctx, b.elf, filepath.Join(b.dir, "stops"), true)
	if err != nil {
		return err
	}
	defer stops.close(ctx)
	mega := bytes.Repeat([]byte("x"), 1<<20)
	t := Times(25, 20,
		func() { _, err := Once1(payload); b.fail(err) },
		func() { b.do(ctx, std, payload) },
		func() { b.do(ctx, small, payload) },
		func() { b.fail(mcp.call(ctx)) },
		func() { b.fail(ext.live(ctx, "echo", payload)) },
		func() { b.fail(raw.live(ctx, payload)) },
		func() { b.fail(stops.timed(ctx, payload)) },
	)
	u := Times(7, 5,
		func() { b.fail(ext.fresh(ctx, "echo", payload)) },
		func() { b.fail(raw.fresh(ctx, payload)) },
		func() { b.fail(b.process(ctx)) },
		func() { b.do(ctx, small, mega) },
		func() { b.fail(ext.live(ctx, "copy", mega)) },
	)
	for i, name := range []string{"in process, Go", "isolated, standard-Go guest", "isolated, small guest", "live MCP server over stdio", "Extism, live instance", "raw wazero, live instance", "raw wazero, live, WithCloseOnContextDone"} {
		b.row(name, t[i])
	}
	for i, name := range []string{"Extism, fresh instance with timeout", "raw wazero, fresh instance", "a process per call", "isolated, 1 MiB in and out", "Extism live, 1 MiB in and out"} {
		b.row(name, u[i])
	}
	ratio := func(x, y time.Duration) float64 { return float64(x) / float64(y) }
	Figure(b.w, "sandbox.go_vs_mcp", ratio(t[1], t[3]), 0.40)
	Figure(b.w, "sandbox.go_vs_extism_fresh", ratio(t[1], u[0]), 1.0/80)
	Figure(b.w, "sandbox.small_vs_mcp", ratio(t[2], t[3]), 1.0/20)
	Figure(b.w, "sandbox.mib_vs_extism_live", ratio(u[3], u[4]), 1.0/40)
	return nil
}

// Once1 is the work of the guest, natively.
func Once1(args []byte) (string, error) {
	var in struct {
		Text string `json:"text"`
	}
	err := json.Unmarshal(args, &in)
	return in.Text, err
}

// Once is a tool that is a process of its own.
func Once(r io.Reader, w io.Writer) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s, err := Once1(b)
	if err == nil {
		_, err = io.WriteString(w, s)
	}
	return err
}

func (b *sandboxBench) process(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, b.self, OnceVerb)
	cmd.Stdin = bytes.NewReader(payload)
	out, err := cmd.Output()
	if err == nil && len(out) != 117 {
		err = fmt.Errorf("the process answered %d bytes", len(out))
	}
	return err
}

// throughput compares 64 callers with raw wazero's fresh instances.
func (b *sandboxBench) throughput(ctx context.Context) error {
	std, err := b.load(ctx, b.elf, abi.Limits{Parallel: runtime.NumCPU()}, "echo")
	if err != nil {
		return err
	}
	defer std.Close(ctx)
	raw, err := newRaw(ctx, b.elf, filepath.Join(b.dir, "raw"), false)
	if err != nil {
		return err
	}
	defer raw.close(ctx)
	var failed atomic.Pointer[error] // a rate of calls that fail says nothing
	rate := func(call func() error) float64 {
		var n atomic.Int64
		var wg sync.WaitGroup
		start := time.Now()
		for range 64 {
			wg.Go(func() {
				for time.Since(start) < 2*time.Second {
					if err := call(); err != nil {
						failed.Store(&err)
						return
					}
					n.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(n.Load()) / time.Since(start).Seconds()
	}
	ours := rate(func() error { _, err := std.Tools()[0].Call(ctx, host.Call{Args: payload}); return err })
	theirs := rate(func() error { return raw.fresh(ctx, payload) })
	if err := failed.Load(); err != nil {
		return fmt.Errorf("64 callers: %w", *err)
	}
	fmt.Fprintf(b.w, "isolated calls a second, 64 callers: %.0f, raw wazero fresh: %.0f\n", ours, theirs)
	Least(b.w, "sandbox.throughput_vs_wazero_fresh", ours/theirs, 35)
	return nil
}

// deadlines measures how late a guest ends that never would, and how long it
// keeps the collector of the host waiting.
func (b *sandboxBench) deadlines(ctx context.Context) error {
	const limit = 100 * time.Millisecond
	spin, err := b.load(ctx, b.elf, abi.Limits{Time: limit}, "spin")
	if err != nil {
		return err
	}
	defer spin.Close(ctx)
	if err := spin.Warm(ctx, nil); err != nil {
		return err
	}
	deep, err := b.load(ctx, deepModule(), abi.Limits{Time: limit}, "deep")
	if err != nil {
		return err
	}
	defer deep.Close(ctx)
	if err := deep.Warm(ctx, nil); err != nil {
		return err
	}
	worst := func(p *sandbox.Plugin) (late time.Duration, err error) {
		for range 5 {
			start := time.Now()
			_, err := p.Tools()[0].Call(ctx, host.Call{})
			if !errors.Is(err, abi.ErrDeadline) {
				return 0, fmt.Errorf("it ended with %v", err)
			}
			late = max(late, time.Since(start)-limit)
		}
		return late, nil
	}
	for name, p := range map[string]*sandbox.Plugin{"loop": spin, "recursion": deep} {
		late, err := worst(p)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		Figure(b.w, "sandbox."+name+"_late_ms", float64(late)/1e6, 3)
	}
	old := runtime.GOMAXPROCS(2)
	defer runtime.GOMAXPROCS(old)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { spin.Tools()[0].Call(ctx, host.Call{}) })
	}
	var pause time.Duration
	for end := time.Now().Add(limit / 2); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var m runtime.MemStats
		start := time.Now()
		runtime.ReadMemStats(&m) // stops the world
		pause = max(pause, time.Since(start))
	}
	wg.Wait()
	Figure(b.w, "sandbox.stop_the_world_ms", float64(pause)/1e6, 5)
	return nil
}

// memory measures what each further idle instance costs.
func (b *sandboxBench) memory(ctx context.Context) error {
	const n = 64
	p, err := b.load(ctx, b.elf, abi.Limits{Parallel: n}, "echo")
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	if err := p.Warm(ctx, nil); err != nil {
		return err
	}
	before := resident()
	if before == 0 {
		fmt.Fprintln(b.w, "memory of idle instances: this system does not tell")
		return nil
	}
	if err := p.Fill(ctx, n); err != nil {
		return err
	}
	Figure(b.w, "sandbox.idle_instance_mib", float64(resident()-before)/n/(1<<20), 0.12)
	return nil
}

// resident is the private memory of the process in bytes, 0 if unknown.
func resident() int64 {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	var sum int64
	for line := range strings.Lines(string(b)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "Private_Dirty: %d kB", &kb); n == 1 {
			sum += kb << 10
		}
		if n, _ := fmt.Sscanf(line, "Private_Clean: %d kB", &kb); n == 1 {
			sum += kb << 10
		}
	}
	return sum
}

// loading compares a start from the cache with the first one.
func (b *sandboxBench) loading(ctx context.Context) error {
	open := func(dir string) (time.Duration, error) {
		start := time.Now()
		p, err := b.loadWith(ctx, &sandbox.Loader{Dir: dir, Compiler: b.self}, b.elf, abi.Limits{}, "echo")
		if err != nil {
			return 0, err
		}
		err = p.Warm(ctx, nil)
		took := time.Since(start)
		return took, errors.Join(err, p.Close(ctx))
	}
	dir := filepath.Join(b.dir, "cold")
	first, err := open(dir)
	if err != nil {
		return err
	}
	best := time.Hour
	for range 5 {
		again, err := open(dir)
		if err != nil {
			return err
		}
		best = min(best, again)
	}
	b.row("first load, compiled", first)
	b.row("load from the cache", best)
	Figure(b.w, "sandbox.cached_load_vs_first", float64(best)/float64(first), 1.0/45)
	return nil
}
