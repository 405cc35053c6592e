package app

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/mcp"
	"github.com/elfhost/elfhost/internal/config"
)

// directClose is how long the servers of a definition have to end.
const directClose = 5 * time.Second

// direct starts the MCP servers that an agent's definition declares, for this
// agent alone: their tools go into its registry, and end closes them. end is
// nil without any. What cannot be started in its time is noted, and the agent
// works without it. A definition of a folder that nobody trusts declares none.
func (a *App) direct(ctx context.Context, name string, r *host.Registry) (end func(), err error) {
	if name == "" {
		return nil, nil
	}
	all, err := a.Definitions().All(ctx, a.Rights())
	if err != nil {
		return nil, err
	}
	var declared []agents.Server
	for _, d := range all {
		if strings.EqualFold(d.Name, name) {
			declared = d.Direct
		}
	}
	if len(declared) == 0 {
		return nil, nil
	}
	c := mcp.NewClient(a.mcpOptions(r))
	var names []string
	for _, s := range declared {
		made, err := a.server(s.Name, config.MCPServer{Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd})
		if err == nil {
			err = c.Add(made)
		}
		if err != nil {
			a.note("the MCP server %s of the agent %s is left out: %v", s.Name, name, err)
			continue
		}
		names = append(names, s.Name)
	}
	var wg sync.WaitGroup
	for _, n := range names {
		wg.Go(func() {
			if err := c.Connect(ctx, n); err != nil {
				a.note("the agent %s works without its MCP server: %v", name, err)
			}
		})
	}
	wg.Wait()
	end = func() {
		ctx, cancel := context.WithTimeout(context.Background(), directClose)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			a.note("ending the MCP servers of the agent %s: %v", name, err)
		}
	}
	if ctx.Err() != nil {
		end()
		return nil, fmt.Errorf("starting the MCP servers of the agent %s: %w", name, ctx.Err())
	}
	return end, nil
}
