package extism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// maxListed bounds what a plugin may list of anything.
const maxListed = 128

// mcpTool is a tool as MCP declares it.
type mcpTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema"`
	Output      json.RawMessage `json:"outputSchema"`
	Annotations struct {
		ReadOnly bool `json:"readOnlyHint"`
	} `json:"annotations"`
}

// realName is the key under which a schema carries a name that the host could
// not use as it is.
const realName = "x-name"

// declare makes declarations of a module's own list, without those that are to
// be skipped.
func (p *plugin) declare(list []mcpTool) ([]abi.ToolDecl, error) {
	if len(list) > maxListed {
		return nil, fmt.Errorf("the module lists %d tools; the limit is %d", len(list), maxListed)
	}
	var out []abi.ToolDecl
	for _, t := range list {
		if p.skip(t.Name) {
			continue
		}
		d := abi.ToolDecl{Name: t.Name, Description: t.Description, Input: t.Input, ReadOnly: t.Annotations.ReadOnly}
		if len(t.Output) > 0 && string(t.Output) != "null" {
			d.Output = t.Output
		}
		if len(d.Input) == 0 || string(d.Input) == "null" {
			d.Input = json.RawMessage(`{"type":"object"}`)
		}
		if !plainName(t.Name) || len(t.Name) > 64 {
			var err error
			if d, err = rename(d); err != nil {
				return nil, err
			}
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, errors.New("the module lists no tools that its configuration does not skip")
	}
	return out, nil
}

// rename gives a tool a name of letters, digits, '_' and '-', and keeps the
// real one in its schema.
func rename(d abi.ToolDecl) (abi.ToolDecl, error) {
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(d.Input, &schema); err != nil {
		return d, fmt.Errorf("the schema of the tool %q: %w", d.Name, err)
	}
	schema[realName], _ = json.Marshal(d.Name)
	d.Input, _ = json.Marshal(schema)
	d.Name = strings.Map(func(r rune) rune {
		if r < 128 && plainName(string(r)) {
			return r
		}
		return '_'
	}, d.Name)
	if len(d.Name) > 64 {
		d.Name = d.Name[:64]
	}
	return d, nil
}

// original is the name by which the module knows a tool.
func original(d abi.ToolDecl) string {
	var s struct {
		Name string `json:"x-name"`
	}
	if json.Unmarshal(d.Input, &s) == nil && s.Name != "" {
		return s.Name
	}
	return d.Name
}

// skipper matches names that must match one of the expressions as a whole.
func skipper(list []string) (func(string) bool, error) {
	var all []*regexp.Regexp
	for _, s := range list {
		r, err := regexp.Compile("^(?:" + s + ")$")
		if err != nil {
			return nil, fmt.Errorf("skip_tools: %w", err)
		}
		all = append(all, r)
	}
	return func(name string) bool {
		for _, r := range all {
			if r.MatchString(name) {
				return true
			}
		}
		return false
	}, nil
}

// ask exchanges JSON with an export. A module's own error becomes a sentence.
func (p *plugin) ask(ctx context.Context, g *sandbox.Guest, export string, request, answer any) error {
	var in []byte
	if request != nil {
		var err error
		if in, err = json.Marshal(request); err != nil {
			return err
		}
	}
	p.paths(g)
	out, err := exchange(ctx, g, export, in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, answer); err != nil {
		return fmt.Errorf("the answer of %s is not what it should be: %w", export, err)
	}
	return nil
}

func (p *plugin) describeServlet(ctx context.Context, g *sandbox.Guest) ([]abi.ToolDecl, error) {
	var list struct {
		Tools []mcpTool `json:"tools"`
	}
	if err := p.ask(ctx, g, "describe", nil, &list); err != nil {
		return nil, err
	}
	return p.declare(list.Tools)
}

// callServlet calls a tool of a servlet.
func (p *plugin) callServlet(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
	type params struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"arguments"`
	}
	request := struct {
		Method string `json:"method"`
		Params params `json:"params"`
	}{"tools/call", params{original(tool), args}}
	var r result
	if err := p.ask(ctx, g, "call", request, &r); err != nil {
		return protocolError(err)
	}
	return r.result()
}

// protocolError turns what a module itself reports into a result: the model can
// act on it.
func protocolError(err error) (abi.Result, error) {
	var said *Error
	if errors.As(err, &said) {
		return abi.Errorf("%s", said.Text), nil
	}
	return abi.Result{}, err
}

// result is a result as servlets write it: resources may be flat.
type result struct {
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

type content struct {
	abi.Content
	Resource json.RawMessage `json:"resource"`
}

func (r result) result() (abi.Result, error) {
	out := abi.Result{IsError: r.IsError}
	if len(r.Structured) > 0 && string(r.Structured) != "null" {
		out.Structured = r.Structured
	}
	for _, c := range r.Content {
		b := c.Content
		if b.Type == abi.TypeResource {
			res := &abi.Resource{URI: b.URI, MIMEType: b.MIMEType, Text: b.Text, Blob: b.Data}
			if len(c.Resource) > 0 && string(c.Resource) != "null" {
				if err := json.Unmarshal(c.Resource, res); err != nil {
					return abi.Result{}, fmt.Errorf("a resource of the result: %w", err)
				}
			}
			if res.URI == "" {
				res.URI = "extism:resource"
			}
			b = abi.Content{Type: abi.TypeResource, Resource: res, Annotations: b.Annotations}
		}
		if string(b.Annotations) == "null" {
			b.Annotations = nil
		}
		out.Content = append(out.Content, b)
	}
	if len(out.Content) == 0 && out.Structured == nil {
		out.Content = []abi.Content{abi.TextBlock("")}
	}
	return out, nil
}
