package app

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

type clockTool struct{}

func (clockTool) Spec() host.Spec {
	return host.Spec{Name: "now", Description: "Says what time it is."}
}

func (clockTool) Call(context.Context, host.Call) (abi.Result, error) { return abi.Text("noon"), nil }

// A built-in server is an entry of the table, and what makes its tools: nothing
// is registered before.
func TestProviderOfItsOwn(t *testing.T) {
	clock := func(context.Context, *App) ([]host.Tool, error) { return []host.Tool{clockTool{}}, nil }
	a := &App{Dir: "/ws", all: host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})}
	tools, err := a.provided(t.Context(), []provider{
		{name: "clock", tools: clock},
		{name: "here", tools: clock, eligible: func(a *App) bool { return a.Dir == "/ws" }},
		{name: "there", tools: clock, eligible: func(a *App) bool { return a.Dir != "/ws" }},
		{name: "none", tools: registered("now")},
	})
	if err == nil {
		err = a.all.Add(tools...)
	}
	if err != nil || len(tools) != 2 {
		t.Fatal(len(tools), err)
	}
	for _, name := range []string{"mcp__clock__now", "mcp__here__now"} {
		if s, ok := a.all.Spec(name); !ok || s.Defer {
			t.Errorf("%s: %t, deferred %t", name, ok, s.Defer)
		}
		if res := a.all.Invoke(t.Context(), host.Call{Tool: name}); res.IsError || res.Text() != "noon" {
			t.Errorf("%s: %s", name, res.Text())
		}
	}
}

// A tool that is offered under its own name is callable under the other one.
func TestProviderOfRegisteredTools(t *testing.T) {
	a := &App{all: host.New(host.Options{})}
	if err := a.all.Add(clockTool{}); err != nil {
		t.Fatal(err)
	}
	tools, err := a.provided(t.Context(), []provider{{name: "clock", tools: registered("now", "then")}})
	if err != nil || len(tools) != 1 || tools[0].Spec().Name != "mcp__clock__now" || !tools[0].Spec().Defer {
		t.Errorf("%v, %v", tools, err)
	}
	_, err = a.provided(t.Context(), []provider{{name: "broken", tools: func(context.Context, *App) ([]host.Tool, error) { return nil, errors.New("no luck") }}})
	if err == nil || !strings.Contains(err.Error(), `"broken"`) {
		t.Error(err)
	}
}
