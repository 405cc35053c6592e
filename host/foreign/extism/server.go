package extism

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// about is the context that hyper-mcp v2 adds to each request.
type about struct {
	ID   int            `json:"id"`
	Meta map[string]any `json:"_meta"`
}

func here() about { return about{1, map[string]any{}} }

// extra are tools that stand for what MCP has beside tools. They are offered
// where the module has something to list.
var extra = []struct {
	export, list, field string // offered when the answer to list has something in field
	description         string
	input               string
}{
	{"list_prompts", "list_prompts", "prompts", "List the prompts that this plugin has.", `{"type":"object"}`},
	{"get_prompt", "list_prompts", "prompts", "Get one of this plugin's prompts, filled in.",
		`{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object","additionalProperties":{"type":"string"}}},"required":["name"]}`},
	{"list_resources", "list_resources", "resources", "List the resources that this plugin has.", `{"type":"object"}`},
	{"list_resource_templates", "list_resource_templates", "resourceTemplates", "List the templates of this plugin's resources.", `{"type":"object"}`},
	{"read_resource", "list_resources", "resources", "Read one of this plugin's resources.",
		`{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`},
}

func (p *plugin) listTools(ctx context.Context, g *sandbox.Guest) ([]abi.ToolDecl, error) {
	var list struct {
		Tools []mcpTool `json:"tools"`
	}
	if g.Has("list_tools") {
		if err := p.ask(ctx, g, "list_tools", map[string]any{"context": here()}, &list); err != nil {
			return nil, err
		}
	}
	for _, x := range extra {
		taken := slices.ContainsFunc(list.Tools, func(t mcpTool) bool { return t.Name == x.export })
		if taken || !g.Has(x.export) || !p.lists(ctx, g, x.list, x.field) {
			continue
		}
		list.Tools = append(list.Tools, mcpTool{Name: x.export, Description: x.description, Input: json.RawMessage(x.input)})
	}
	return p.declare(list.Tools)
}

// lists reports whether a list of the module's has anything in it.
func (p *plugin) lists(ctx context.Context, g *sandbox.Guest, export, field string) bool {
	var answer map[string]json.RawMessage
	if !g.Has(export) || p.ask(ctx, g, export, map[string]any{"context": here()}, &answer) != nil {
		return false
	}
	var items []json.RawMessage
	return json.Unmarshal(answer[field], &items) == nil && len(items) > 0
}

// callTool calls a tool of a hyper-mcp v2 plugin.
func (p *plugin) callTool(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
	for _, x := range extra {
		if tool.Name == x.export && tool.Description == x.description {
			return p.passOn(ctx, g, x.export, args)
		}
	}
	var r result
	err := p.ask(ctx, g, "call_tool", map[string]any{
		"request": map[string]any{"name": original(tool), "arguments": args}, "context": here(),
	}, &r)
	if err != nil {
		return protocolError(err)
	}
	return r.result()
}

// passOn answers with what the module answers.
func (p *plugin) passOn(ctx context.Context, g *sandbox.Guest, export string, args json.RawMessage) (abi.Result, error) {
	var answer map[string]json.RawMessage
	if err := p.ask(ctx, g, export, map[string]any{"request": args, "context": here()}, &answer); err != nil {
		return protocolError(err)
	}
	b, err := json.Marshal(answer)
	if err != nil {
		return abi.Result{}, err
	}
	r := abi.Text(string(b))
	r.Structured = b
	return r, nil
}

// serverCalls are the host functions of hyper-mcp v2: JSON in, JSON out. A nil
// answer is no block.
var serverCalls = map[string]func(ctx context.Context, p *plugin, g *sandbox.Guest, in []byte) any{
	"create_elicitation": createElicitation,
	"create_message":     createMessage,
	"list_roots": func(context.Context, *plugin, *sandbox.Guest, []byte) any {
		return map[string]any{"roots": []any{map[string]any{"uri": "file:///ws", "name": "workspace"}}}
	},
	"get_keyring_secret": keyringSecret,
	// OAuth flows belong to the host's configuration of MCP servers.
	"get_access_token": func(context.Context, *plugin, *sandbox.Guest, []byte) any { return json.RawMessage("null") },
}

// serverCaps are what the calls reach.
var serverCaps = map[string]abi.Capability{"create_message": abi.Model, "get_keyring_secret": abi.Secret}

// serverNotes are those without an answer.
var serverNotes = map[string]func(ctx context.Context, g *sandbox.Guest, in []byte){
	"notify_logging_message": func(ctx context.Context, g *sandbox.Guest, in []byte) {
		_, _, _ = g.Do(ctx, abi.ModuleLog, "write", map[string]string{"level": "info"}, in)
	},
	"notify_progress": func(ctx context.Context, g *sandbox.Guest, in []byte) {
		var q struct {
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if json.Unmarshal(in, &q) == nil {
			_, _, _ = g.Do(ctx, abi.ModuleProgress, "report", map[string]any{"message": q.Message, "done": q.Progress, "total": q.Total}, nil)
		}
	},
	// The tools of a package are pinned: a module cannot change them while it runs.
	"notify_prompt_list_changed":       nil,
	"notify_resource_list_changed":     nil,
	"notify_resource_updated":          nil,
	"notify_tool_list_changed":         nil,
	"notify_url_elicitation_completed": nil,
}

func isServerFunc(name string) bool {
	_, call := serverCalls[name]
	_, note := serverNotes[name]
	return call || note
}

func (p *plugin) serverFunctions() []sandbox.Func {
	one := []api.ValueType{i64}
	var list []sandbox.Func
	for name, run := range serverCalls {
		list = append(list, sandbox.Func{Module: UserModule, Name: name, Params: one, Results: one, Cap: serverCaps[name],
			Run: func(ctx context.Context, g *sandbox.Guest, s []uint64) {
				in := Read(g, s[0])
				Free(g, s[0])
				s[0] = 0
				switch answer := run(ctx, p, g, in).(type) {
				case nil:
				case []byte:
					s[0] = room(g, answer)
				default:
					b, err := json.Marshal(answer)
					if err != nil {
						fail("%s: %w", name, err)
					}
					s[0] = room(g, b)
				}
			}})
	}
	for name, run := range serverNotes {
		list = append(list, sandbox.Func{Module: UserModule, Name: name, Params: one,
			Run: func(ctx context.Context, g *sandbox.Guest, s []uint64) {
				in := Read(g, s[0])
				Free(g, s[0])
				if run != nil {
					run(ctx, g, in)
				}
			}})
	}
	return list
}

// createElicitation has a person answer, as a server's elicitation does. What
// nobody is there for, and what is no form, is declined.
func createElicitation(ctx context.Context, _ *plugin, g *sandbox.Guest, in []byte) any {
	var q struct {
		Mode    string          `json:"mode"`
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(in, &q); err != nil {
		fail("create_elicitation: %w: %w", err, abi.ErrInvalid)
	}
	if q.Mode != "" && q.Mode != "form" {
		return map[string]any{"action": "decline"}
	}
	content, ok, err := g.Elicit(ctx, q.Message, q.Schema)
	switch {
	case err != nil:
		return map[string]any{"action": "cancel"}
	case !ok:
		return map[string]any{"action": "decline"}
	}
	return map[string]any{"action": "accept", "content": content}
}

// createMessage is MCP's sampling: the model that plugins may ask, under the
// grant and the budget of `model`.
func createMessage(ctx context.Context, _ *plugin, g *sandbox.Guest, in []byte) any {
	type text struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	var q struct {
		Messages []struct {
			Role    string `json:"role"`
			Content text   `json:"content"`
		} `json:"messages"`
		System string `json:"systemPrompt"`
		Max    int64  `json:"maxTokens"`
	}
	if err := json.Unmarshal(in, &q); err != nil {
		fail("create_message: %w: %w", err, abi.ErrInvalid)
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	ask := []message{}
	for i, m := range q.Messages {
		if m.Content.Type != "text" {
			fail("create_message: message %d is no text: %w", i+1, abi.ErrUnsupported)
		}
		ask = append(ask, message{m.Role, m.Content.Text})
	}
	head, body, err := g.Do(ctx, abi.ModuleModel, "generate", map[string]any{"messages": ask, "system": q.System, "max_tokens": max(q.Max, 0)}, nil)
	if err != nil {
		fail("create_message: %w", err)
	}
	var r struct {
		Stop  string `json:"stop"`
		Model string `json:"model"`
	}
	if err := json.Unmarshal(head, &r); err != nil {
		fail("create_message: %w", err)
	}
	return map[string]any{"role": "assistant", "content": text{"text", string(body)}, "model": r.Model, "stopReason": r.Stop}
}

// SecretName is the name under which the host keeps what a hyper-mcp plugin
// asks a keyring for.
func SecretName(service, user string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && plainName(string(r)) || r == '.' {
			return r
		}
		return '-'
	}, service+"."+user)
}

// keyringSecret answers a placeholder: the host puts the value into requests
// that go where the grant says. Nothing where it is not granted.
func keyringSecret(ctx context.Context, p *plugin, g *sandbox.Guest, in []byte) any {
	var q struct {
		Service string `json:"service"`
		User    string `json:"user"`
	}
	if json.Unmarshal(in, &q) != nil || !slices.Contains(p.Secrets, SecretName(q.Service, q.User)) {
		return nil
	}
	_, out, err := g.Do(ctx, abi.ModuleSecret, "placeholder", map[string]string{"name": SecretName(q.Service, q.User)}, nil)
	if err != nil {
		return nil
	}
	return out
}
