package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
)

// Bounds of what one server may list beside its tools.
const (
	maxPrompts    = 200
	maxPromptArgs = 32
)

// ServerPrompt is a prompt of a server, for a person to pick.
type ServerPrompt struct {
	Name        string // as Name makes it
	Server      string
	Description string
	Args        []PromptArg

	prompt string // the server's name of it
}

// Prompts lists what the servers offer, by name: those of servers that were
// not started yet as they were last time.
func (c *Client) Prompts() (out []ServerPrompt) {
	for _, l := range c.all() {
		l.mu.Lock()
		raws := l.prompts
		l.mu.Unlock()
		out = append(out, prompts(l.s.Name, raws)...)
	}
	slices.SortFunc(out, func(a, b ServerPrompt) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Prompt fills in a prompt, by a name that Prompts gave. It starts the server
// if need be.
func (c *Client) Prompt(ctx context.Context, name string, args map[string]string) ([]Message, error) {
	for _, p := range c.Prompts() {
		if p.Name != name {
			continue
		}
		l, err := c.link(p.Server)
		if err != nil {
			return nil, err
		}
		for _, a := range p.Args {
			if _, ok := args[a.Name]; a.Required && !ok {
				return nil, fmt.Errorf("the prompt %s needs the argument %q", p.Name, a.Name)
			}
		}
		return l.prompt(ctx, p.prompt, args)
	}
	return nil, fmt.Errorf("no MCP server has a prompt %q", name)
}

func (l *link) prompt(ctx context.Context, name string, args map[string]string) ([]Message, error) {
	var raw json.RawMessage
	conn, err := l.with(ctx, func(conn *conn) (err error) {
		ctx, cancel := context.WithTimeout(ctx, l.s.Timeout)
		defer cancel()
		raw, err = conn.request(ctx, func(ctx context.Context) error {
			var req mcp.GetPromptRequest
			req.Params.Name, req.Params.Arguments = name, args
			_, err := conn.rpc.GetPrompt(ctx, req)
			return err
		})
		return err
	})
	if conn == nil {
		return nil, err
	}
	if err != nil {
		text, _ := told("", err.Error(), 4<<10)
		return nil, fmt.Errorf("the MCP server %s: %s", l.s.Name, text)
	}
	var got struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		return nil, fmt.Errorf("reading a prompt of the MCP server %s: %w", l.s.Name, err)
	}
	var out []Message
	for _, m := range got.Messages {
		msg := Message{Role: "user"}
		if m.Role == "assistant" {
			msg.Role = m.Role
		}
		msg.Content = append(msg.Content, block(m.Content))
		out = append(out, msg)
	}
	return out, nil
}

// typable reports whether a name can be shown on a line as it is.
func typable(name string) bool {
	seen, hidden := clean(name)
	return name != "" && len(name) <= 100 && hidden == 0 && !strings.ContainsAny(seen, "\n\t")
}

// prompts reads a listing; what has no name is left out.
func prompts(server string, raws []json.RawMessage) (out []ServerPrompt) {
	type argument struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Required    bool   `json:"required"`
	}
	seen := map[string]bool{}
	for _, raw := range raws {
		var p struct {
			Name        string     `json:"name"`
			Title       string     `json:"title"`
			Description string     `json:"description"`
			Arguments   []argument `json:"arguments"`
		}
		if json.Unmarshal(raw, &p) != nil || p.Name == "" || len(p.Name) > 256 || len(p.Arguments) > maxPromptArgs {
			continue
		}
		if slices.ContainsFunc(p.Arguments, func(a argument) bool { return !typable(a.Name) }) {
			continue // a person could not see what is asked for
		}
		if p.Description == "" {
			p.Description = p.Title
		}
		s := ServerPrompt{Name: Name(server, p.Name), Server: server, prompt: p.Name}
		s.Description, _ = told("", p.Description, 1<<10)
		for _, a := range p.Arguments {
			does, _ := told("", a.Description, 300)
			s.Args = append(s.Args, PromptArg{Name: a.Name, Description: does, Required: a.Required})
		}
		if !seen[s.Name] {
			seen[s.Name] = true
			out = append(out, s)
		}
	}
	return out
}
