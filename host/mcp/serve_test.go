// Over 500 lines: both eras of the protocol run through the same bridge.

package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// tool is a builtin that does what its function does.
type tool struct {
	name string
	kind host.Kind
	do   func(context.Context, host.Call) (abi.Result, error)
}

func (t tool) Spec() host.Spec {
	return host.Spec{Name: t.name, Description: "does " + t.name, Kind: t.kind, Origin: host.Origin{Source: host.Builtin},
		Input: json.RawMessage(`{"type":"object","properties":{"q":{"$ref":"#/$defs/Q"}},"$defs":{"Q":{"type":"string"}}}`)}
}

func (t tool) Call(ctx context.Context, c host.Call) (abi.Result, error) { return t.do(ctx, c) }

func text(s string) func(context.Context, host.Call) (abi.Result, error) {
	return func(context.Context, host.Call) (abi.Result, error) { return abi.Text(s), nil }
}

// bridge serves Read (safe), Write (asked about) and what else is given.
func bridge(t *testing.T, more ...host.Tool) (*Bridge, *host.Registry) {
	t.Helper()
	ask := &Asker{Show: func(a host.Ask) (Question, bool) {
		q := Question{Text: a.Spec.Name + " " + string(a.Call.Args), Choices: []string{"allow once", "no"}, Answers: []host.Answer{{Allow: true, Scope: host.Once}, {}}, Default: 1}
		return q, true
	}}
	reg := host.New(host.Options{Gate: &host.Gate{Approver: ask}})
	if err := reg.Add(append([]host.Tool{tool{"Read", host.KindRead, text("read")}, tool{"Write", host.KindEdit, text("written")}}, more...)...); err != nil {
		t.Fatal(err)
	}
	return bridgeOf(t, ServeOptions{Registry: reg}), reg
}

func bridgeOf(t *testing.T, o ServeOptions) *Bridge {
	t.Helper()
	o.Version, o.Secret = "1", "s3cret"
	b := NewBridge(o)
	t.Cleanup(b.Close)
	return b
}

// serveStdio runs the bridge on pipes, and a client of mcp-go on their other ends.
func serveStdio(t *testing.T, b *Bridge, opts ...client.ClientOption) *client.Client {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, in, out) }()
	c := client.NewClient(transport.NewIO(fromServer, toServer, io.NopCloser(strings.NewReader(""))), opts...)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		fromServer.Close()
		_ = c.Close()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Error("Serve did not end")
		}
	})
	return c
}

func callTool(t *testing.T, c *client.Client, name, args string) *mcp.CallToolResult {
	t.Helper()
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.RawArguments = name, json.RawMessage(args)
	res, err := c.CallTool(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func textOf(r *mcp.CallToolResult) string {
	var b strings.Builder
	for _, c := range r.Content {
		if tc, ok := c.(mcp.TextContent); ok {
			b.WriteString(tc.Text + "\n")
		}
	}
	return b.String()
}

type person func(mcp.ElicitationRequest) mcp.ElicitationResponse

func (p person) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	return &mcp.ElicitationResult{ElicitationResponse: p(r)}, nil
}

func TestServeStdio(t *testing.T) {
	for _, era := range []struct {
		name string
		opts []client.ClientOption
		//lint:ignore SA1019 the older era of the protocol is what this measures
	}{{"2026-07-28", nil}, {"2025-11-25", []client.ClientOption{client.WithLegacyProtocolOnly()}}} {
		t.Run(era.name, func(t *testing.T) {
			b, _ := bridge(t)
			answer := "1"
			asked := 0
			c := serveStdio(t, b, append(era.opts, client.WithElicitationHandler(person(func(r mcp.ElicitationRequest) mcp.ElicitationResponse {
				asked++
				return mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": answer}}
			})))...)
			if c.ProtocolVersion() != era.name {
				t.Fatalf("speaks %s", c.ProtocolVersion())
			}
			list, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
			if err != nil || len(list.Tools) != 2 || list.Tools[0].InputSchema.Defs == nil || !*list.Tools[0].Annotations.ReadOnlyHint || *list.Tools[1].Annotations.ReadOnlyHint {
				t.Fatalf("%v %+v", err, list)
			}
			if r := callTool(t, c, "Read", `{"q":"x"}`); r.IsError || textOf(r) != "read\n" || asked != 0 {
				t.Fatalf("%+v", r)
			}
			if r := callTool(t, c, "Write", `{"q":"x"}`); r.IsError || textOf(r) != "written\n" || asked != 1 {
				t.Fatalf("asked %d: %s", asked, textOf(r))
			}
			for _, answer = range []string{"2", "3", "01", ""} {
				if r := callTool(t, c, "Write", `{"q":"y"}`); !r.IsError {
					t.Fatalf("the answer %q allowed it", answer)
				}
			}
		})
	}
}

// A client that cannot ask its person is told what would allow the call.
func TestServeWithoutElicitation(t *testing.T) {
	b, _ := bridge(t)
	c := serveStdio(t, b)
	r := callTool(t, c, "Write", `{}`)
	if !r.IsError || !strings.Contains(textOf(r), "elicitation") || !strings.Contains(textOf(r), "can allow it with: ") {
		t.Fatalf("%s", textOf(r))
	}
}

// MB-07: what an agent may not call, a client behind the bridge may not either.
func TestMB07CapabilityInherit(t *testing.T) {
	called := false
	full := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	_ = full.Add(tool{"Read", host.KindRead, text("read")}, tool{"Secret", host.KindOther, func(context.Context, host.Call) (abi.Result, error) { called = true; return abi.Text("x"), nil }})
	b := NewBridge(ServeOptions{Registry: full.Filter(func(s host.Spec) bool { return s.Name == "Read" })})
	t.Cleanup(b.Close)
	c := serveStdio(t, b)
	req := mcp.CallToolRequest{}
	req.Params.Name = "Secret"
	if r, err := c.CallTool(context.Background(), req); err == nil && !r.IsError || called {
		t.Fatalf("%v %v, called %v", r, err, called)
	}
	// And a rule of the policy decides as for everybody.
	deny, err := policy.ParsePattern("Read")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.NewPolicy(policy.Layer{Kind: policy.System, File: "policy.toml", Tools: []policy.Rule{{Pattern: deny, Effect: policy.Deny}}})
	if err != nil {
		t.Fatal(err)
	}
	b2 := NewBridge(ServeOptions{Registry: full.Under(&host.Gate{Policy: p, Mode: host.ModeAuto})})
	t.Cleanup(b2.Close)
	if r := callTool(t, serveStdio(t, b2), "Read", `{}`); !r.IsError {
		t.Fatalf("%s", textOf(r))
	}
}

// Progress comes before its result, cancellation reaches the tool, and new
// tools are announced.
func TestServeLive(t *testing.T) {
	started, stopped := make(chan struct{}), make(chan struct{})
	b, reg := bridge(t,
		tool{"search", host.KindSearch, func(_ context.Context, c host.Call) (abi.Result, error) {
			for i := range 50 {
				c.Progress(abi.Progress{Message: "step", Done: float64(i), Total: 50})
			}
			return abi.Text("found"), nil
		}},
		tool{"rg", host.KindSearch, func(ctx context.Context, _ host.Call) (abi.Result, error) {
			close(started)
			<-ctx.Done()
			close(stopped)
			return abi.Result{}, ctx.Err()
		}})
	//lint:ignore SA1019 the older era of the protocol is what this measures
	c := serveStdio(t, b, client.WithLegacyProtocolOnly())
	var mu sync.Mutex
	var seen []string
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, n.Method)
	})
	count := func(m string) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range seen {
			if s == m {
				n++
			}
		}
		return n
	}
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.Meta = "search", &mcp.Meta{ProgressToken: "p"}
	if _, err := c.CallTool(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	if n := count("notifications/progress"); n != 50 {
		t.Errorf("%d of 50 steps came before the result", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-started; cancel() }()
	req.Params.Name = "rg"
	_, _ = c.CallTool(ctx, req)
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the tool was not cancelled")
	}
	before := count("notifications/tools/list_changed")
	if err := reg.Add(tool{"Glob", host.KindSearch, text("x")}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return count("notifications/tools/list_changed") > before })
	list, err := c.ListTools(context.Background(), mcp.ListToolsRequest{})
	if err != nil || len(list.Tools) != 5 {
		t.Fatalf("%v, %d tools", err, len(list.Tools))
	}
}

// The protocol wants progress to grow, whatever a tool reports.
func TestProgressGrows(t *testing.T) {
	b, _ := bridge(t, tool{"search", host.KindSearch, func(_ context.Context, c host.Call) (abi.Result, error) {
		for _, n := range []float64{2, 1, 0, 0, 3} {
			c.Progress(abi.Progress{Done: n})
		}
		return abi.Text("found"), nil
	}})
	//lint:ignore SA1019 the older era of the protocol is what this measures
	c := serveStdio(t, b, client.WithLegacyProtocolOnly())
	seen := make(chan float64, 10)
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		if at, ok := n.Params.AdditionalFields["progress"].(float64); ok {
			seen <- at
		}
	})
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.Meta = "search", &mcp.Meta{ProgressToken: "p"}
	if _, err := c.CallTool(context.Background(), req); err != nil {
		t.Fatal(err)
	}
	last := -1.0
	for range 5 {
		if at := <-seen; at <= last {
			t.Errorf("%v follows %v", at, last)
		} else {
			last = at
		}
	}
}

// What a client sends that is no message costs an error, and nothing else.
func TestServeHostileLines(t *testing.T) {
	b, _ := bridge(t)
	in, feed := io.Pipe()
	got, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- b.Serve(context.Background(), in, out) }()
	lines := bufio.NewScanner(got)
	for _, bad := range []string{"rubbish", "[]", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, strings.Repeat("[", 10_000), `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, `"x"`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`} {
		_, _ = io.WriteString(feed, bad+"\n")
		if !lines.Scan() || !strings.Contains(lines.Text(), `"error"`) {
			t.Errorf("%.60q: %.200s", bad, lines.Text())
		}
	}
	_, _ = io.WriteString(feed, `{"jsonrpc":"2.0","id":7,"method":"ping"}`+"\n")
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":7`) {
		t.Fatalf("%s", lines.Text())
	}
	go func() { _, _ = feed.Write(bytes.Repeat([]byte("x"), maxMessage+1<<20)) }()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Fatalf("%v", err)
	}
	feed.Close()
}

// web is a bridge over HTTP.
func web(t *testing.T, b *Bridge) *httptest.Server {
	t.Helper()
	h, err := b.Handler(HTTPOptions{Token: "letmein"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func post(t *testing.T, url, body string, set func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer letmein")
	set(r)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestMB01toMB06Guards(t *testing.T) {
	b, _ := bridge(t)
	s := web(t, b)
	for _, c := range []struct {
		name string
		want int
		url  string
		body string
		set  func(*http.Request)
	}{
		{"fine", 200, "/mcp", ping, func(*http.Request) {}},
		{"MB-01 rebind-host", 403, "/mcp", ping, func(r *http.Request) { r.Host = "evil.test" }},
		{"MB-01 health too", 403, "/healthz", "", func(r *http.Request) { r.Host = "evil.test:80" }},
		{"MB-01 localhost", 200, "/mcp", ping, func(r *http.Request) { r.Host = "LOCALHOST:1" }},
		{"MB-02 origin", 403, "/mcp", ping, func(r *http.Request) { r.Header.Set("Origin", "https://evil.test") }},
		{"MB-02 own page", 200, "/mcp", ping, func(r *http.Request) { r.Header.Set("Origin", "http://localhost:3000") }},
		{"MB-02 look-alike", 403, "/mcp", ping, func(r *http.Request) { r.Header.Set("Origin", "http://localhost.evil.test") }},
		{"MB-02 null origin", 403, "/mcp", ping, func(r *http.Request) { r.Header.Set("Origin", "null") }},
		{"MB-02 two origins", 403, "/mcp", ping, func(r *http.Request) { r.Header["Origin"] = []string{"http://localhost:3000", "https://evil.test"} }},
		{"MB-02 simple request", 415, "/mcp", ping, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		{"MB-03 none", 401, "/mcp", ping, func(r *http.Request) { r.Header.Del("Authorization") }},
		{"MB-03 wrong", 401, "/mcp", ping, func(r *http.Request) { r.Header.Set("Authorization", "Bearer letmeix") }},
		{"MB-03 prefix", 401, "/mcp", ping, func(r *http.Request) { r.Header.Set("Authorization", "Bearer letme") }},
		{"MB-03 longer", 401, "/mcp", ping, func(r *http.Request) { r.Header.Set("Authorization", "Bearer letmeinn") }},
		{"MB-03 empty", 401, "/mcp", ping, func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }},
		{"MB-03 two headers", 401, "/mcp", ping, func(r *http.Request) { r.Header.Add("Authorization", "Bearer other") }},
		{"MB-03 query", 401, "/mcp?token=letmein&access_token=letmein", ping, func(r *http.Request) { r.Header.Del("Authorization") }},
		{"MB-03 metrics", 401, "/metrics", "", func(r *http.Request) { r.Method = "GET"; r.Header.Del("Authorization") }},
		{"MB-06 body", 413, "/mcp", strings.Repeat(" ", maxMessage+1), func(*http.Request) {}},
		{"MB-06 depth", 400, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000) + "}", func(*http.Request) {}},
		{"MB-06 batch", 400, "/mcp", "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"},`, 99_999) + `{"jsonrpc":"2.0","id":1,"method":"ping"}]`, func(*http.Request) {}},
		{"MB-06 keys", 400, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}`, func(*http.Request) {}},
		{"MB-06 params", 400, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","NAME":"Write"}}`, func(*http.Request) {}},
		{"no session", 400, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, func(*http.Request) {}},
		{"an answer to nobody", 400, "/mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, func(*http.Request) {}},
		{"no method", 400, "/mcp", `{"jsonrpc":"2.0"}`, func(*http.Request) {}},
		{"takes text alone", 406, "/mcp", ping, func(r *http.Request) { r.Header.Set("Accept", "text/html, application/json;q=0") }},
		{"takes anything", 200, "/mcp", ping, func(r *http.Request) { r.Header.Set("Accept", "text/html, */*;q=0.1") }},
		{"takes what it does not say", 200, "/mcp", ping, func(r *http.Request) { r.Header.Del("Accept") }},
		{"a stream without a session", 400, "/mcp", "", func(r *http.Request) { r.Method = http.MethodGet }},
		{"a stream of JSON", 406, "/mcp", "", func(r *http.Request) { r.Method = http.MethodGet; r.Header.Set("Accept", "application/json") }},
		{"no stream today", 405, "/mcp", "", func(r *http.Request) { r.Method = http.MethodGet; r.Header.Set("Mcp-Protocol-Version", "2026-07-28") }},
		{"no session to end", 400, "/mcp", "", func(r *http.Request) { r.Method = http.MethodDelete }},
		{"nothing to end today", 405, "/mcp", "", func(r *http.Request) {
			r.Method = http.MethodDelete
			r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		}},
		{"a session nobody gave", 404, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, func(r *http.Request) { r.Header.Set("Mcp-Session-Id", "forged") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, body := post(t, s.URL+c.url, c.body, c.set); got != c.want {
				t.Errorf("status %d, want %d: %.200s", got, c.want, body)
			}
		})
	}
	if got, body := post(t, s.URL+"/metrics", "", func(r *http.Request) { r.Method = "GET" }); got != 200 || !strings.Contains(body, `elfhost_mcp_refused_total{status="401"} 8`) || strings.Contains(body, "letmein") {
		t.Errorf("%d %s", got, body)
	}
	if got, body := post(t, s.URL+"/healthz", "", func(r *http.Request) { r.Method = "GET"; r.Header.Del("Authorization") }); got != 200 || body != "ok\n" {
		t.Errorf("%d %s", got, body)
	}
	if _, err := b.Handler(HTTPOptions{}); err == nil {
		t.Error("served without a token")
	}
}

func TestMB05Loopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "[::]:1": false, "192.168.1.2:1": false, "example.org:1": false, "127.0.0.1": false} {
		if Loopback(addr) != want {
			t.Errorf("Loopback(%q) = %v", addr, !want)
		}
	}
}

func httpClient(t *testing.T, url string, legacy bool, opts ...client.ClientOption) *client.Client {
	t.Helper()
	tr, err := transport.NewStreamableHTTP(url+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer letmein"}))
	if err != nil {
		t.Fatal(err)
	}
	if legacy {
		//lint:ignore SA1019 the older era of the protocol is what this measures
		opts = append(opts, client.WithLegacyProtocolOnly())
	}
	c := client.NewClient(tr, opts...)
	if err := c.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(context.Background(), mcp.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Two servers with one secret stand in for each other: a session that one gave,
// A client cannot make up the state of a question, or use one for another call.
func TestSealedState(t *testing.T) {
	s, other := newSeal("a"), newSeal("b")
	good := s.question(pendingState{Tool: "Write", Until: time.Now().Add(time.Minute).Unix()})
	if _, err := s.answered(good); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"another key": other.question(pendingState{Until: time.Now().Add(time.Minute).Unix()}), "expired": s.question(pendingState{Until: 1}),
		"cut": good[:len(good)-2], "empty": "", "a session's": s.close("session", []byte("{}")),
	} {
		if _, err := s.answered(bad); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	clock := time.Now()
	m := &sealer{sealedSessions: &sealedSessions{seal: s, now: func() time.Time { return clock }, shared: new(local)}}
	id := m.Generate()
	if ended, err := m.Validate(id); ended || err != nil {
		t.Fatal(ended, err)
	}
	if _, err := m.Terminate(id); err != nil {
		t.Fatal(err)
	}
	if ended, _ := m.Validate(id); !ended {
		t.Error("an ended session goes on")
	}
	id = m.Generate()
	clock = clock.Add(sessionLife + time.Second)
	if _, err := m.Validate(id); err == nil {
		t.Error("an expired session goes on")
	}
}

func TestServeHTTPEndsWithItsContext(t *testing.T) {
	b, _ := bridge(t)
	l, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Listen(ctx, l, HTTPOptions{Token: "letmein"}) }()
	url := "http://" + l.Addr().String()
	c := httpClient(t, url, true)
	// A stream that never ends by itself.
	r, _ := http.NewRequest(http.MethodGet, url+"/mcp", nil)
	r.Header.Set("Authorization", "Bearer letmein")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", c.GetSessionId())
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(err, resp.StatusCode)
	}
	defer resp.Body.Close()
	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// Our client against our server, over HTTP in both eras, and the older SSE.
func TestClientOverHTTP(t *testing.T) {
	b, reg := bridge(t)
	s := web(t, b)
	r := newRig(t, Options{Consent: func(context.Context, Change) (bool, error) { return true, nil }})
	srv := Server{Name: "web", URL: s.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer letmein"}}
	g, _ := srv.Grant()
	grant, err := policy.New("mcp", g)
	if err != nil {
		t.Fatal(err)
	}
	srv.Rights = policy.Rights{Grants: grant}
	r.add(t, srv)
	r.connect(t, "web")
	if got := r.do(t, "mcp__web__Read", `{"q":"x"}`); got != "read" {
		t.Fatalf("%q", got)
	}
	if err := reg.Add(tool{"Glob", host.KindSearch, text("globbed")}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return r.reg.Has("mcp__web__Glob") })
	// Without the grant nothing is reached: the address is this machine's own.
	none := newRig(t, Options{})
	none.add(t, Server{Name: "web", URL: s.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer letmein"}, Rights: policy.Rights{Grants: policy.Unlimited()}})
	if err := none.Connect(context.Background(), "web"); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Fatalf("%v", err)
	}
}

func FuzzCheckMessage(f *testing.F) {
	for _, s := range []string{ping, "[]", `{"method":1,"Method":2}`, `{"params":{"name":"\ud800"}}`, strings.Repeat("[", 100), `{"a":"\"{"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readMessage(b); err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatalf("accepted, and is no object: %v", err)
		}
		for k := range m {
			if strings.EqualFold(k, "method") && k != "method" {
				t.Fatalf("accepted the key %q", k)
			}
		}
	})
}

func FuzzDefine(f *testing.F) {
	f.Add([]byte(fakeTool("x")))
	f.Add([]byte(`{"name":"\u202e","inputSchema":` + refs + `}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := define("s", b)
		if err != nil {
			return
		}
		if len(d.Spec.Description) > maxDescription+10 || !json.Valid(d.Spec.Input) {
			t.Fatalf("%+v", d.Spec)
		}
		if n := Name("s", d.Tool); len(n) > maxName {
			t.Fatalf("%q", n)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","data":"aGk=","mimeType":"x"}],"structuredContent":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) { answer(b) })
}
