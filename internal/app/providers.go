package app

import (
	"context"
	"fmt"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
)

// provider is a built-in MCP server: tools of this process under the names that
// the server's would have.
type provider struct {
	name     string
	eligible func(*App) bool // nil: in every session
	// tools makes the tools, under their plain names. What is safe among them has
	// a line in host/tables.go: nobody is asked about it.
	tools func(context.Context, *App) ([]host.Tool, error)
}

// providers is the table of built-in MCP servers. To add one, add an entry, and
// a file that makes its tools.
var providers = []provider{
	{name: "search", tools: registered("search", "rg", "file_outline")},
	{name: "skills", tools: registered("list_skills", "read_skill")},
}

// provided makes the tools of a table's servers that this session is to have.
func (a *App) provided(ctx context.Context, table []provider) ([]host.Tool, error) {
	var out []host.Tool
	for _, p := range table {
		if p.eligible != nil && !p.eligible(a) {
			continue
		}
		tools, err := p.tools(ctx, a)
		if err != nil {
			return nil, fmt.Errorf("making the tools of the built-in server %q: %w", p.name, err)
		}
		for _, t := range tools {
			name := t.Spec().Name
			out = append(out, alias{t, mcp.Name(p.name, name), a.all.Has(name)})
		}
	}
	return out, nil
}

// registered are tools that an earlier step registered under their plain names;
// a session in which one is not registered does not have it here either.
func registered(names ...string) func(context.Context, *App) ([]host.Tool, error) {
	return func(_ context.Context, a *App) ([]host.Tool, error) {
		var out []host.Tool
		for _, name := range names {
			if t, ok := a.all.Get(name); ok {
				out = append(out, t)
			}
		}
		return out, nil
	}
}

// alias is a tool under another name. Where it is offered under its own, this
// one can be called, and is not offered.
type alias struct {
	host.Tool
	name   string
	hidden bool
}

func (t alias) Spec() host.Spec {
	s := t.Tool.Spec()
	s.Name = t.name
	s.Defer = s.Defer || t.hidden
	return s
}
