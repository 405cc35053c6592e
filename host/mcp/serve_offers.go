package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// offers are the options, and hooks, of a server that has prompts and resources,
// now or later.
func (b *Bridge) offers(hooks *server.Hooks) (opts []server.ServerOption) {
	later := b.opt.Offers != nil
	if later || len(b.opt.Prompts) > 0 {
		opts = append(opts, server.WithPromptCapabilities(true))
	}
	if later || len(b.opt.Resources) > 0 {
		opts = append(opts, server.WithResourceCapabilities(false, true))
	}
	if later {
		hooks.AddBeforeListPrompts(func(ctx context.Context, _ any, _ *mcp.ListPromptsRequest) { b.offer(ctx) })
		hooks.AddBeforeListResources(func(ctx context.Context, _ any, _ *mcp.ListResourcesRequest) { b.offer(ctx) })
	}
	return opts
}

func (b *Bridge) offersChanged() <-chan struct{} {
	if b.opt.Changed == nil {
		return nil
	}
	return b.opt.Changed()
}

// offer makes the server's prompts and resources those of the moment; clients
// are told where they are others than before.
func (b *Bridge) offer(ctx context.Context) {
	b.offering.Lock()
	defer b.offering.Unlock()
	prompts, resources := b.opt.Prompts, b.opt.Resources
	if b.opt.Offers != nil {
		prompts, resources = b.opt.Offers(ctx)
	}
	var all [2]strings.Builder
	for _, p := range prompts {
		fmt.Fprintf(&all[0], "%q %q %q %+v\n", p.Name, p.Title, p.Description, p.Args)
	}
	for _, r := range resources {
		fmt.Fprintf(&all[1], "%q %q %q %q\n", r.URI, r.Name, r.Description, r.MIMEType)
	}
	if now := all[0].String(); now != b.offered[0] {
		b.offered[0] = now
		var ps []server.ServerPrompt
		for _, p := range prompts {
			ps = append(ps, servedPrompt(p))
		}
		b.changes.make(listPrompts, func() { b.srv.SetPrompts(ps...) })
	}
	if now := all[1].String(); now != b.offered[1] {
		b.offered[1] = now
		var rs []server.ServerResource
		for _, r := range resources {
			rs = append(rs, servedResource(r))
		}
		b.changes.make(listResources, func() { b.srv.SetResources(rs...) })
	}
}

func servedPrompt(p Prompt) server.ServerPrompt {
	mp := mcp.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Args {
		mp.Arguments = append(mp.Arguments, mcp.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	return server.ServerPrompt{Prompt: mp, Handler: func(ctx context.Context, req mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		for _, a := range p.Args {
			if _, ok := req.Params.Arguments[a.Name]; a.Required && !ok {
				return nil, fmt.Errorf("the prompt %q needs %q", p.Name, a.Name)
			}
		}
		msgs, err := p.Render(ctx, req.Params.Arguments)
		if err != nil {
			return nil, err
		}
		out := &mcp.GetPromptResult{Description: p.Description, Messages: []mcp.PromptMessage{}}
		for _, m := range msgs {
			for _, c := range m.Content {
				out.Messages = append(out.Messages, mcp.PromptMessage{Role: mcp.Role(m.Role), Content: contentOf(c)})
			}
		}
		return out, nil
	}}
}

func servedResource(r Resource) server.ServerResource {
	return server.ServerResource{
		Resource: mcp.Resource{URI: r.URI, Name: r.Name, Description: r.Description, MIMEType: r.MIMEType},
		Handler: func(ctx context.Context, _ mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
			got, err := r.Read(ctx)
			if err != nil {
				return nil, err
			}
			return []mcp.ResourceContents{resourceOf(got)}, nil
		},
	}
}
