package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// A server's question inside a call belongs to that call, where only one is
// going on, and ends with the server's request.
func TestBehind(t *testing.T) {
	type key struct{}
	c := &conn{}
	asked, end := context.WithCancel(context.Background())
	behind := func() context.Context {
		ctx, end := c.behind(asked)
		t.Cleanup(end)
		return ctx
	}
	if behind() != asked {
		t.Error("without a call there is something behind")
	}
	first, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "first"))
	done := c.making(first)
	with := behind()
	if got := with.Value(key{}); got != "first" {
		t.Errorf("%v", got)
	}
	other := c.making(context.WithValue(t.Context(), key{}, "second"))
	if got := behind().Value(key{}); got != nil {
		t.Errorf("of two calls it takes %v", got)
	}
	done()
	cancel()
	select {
	case <-with.Done():
	case <-time.After(time.Minute):
		t.Error("it outlives the call")
	}
	with = behind()
	if got := with.Value(key{}); got != "second" {
		t.Errorf("%v", got)
	}
	end()
	if with.Err() == nil {
		t.Error("it outlives the request")
	}
	if other(); len(c.calls) != 0 {
		t.Error("a call stays")
	}
}

// The form of a server behind a served tool reaches the client's person.
func TestFormThroughBothSides(t *testing.T) {
	asker := &Asker{}
	c := &conn{turn: make(chan struct{}, 1), l: &link{c: &Client{opt: Options{Elicit: func(ctx context.Context, e Elicitation) (Reply, error) {
		return asker.Elicit(ctx, e.Server+": "+e.Message, e)
	}}}, s: Server{Name: "far"}}}
	for _, legacy := range []bool{true, false} {
		// The server asks outside of the call's context, as it does over a wire.
		b := rounder(t, ServeOptions{}, tool{"Read", host.KindRead, func(ctx context.Context, _ host.Call) (abi.Result, error) {
			defer c.making(ctx)()
			r, err := c.Elicit(context.Background(), mcp.ElicitationRequest{Params: mcp.ElicitationParams{
				Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}}}`)}})
			if err != nil {
				return abi.Result{}, err
			}
			return abi.Textf("%s %s", r.Action, r.Content), nil
		}})
		opts := []client.ClientOption{client.WithElicitationHandler(person(func(r mcp.ElicitationRequest) mcp.ElicitationResponse {
			return mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"name": "for " + r.Params.Message}}
		}))}
		if legacy {
			//lint:ignore SA1019 the older era of the protocol is what this measures
			opts = append(opts, client.WithLegacyProtocolOnly())
		}
		if r := callTool(t, serveStdio(t, b, opts...), "Read", `{}`); !strings.Contains(textOf(r), "for far: who?") {
			t.Errorf("legacy %v: %s", legacy, textOf(r))
		}
	}
}
