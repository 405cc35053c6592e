package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// fetching is a tool that asks about a page in the middle of its work.
func fetching(began, ended *atomic.Int64, before ...policy.Use) host.Tool {
	return tool{"Fetch", host.KindRead, func(ctx context.Context, c host.Call) (abi.Result, error) {
		began.Add(1)
		for _, u := range append(before, policy.Use{Cap: abi.NetHTTP, Verb: "GET", Target: "https://example.org/"}) {
			if err := c.Rights.Check(ctx, u); err != nil {
				return abi.Result{}, err
			}
		}
		ended.Add(1)
		return abi.Text("fetched " + string(c.Args)), nil
	}}
}

// rounder makes a bridge whose questions name the use that they are about, with
// Read allowed to be asked about inside.
func rounder(t *testing.T, o ServeOptions, tools ...host.Tool) *Bridge {
	t.Helper()
	ask := &Asker{Show: func(a host.Ask) (Question, bool) {
		q := Question{Text: a.Spec.Name + " " + string(a.Call.Args), Choices: []string{"allow once", "no"}, Answers: []host.Answer{{Allow: true, Scope: host.Once}, {}}, Default: 1}
		if a.Use != nil {
			q.Text += " " + a.Use.Target
		}
		return q, true
	}}
	allow, err := policy.ParsePattern("Fetch")
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.NewPolicy(policy.Layer{Kind: policy.User, File: "config.toml", Tools: []policy.Rule{{Pattern: allow, Effect: policy.Allow}}})
	if err != nil {
		t.Fatal(err)
	}
	reg := host.New(host.Options{Gate: &host.Gate{Policy: p, Approver: ask}})
	if err := reg.Add(append(tools, tool{"Write", host.KindEdit, text("written")})...); err != nil {
		t.Fatal(err)
	}
	o.Registry = reg
	b := NewBridge(o)
	t.Cleanup(b.Close)
	return b
}

// by is a client of 2026-07-28 that carries its rounds out by hand.
func by(t *testing.T, b *Bridge, over string) *client.Client {
	t.Helper()
	opts := []client.ClientOption{client.WithElicitationHandler(person(func(mcp.ElicitationRequest) mcp.ElicitationResponse { return mcp.ElicitationResponse{Action: "cancel"} }))}
	if over == "stdio" {
		return serveStdio(t, b, opts...)
	}
	h, err := b.Handler(HTTPOptions{Token: "letmein"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return httpClient(t, s.URL, false, opts...)
}

func send(t *testing.T, b *Bridge, name, args string, p mcp.MultiRoundTripParams) *mcp.CallToolResult {
	t.Helper()
	req := mcp.CallToolRequest{}
	req.Params.Name, req.Params.RawArguments, req.Params.MultiRoundTripParams = name, json.RawMessage(args), p
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	q := request{tool: name, args: json.RawMessage(args), peer: &peer{srv: b.srv, elicits: true}}
	return b.round(ctx, q, p)
}

// question is the only one that a result asks.
func question(t *testing.T, r *mcp.CallToolResult) (id string, e mcp.ElicitationParams) {
	t.Helper()
	if !r.NeedsInput() || len(r.InputRequests) != 1 || r.RequestState == "" {
		t.Fatalf("no question: %s", textOf(r))
	}
	for k, v := range r.InputRequests {
		id, e = k, *v.Elicitation
	}
	return id, e
}

func answered(t *testing.T, r *mcp.CallToolResult, choice string) mcp.MultiRoundTripParams {
	t.Helper()
	id, _ := question(t, r)
	res := mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": choice}}}
	return mcp.MultiRoundTripParams{RequestState: r.RequestState, InputResponses: mcp.InputResponses{id: mcp.NewElicitationInputResponse(res)}}
}

// A question inside a call goes to the person of a client of 2026-07-28, and
// the call goes on where it stopped: nothing is done twice.
func TestRoundInsideACall(t *testing.T) {
	for _, over := range []string{"stdio", "http"} {
		for answer, want := range map[string]string{"1": "fetched", "2": "refused"} {
			t.Run(over+" "+want, func(t *testing.T) {
				var began, ended atomic.Int64
				b := rounder(t, ServeOptions{Secret: "s3cret"}, fetching(&began, &ended))
				var asked []string
				handler := client.WithElicitationHandler(person(func(r mcp.ElicitationRequest) mcp.ElicitationResponse {
					asked = append(asked, r.Params.Message)
					return mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": answer}}
				}))
				var c *client.Client
				if over == "stdio" {
					c = serveStdio(t, b, handler)
				} else {
					c = httpClient(t, web(t, b).URL, false, handler)
				}
				if c.ProtocolVersion() != "2026-07-28" {
					t.Fatal(c.ProtocolVersion())
				}
				r := callTool(t, c, "Fetch", `{"q":"x"}`)
				if !strings.Contains(textOf(r), want) || r.IsError != (answer == "2") {
					t.Errorf("%s", textOf(r))
				}
				if len(asked) != 1 || !strings.Contains(asked[0], "https://example.org/") || began.Load() != 1 || ended.Load() != map[string]int64{"1": 1, "2": 0}[answer] {
					t.Errorf("asked %q, began %d, ended %d", asked, began.Load(), ended.Load())
				}
			})
		}
	}
}

// What a client brings back counts for that call, with those arguments, once.
func TestRoundState(t *testing.T) {
	var began, ended atomic.Int64
	b := rounder(t, ServeOptions{Secret: "s3cret"}, fetching(&began, &ended))
	fresh := func() *mcp.CallToolResult { return send(t, b, "Fetch", `{"q":"x"}`, mcp.MultiRoundTripParams{}) }
	refused := func(name string, r *mcp.CallToolResult, why string) {
		t.Helper()
		if !r.IsError || r.NeedsInput() || !strings.Contains(textOf(r), why) || !strings.Contains(textOf(r), "without requestState") {
			t.Errorf("%s: %+v", name, textOf(r))
		}
	}
	good := answered(t, fresh(), "1")
	refused("other arguments", send(t, b, "Fetch", `{"q":"y"}`, good), "other arguments")
	refused("another tool", send(t, b, "Write", `{"q":"x"}`, good), "another tool")
	forged := good
	forged.RequestState = newSeal("another").question(pendingState{ID: "x", Tool: "Fetch", Until: time.Now().Add(time.Hour).Unix()})
	refused("forged", send(t, b, "Fetch", `{"q":"x"}`, forged), "not made here")
	expired := good
	expired.RequestState = b.seal.question(pendingState{ID: "x", Tool: "Fetch", Until: 1})
	refused("expired", send(t, b, "Fetch", `{"q":"x"}`, expired), "expired")
	refused("no answer", send(t, b, "Fetch", `{"q":"x"}`, mcp.MultiRoundTripParams{RequestState: good.RequestState}), "missing")
	if ended.Load() != 0 {
		t.Fatal("a call went ahead")
	}
	if r := send(t, b, "Fetch", `{"q":"x"}`, good); r.IsError || !strings.Contains(textOf(r), "fetched") {
		t.Fatalf("%s", textOf(r))
	}
	refused("replayed", send(t, b, "Fetch", `{"q":"x"}`, good), "taken already")
	// The same for a question before the call.
	w := answered(t, send(t, b, "Write", `{}`, mcp.MultiRoundTripParams{}), "1")
	if r := send(t, b, "Write", `{}`, w); r.IsError {
		t.Fatalf("%s", textOf(r))
	}
	refused("replayed before", send(t, b, "Write", `{}`, w), "taken already")
	if began.Load() != 1 || ended.Load() != 1 {
		t.Errorf("began %d, ended %d", began.Load(), ended.Load())
	}
	// An id without its answer's state gives nothing, nor does what is no choice.
	for _, bad := range []string{"2", "3", "01", ""} {
		if r := send(t, b, "Fetch", `{"q":"x"}`, answered(t, fresh(), bad)); !r.IsError {
			t.Errorf("the answer %q allowed it", bad)
		}
	}
}

// Another server with the same key makes the call anew, if nothing that
// matters was done before the question; else it says so. An answer is taken by
// one of them.
func TestRoundReplica(t *testing.T) {
	memory := new(local)
	var n1, e1, n2, e2 atomic.Int64
	same := ServeOptions{Secret: "s3cret", Shared: memory}
	b1, b2 := rounder(t, same, fetching(&n1, &e1)), rounder(t, same, fetching(&n2, &e2))
	p := answered(t, send(t, b1, "Fetch", `{}`, mcp.MultiRoundTripParams{}), "1")
	if r := send(t, b2, "Fetch", `{}`, p); r.IsError || e2.Load() != 1 {
		t.Fatalf("%s", textOf(r))
	}
	if r := send(t, b1, "Fetch", `{}`, p); !r.IsError || e1.Load() != 0 || !strings.Contains(textOf(r), "taken already") {
		t.Fatalf("%s", textOf(r))
	}
	other := rounder(t, ServeOptions{Secret: "other", Shared: memory}, fetching(&n2, &e2))
	p = answered(t, send(t, b1, "Fetch", `{}`, mcp.MultiRoundTripParams{}), "1")
	if r := send(t, other, "Fetch", `{}`, p); !r.IsError || e2.Load() != 1 {
		t.Fatalf("another key: %s", textOf(r))
	}
	// After something that may have had effects, only who waits goes on.
	written := policy.Use{Cap: abi.NetHTTP, Verb: "POST", Target: "https://example.org/new"}
	b3, b4 := rounder(t, same, fetching(&n1, &e1, written)), rounder(t, same, fetching(&n2, &e2, written))
	first := answered(t, send(t, b3, "Fetch", `{}`, mcp.MultiRoundTripParams{}), "1")
	second := answered(t, send(t, b3, "Fetch", `{}`, first), "1")
	before := e2.Load()
	if r := send(t, b4, "Fetch", `{}`, second); !r.IsError || e2.Load() != before || !strings.Contains(textOf(r), "may have had effects") {
		t.Fatalf("%s", textOf(r))
	}
}

// A call that nobody comes back for ends by itself, as refused, and the number
// of those that wait is bounded.
func TestRoundAbandoned(t *testing.T) {
	var began, ended atomic.Int64
	b := rounder(t, ServeOptions{Secret: "s3cret"}, fetching(&began, &ended))
	for range maxWaiting {
		question(t, send(t, b, "Fetch", `{}`, mcp.MultiRoundTripParams{}))
	}
	if r := send(t, b, "Fetch", `{}`, mcp.MultiRoundTripParams{}); !r.IsError || !strings.Contains(textOf(r), "wait for an answer") {
		t.Fatalf("%s", textOf(r))
	}
	done := make(chan struct{})
	go func() { b.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the bridge does not close")
	}
	if ended.Load() != 0 {
		t.Errorf("%d went ahead", ended.Load())
	}
	if r := send(t, b, "Fetch", `{}`, mcp.MultiRoundTripParams{}); !r.IsError {
		t.Error("a closed bridge carries calls out")
	}
}

// A client that goes away ends the call that it waits for.
func TestRoundCancelled(t *testing.T) {
	started, stopped := make(chan struct{}), make(chan struct{})
	b := rounder(t, ServeOptions{}, tool{"Read", host.KindRead, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		close(started)
		<-ctx.Done()
		close(stopped)
		return abi.Result{}, ctx.Err()
	}})
	c := by(t, b, "stdio")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-started; cancel() }()
	req := mcp.CallToolRequest{}
	req.Params.Name = "Read"
	if _, err := c.CallTool(ctx, req); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the tool goes on")
	}
}

// A form of something that a call uses is filled in by the client's person.
func TestRoundForm(t *testing.T) {
	asker := &Asker{}
	form := tool{"Read", host.KindRead, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		r, err := asker.Elicit(ctx, "the plugin p asks: your name?", Elicitation{Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)})
		if err != nil {
			return abi.Result{}, err
		}
		if !r.Accept {
			return abi.Text("declined"), nil
		}
		return abi.Textf("hello %v", r.Content["name"]), nil
	}}
	for _, legacy := range []bool{true, false} {
		for action, want := range map[mcp.ElicitationResponseAction]string{"accept": "hello Ada\n", "decline": "declined\n"} {
			b := rounder(t, ServeOptions{}, form)
			opts := []client.ClientOption{client.WithElicitationHandler(person(func(r mcp.ElicitationRequest) mcp.ElicitationResponse {
				if !strings.Contains(r.Params.Message, "the plugin p asks") {
					t.Errorf("%q", r.Params.Message)
				}
				return mcp.ElicitationResponse{Action: action, Content: map[string]any{"name": "Ada"}}
			}))}
			if legacy {
				//lint:ignore SA1019 the older era of the protocol is what this measures
				opts = append(opts, client.WithLegacyProtocolOnly())
			}
			if r := callTool(t, serveStdio(t, b, opts...), "Read", `{}`); textOf(r) != want {
				t.Errorf("legacy %v %s: %s", legacy, action, textOf(r))
			}
		}
	}
}
