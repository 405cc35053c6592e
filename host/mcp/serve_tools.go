package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/host"
)

// show makes the server's tools those of the registry that the gate's mode
// leaves. Clients are told where they, or those that may do nothing, are others
// than before.
func (b *Bridge) show() {
	mode := b.opt.Registry.Gate().Current()
	var tools []server.ServerTool
	all := sha256.New()
	powerless := map[string]bool{}
	for _, t := range b.opt.Registry.All() {
		spec := t.Spec()
		tool, ok := describe(spec)
		if !ok || !mode.Offers(spec) {
			continue
		}
		tools = append(tools, server.ServerTool{Tool: tool, Handler: b.call})
		if b.opt.Powerless != nil && b.opt.Powerless(t) {
			powerless[tool.Name] = true
		}
		text, err := json.Marshal(tool)
		if err != nil {
			text = append(text, spec.Description...)
		}
		fmt.Fprintf(all, "%q %v %s\n", tool.Name, powerless[tool.Name], text)
	}
	if now := all.Sum(nil); !bytes.Equal(now, b.shown) {
		b.shown = now
	} else {
		return
	}
	b.changes.make(listTools, func() {
		b.powerless.Store(&powerless)
		b.srv.SetTools(tools...)
	})
}

// withhold leaves what can only be refused out of the list for a client that
// cannot ask its person. A call of it is refused with what would allow it.
func (b *Bridge) withhold(ctx context.Context, _ any, _ *mcp.ListToolsRequest, r *mcp.ListToolsResult) {
	powerless := *b.powerless.Load()
	if len(powerless) == 0 || b.peer(ctx).elicits && b.opt.Registry.Gate().CanAsk() {
		return
	}
	r.Tools = slices.DeleteFunc(slices.Clone(r.Tools), func(t mcp.Tool) bool { return powerless[t.Name] })
}

// describe is a tool as clients see it.
func describe(s host.Spec) (mcp.Tool, bool) {
	if s.Defer {
		return mcp.Tool{}, false
	}
	input := s.Input
	if len(input) == 0 {
		input = json.RawMessage(`{"type":"object"}`)
	}
	t := mcp.Tool{Name: s.Name, Title: s.Title, Description: s.Description, RawInputSchema: input, RawOutputSchema: s.Output, Annotations: annotate(s)}
	return t, mcp.ValidateParamHeaderAnnotations(&t) == nil
}

// annotate says what a tool does, from its kind alone: what a foreign server or
// a module says of itself is not passed on as ours.
func annotate(s host.Spec) mcp.ToolAnnotation {
	yes, no := true, false
	a := mcp.ToolAnnotation{Title: s.Title, ReadOnlyHint: &no, DestructiveHint: &yes, OpenWorldHint: &yes}
	if s.Origin.Source != host.Builtin && s.Origin.Source != host.Bundled {
		return a
	}
	switch s.Kind {
	case host.KindRead, host.KindSearch, host.KindThink:
		a.ReadOnlyHint, a.DestructiveHint, a.OpenWorldHint, a.IdempotentHint = &yes, &no, &no, &yes
	case host.KindFetch:
		a.ReadOnlyHint, a.DestructiveHint = &yes, &no
	case host.KindEdit:
		a.OpenWorldHint = &no
	}
	return a
}
