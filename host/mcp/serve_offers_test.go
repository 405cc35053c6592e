package mcp

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// What comes and goes while a client is there, a skill that is installed for
// one, is listed the next time.
func TestOffersOfTheMoment(t *testing.T) {
	var with atomic.Bool
	_, reg := bridge(t)
	b := bridgeOf(t, ServeOptions{Registry: reg, Offers: func(context.Context) ([]Prompt, []Resource) {
		if !with.Load() {
			return nil, nil
		}
		return []Prompt{{Name: "review", Render: func(context.Context, map[string]string) ([]Message, error) {
				return []Message{{Role: "user", Content: []abi.Content{abi.TextBlock("look at it")}}}, nil
			}}}, []Resource{{URI: "skill://review/SKILL.md", Name: "review", Read: func(context.Context) (abi.Resource, error) {
				return abi.Resource{URI: "skill://review/SKILL.md", Text: "how to review"}, nil
			}}}
	}})
	c := serveStdio(t, b)
	listed := func() (int, int) {
		t.Helper()
		p, err := c.ListPrompts(t.Context(), mcp.ListPromptsRequest{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return len(p.Prompts), len(r.Resources)
	}
	for i, want := range []bool{false, true, false} {
		with.Store(want)
		p, r := listed()
		if (p == 1) != want || (r == 1) != want {
			t.Errorf("%d: %d prompts, %d resources", i, p, r)
		}
		if want {
			var req mcp.ReadResourceRequest
			req.Params.URI = "skill://review/SKILL.md"
			if got, err := c.ReadResource(t.Context(), req); err != nil || len(got.Contents) != 1 {
				t.Errorf("%v %v", got, err)
			}
		}
	}
}

// Our tools say what they do by their kind. What a server or a module that is
// not ours says of itself is never passed on as ours; deferred tools are not shown.
func TestAnnotations(t *testing.T) {
	for name, c := range map[string]struct {
		spec                        host.Spec
		readOnly, destructive, open bool
	}{
		"ours, reading":  {host.Spec{Kind: host.KindRead, Origin: host.Origin{Source: host.Builtin}}, true, false, false},
		"ours, editing":  {host.Spec{Kind: host.KindEdit, Origin: host.Origin{Source: host.Builtin}}, false, true, false},
		"ours, running":  {host.Spec{Kind: host.KindExecute, Origin: host.Origin{Source: host.Builtin}}, false, true, true},
		"ours, fetching": {host.Spec{Kind: host.KindFetch, Origin: host.Origin{Source: host.Bundled}}, true, false, true},
		"a module's":     {host.Spec{Kind: host.KindRead, Origin: host.Origin{Source: host.Plugin}}, false, true, true},
		"a server's":     {host.Spec{Kind: host.KindRead, Origin: host.Origin{Source: host.MCP}}, false, true, true},
	} {
		c.spec.Name = "x"
		got, ok := describe(c.spec)
		a := got.Annotations
		if !ok || *a.ReadOnlyHint != c.readOnly || *a.DestructiveHint != c.destructive || *a.OpenWorldHint != c.open {
			t.Errorf("%s: read-only %v, destructive %v, open %v", name, *a.ReadOnlyHint, *a.DestructiveHint, *a.OpenWorldHint)
		}
	}
	if _, ok := describe(host.Spec{Name: "x", Defer: true}); ok {
		t.Error("a deferred tool is shown")
	}
}
