package mcp

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
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
