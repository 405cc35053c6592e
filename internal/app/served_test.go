package app_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
)

// reporting is a module, in hexadecimal, that reports progress once at each
// call, and then answers "done" or, if it spins, works for ever.
func reporting(spins bool) string {
	section := func(id byte, body ...byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	name := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	header := `{"done":1,"total":2,"message":"half"}`
	frame := append([]byte{byte(len(header)), 0, 0, 0}, header...)
	const at, reply = 16, 63 // "done" with its kind, behind the frame
	code := []byte{0, 0x41, at, 0x41, byte(len(frame)), 0x10, 0, 0x1a}
	if spins {
		code = append(code, 0x03, 0x40, 0x0c, 0, 0x0b)
	}
	code = append(code, 0x42)
	for v := uint64(reply)<<32 | 5; ; v >>= 7 { // signed LEB128; the number is small enough for a last byte
		if v < 0x40 {
			code = append(code, byte(v))
			break
		}
		code = append(code, byte(v&0x7f)|0x80)
	}
	code = append(code, 0x0b)
	alloc := []byte{0, 0x41, 0x80, 0x20, 0x0b}
	return hex.EncodeToString(slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 3, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 4, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 2, 0x7f, 0x7f, 1, 0x7f),
		section(2, slices.Concat([]byte{1}, name("elf:progress"), name("report"), []byte{0, 2})...),
		section(3, 2, 0, 1),
		section(5, 1, 0, 1),
		section(7, slices.Concat([]byte{3}, name("memory"), []byte{2, 0}, name("elf_alloc"), []byte{0, 1}, name("elf_call"), []byte{0, 2})...),
		section(10, slices.Concat([]byte{2, byte(len(alloc))}, alloc, []byte{byte(len(code))}, code)...),
		section(11, slices.Concat([]byte{2, 0, 0x41, at, 0x0b, byte(len(frame))}, frame, []byte{0, 0x41, reply, 0x0b, 5, 0}, []byte("done"))...),
	))
}

// shown is a session that is served, as a client sees it.
type shown struct {
	*client.Client
	receipts chan abi.Receipt

	mu      sync.Mutex
	changed *sync.Cond
	told    []string // methods of notifications
}

// show shows a session to a client, as `elfhost mcp serve` does.
func show(t *testing.T, a *app.App, overHTTP bool, opts ...client.ClientOption) *shown {
	t.Helper()
	s := &shown{receipts: make(chan abi.Receipt, 10)}
	s.changed = sync.NewCond(&s.mu)
	b := mcp.NewBridge(mcp.ServeOptions{
		Registry: a.Registry, Version: "1", Session: a.Session, Changed: a.OffersChanged, Powerless: a.Powerless,
		Offers:  func(ctx context.Context) ([]mcp.Prompt, []mcp.Resource) { return a.Prompts(ctx), a.Resources(ctx) },
		Prepare: func(c *host.Call) { c.Receipt = func(r abi.Receipt) { s.receipts <- r } },
	})
	t.Cleanup(b.Close)
	//lint:ignore SA1019 notifications outside of a request are the older era's
	opts = append(opts, client.WithLegacyProtocolOnly())
	ctx, cancel := context.WithCancel(context.Background())
	if overHTTP {
		h, err := b.Handler(mcp.HTTPOptions{Token: "letmein"})
		if err != nil {
			t.Fatal(err)
		}
		web := httptest.NewServer(h)
		t.Cleanup(web.Close)
		//lint:ignore SA1019 the older era of the protocol is what this measures
		tr, err := transport.NewStreamableHTTP(web.URL+"/mcp", transport.WithContinuousListening(), transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer letmein"}))
		if err != nil {
			t.Fatal(err)
		}
		s.Client = client.NewClient(tr, opts...)
	} else {
		in, toServer := io.Pipe()
		fromServer, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- b.Serve(ctx, in, out) }()
		t.Cleanup(func() { toServer.Close(); fromServer.Close(); <-done })
		s.Client = client.NewClient(transport.NewIO(fromServer, toServer, io.NopCloser(&bytes.Buffer{})), opts...)
	}
	t.Cleanup(func() { cancel(); _ = s.Close() })
	if err := s.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Initialize(ctx, mcpgo.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	s.OnNotification(func(n mcpgo.JSONRPCNotification) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, n.Method)
		s.changed.Broadcast()
	})
	return s
}

// until waits for a notification, and forgets those so far.
func (s *shown) until(t *testing.T, method string) {
	t.Helper()
	late := time.AfterFunc(patience, func() { s.mu.Lock(); defer s.mu.Unlock(); s.told = append(s.told, "late"); s.changed.Broadcast() })
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !slices.Contains(s.told, method) {
		if slices.Contains(s.told, "late") {
			t.Fatalf("never: %s", method)
		}
		s.changed.Wait()
	}
	s.told = nil
}

func (s *shown) tools(t *testing.T) (names []string) {
	t.Helper()
	list, err := s.ListTools(t.Context(), mcpgo.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list.Tools {
		names = append(names, l.Name)
	}
	return names
}

func plea(tool string) (req mcpgo.CallToolRequest) {
	req.Params.Name, req.Params.Meta = tool, &mcpgo.Meta{ProgressToken: "p"}
	return req
}

const progressed = "notifications/progress"

// Progress of a guest comes before its answer; a cancellation ends the guest
// itself, not only the wait for it.
func TestServedGuests(t *testing.T) {
	for over, overHTTP := range map[string]bool{"stdio": false, "HTTP": true} {
		t.Run(over, func(t *testing.T) {
			m := newMachine(t)
			a := m.open("report", "spin")
			m.install(a, m.folder("report", reporting(false)))
			m.install(a, m.folder("spin", reporting(true)))
			s := show(t, a, overHTTP)
			res, err := s.CallTool(t.Context(), plea("report"))
			if err != nil || res.IsError || len(res.Content) != 1 || res.Content[0].(mcpgo.TextContent).Text != "done" {
				t.Fatalf("%+v, %v", res, err)
			}
			s.mu.Lock()
			if !slices.Contains(s.told, progressed) {
				t.Error("the answer came before the progress")
			}
			s.told = nil
			s.mu.Unlock()
			<-s.receipts

			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, plea("spin"))
				ended <- err
			}()
			s.until(t, progressed) // the guest is at work
			select {
			case r := <-s.receipts:
				t.Fatalf("it ended by itself: %+v", r)
			default:
			}
			cancel()
			if err := <-ended; err == nil {
				t.Error("the cancelled call has an answer")
			}
			select {
			case r := <-s.receipts: // a guest has its receipt when it has ended
				if r.Tool != "spin" || r.Wall > 50*time.Second { // its own limit is a minute
					t.Errorf("the guest ended with %+v", r)
				}
			case <-time.After(patience):
				t.Error("the guest goes on")
			}
			if res, err := s.CallTool(t.Context(), plea("report")); err != nil || res.IsError {
				t.Errorf("the next call: %+v, %v", res, err)
			}
		})
	}
}

// What is installed, loses its rights and gets some again, and what goes, is told
// to clients that listen. They see no more than --tools names.
func TestServedToolsFollow(t *testing.T) {
	const changed = "notifications/tools/list_changed"
	m := newMachine(t)
	other := m.open()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	only, err := app.Open(t.Context(), app.Options{Dir: m.dir, Paths: &m.paths, Env: func(string) string { return "" }, Tools: []string{"Read"}, Compiler: self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { only.Close(context.Background()) })
	few := show(t, only, false)
	for over, overHTTP := range map[string]bool{"stdio": false, "HTTP": true} {
		t.Run(over, func(t *testing.T) {
			name := "say" + strings.ToLower(over)
			s := show(t, m.open(), overHTTP)
			if got := s.tools(t); slices.Contains(got, name) || !slices.Contains(got, "Read") {
				t.Fatalf("before: %q", got)
			}
			m.install(other, m.folder(name, reporting(false)))
			s.until(t, changed)
			if got := s.tools(t); !slices.Contains(got, name) {
				t.Errorf("installed: %q", got)
			}
			if gone, err := other.RevokePackage(t.Context(), name, nil); err != nil || len(gone) != 1 {
				t.Fatalf("%q, %v", gone, err)
			}
			s.until(t, changed)
			if got := s.tools(t); slices.Contains(got, name) {
				t.Errorf("nobody is there to ask, and what holds nothing is listed: %q", got)
			}
			grant := policy.Grant{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}
			if err := other.Remember(m.paths.ProjectGrants(m.dir), "project", host.Rule{Plugin: name, Grant: &grant}); err != nil {
				t.Fatal(err)
			}
			s.until(t, changed)
			if got := s.tools(t); !slices.Contains(got, name) {
				t.Errorf("granted in the project: %q", got)
			}
			if err := other.RemovePackage(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			s.until(t, changed)
			if got := s.tools(t); slices.Contains(got, name) {
				t.Errorf("removed: %q", got)
			}
		})
	}
	if got := few.tools(t); !slices.Equal(got, []string{"Read"}) {
		t.Errorf("--tools Read shows %q", got)
	}
	if res, err := few.CallTool(t.Context(), plea("Write")); err == nil && !res.IsError {
		t.Errorf("--tools Read let Write through: %+v", res)
	}
}

// A plugin that its author names stays listed, whatever it holds.
func TestPowerlessPlugins(t *testing.T) {
	m := newMachine(t)
	installed, mine := m.folder("store", reporting(false)), m.folder("mine", reporting(false))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Dir: m.dir, Paths: &m.paths, Env: func(string) string { return "" }, Plugins: []string{mine.Location}, Compiler: self})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(context.Background()) })
	m.install(a, installed)
	if _, err := a.RevokePackage(t.Context(), "store", nil); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"store": true, "mine": false, "Read": false} {
		x, ok := a.Registry.Get(name)
		if !ok || a.Powerless(x) != want {
			t.Errorf("%s: there %v, powerless %v", name, ok, !want)
		}
	}
}
