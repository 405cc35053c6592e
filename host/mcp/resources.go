package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"

	_ "embed"
)

// readResource is the tool by which a model lists and reads the resources of a
// server that has some. It is offered as if it were the server's own, so that
// the same rules hold for it; a server that has a tool of that name keeps it.
const readResource = "read_resource"

//go:embed resource.md
var resourceText string

const maxResources = 500 // that a model is told of

// reader is that tool.
type reader struct{ l *link }

func (t *reader) Spec() host.Spec {
	return host.Spec{
		Name: Name(t.l.s.Name, readResource), Title: "Read a resource", Description: strings.TrimSpace(resourceText), Kind: host.KindOther,
		Input:  json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"Of the resource; without it they are listed"}},"additionalProperties":false}`),
		Origin: host.Origin{Source: host.MCP, Name: t.l.s.Name},
	}
}

func (t *reader) Call(ctx context.Context, c host.Call) (abi.Result, error) {
	var a struct {
		URI string `json:"uri"`
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return abi.Result{}, err
	}
	var res abi.Result
	conn, err := t.l.with(ctx, func(conn *conn) (err error) {
		inner, cancel := context.WithTimeout(ctx, t.l.s.Timeout)
		defer cancel()
		if a.URI == "" {
			res, err = conn.resources(inner)
		} else {
			res, err = conn.read(inner, a.URI)
		}
		return err
	})
	switch {
	case err == nil:
		return res, nil
	case ctx.Err() != nil:
		return abi.Result{}, ctx.Err()
	case conn == nil || errors.Is(err, errUnknown):
		return abi.Errorf("Nothing was read: %v.", err), nil
	case errors.Is(err, context.DeadlineExceeded):
		return abi.Errorf("The MCP server %s did not answer within %s.", t.l.s.Name, t.l.s.Timeout), nil
	}
	text, _ := told("", err.Error(), 4<<10)
	return abi.Errorf("The MCP server %s answered with an error: %s", t.l.s.Name, text), nil
}

func (c *conn) read(ctx context.Context, uri string) (abi.Result, error) {
	raw, err := c.request(ctx, func(ctx context.Context) error {
		var req mcp.ReadResourceRequest
		req.Params.URI = uri
		_, err := c.rpc.ReadResource(ctx, req)
		return err
	})
	if err != nil {
		return abi.Result{}, err
	}
	var got struct {
		Contents []abi.Resource `json:"contents"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return abi.Result{}, fmt.Errorf("its answer cannot be read: %w", err)
	}
	res := abi.Result{}
	for i, r := range got.Contents {
		if i == maxParts {
			break
		}
		if kind, _, _ := strings.Cut(r.MIMEType, "/"); kind == abi.TypeImage && len(r.Blob) > 0 {
			res.Content = append(res.Content, abi.Content{Type: abi.TypeImage, Data: r.Blob, MIMEType: r.MIMEType})
			continue
		}
		res.Content = append(res.Content, abi.Content{Type: abi.TypeResource, Resource: &r})
	}
	if len(res.Content) == 0 {
		res = abi.Text("The resource is empty.")
	}
	return res, nil
}

// resources lists the server's resources, and the templates of addresses that
// it understands.
func (c *conn) resources(ctx context.Context) (abi.Result, error) {
	type entry struct {
		URI         string `json:"uri"`
		Template    string `json:"uriTemplate"`
		Name        string `json:"name"`
		Description string `json:"description"`
		MIMEType    string `json:"mimeType"`
	}
	all, err := c.pages(ctx, "resources", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListResourcesRequest
		req.Params.Cursor = cursor
		_, err := c.rpc.ListResourcesByPage(ctx, req)
		return err
	})
	if err != nil {
		return abi.Result{}, err
	}
	templates, err := c.pages(ctx, "resourceTemplates", func(ctx context.Context, cursor mcp.Cursor) error {
		var req mcp.ListResourceTemplatesRequest
		req.Params.Cursor = cursor
		_, err := c.rpc.ListResourceTemplatesByPage(ctx, req)
		return err
	})
	if err != nil && ctx.Err() != nil {
		return abi.Result{}, err
	}
	all = append(all, templates...) // a server need not know them
	var b strings.Builder
	for i, raw := range all {
		if i == maxResources {
			fmt.Fprintf(&b, "and %d more\n", len(all)-i)
			break
		}
		var e entry
		if json.Unmarshal(raw, &e) != nil {
			continue
		}
		line := e.URI
		if line == "" {
			line = e.Template + " (a template: fill in what is in braces)"
		}
		for _, part := range []string{e.MIMEType, e.Name, e.Description} {
			if part != "" {
				line += " · " + part
			}
		}
		line, _ = told("", strings.Join(strings.Fields(line), " "), 600)
		b.WriteString(line + "\n")
	}
	if b.Len() == 0 {
		return abi.Text("The server has no resources now."), nil
	}
	return abi.Text(b.String()), nil
}
