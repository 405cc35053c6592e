package openai

import (
	"encoding/json"
	"regexp"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// responses is a model behind the Responses API.
type responses struct {
	p  *Provider
	id string
}

// nativeName marks items of this API in a transcript: those of the other one
// have another shape.
func (m *responses) nativeName() string { return m.p.opt.Name + "/responses" }

// reasoner are models that think, and of xAI's those that take an effort.
var reasoner = regexp.MustCompile(`^(o[1-9]|gpt-([5-9]|\d\d)|codex|grok-(3-mini|4\.[2-9]|[5-9]))`)

// searcher are models that the vendors' own search can be given to.
var searcher = regexp.MustCompile(`^(gpt-4o|gpt-4\.1|gpt-([5-9]|\d\d)|o[3-9]|codex|grok-([4-9]|\d\d))`)

// Searches reports whether a model of OpenAI's or xAI's can search the web by
// itself, through the Responses API.
func Searches(id string) bool {
	return searcher.MatchString(id) && !strings.HasPrefix(id, "gpt-4.1-nano")
}

// xai reports the other vendor of this API, whose dialect differs a little.
func (m *responses) xai() bool { return m.p.opt.Name == "xai" }

// request translates. Nothing is stored at the vendor: the whole conversation
// goes with each request, reasoning encrypted.
func (m *responses) request(r model.Request) sdk.CreateResponseRequest {
	store := false
	out := sdk.CreateResponseRequest{
		Model: m.id, Instructions: r.System, Store: &store, MaxOutputTokens: int(r.MaxTokens), ExtraBody: m.p.opt.Extra,
	}
	if !r.NoCache {
		out.PromptCacheKey = r.CacheKey
	}
	reasons := reasoner.MatchString(m.id) && !strings.Contains(m.id, "-chat")
	if reasons || m.xai() {
		out.Include = []sdk.ResponseInclude{sdk.ResponseIncludeReasoningEncryptedContent}
	}
	if reasons && r.Effort != model.EffortDefault {
		out.Reasoning = &sdk.ResponseReasoning{Effort: m.effort(r.Effort)}
		if !m.xai() {
			out.Reasoning.Summary = "auto"
		}
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, sdk.ResponseTool{Type: sdk.ToolTypeFunction, Parameters: map[string]any{
			// Strict is this API's default, and refuses schemas with optional fields.
			"name": t.Name, "description": t.Description, "parameters": wire.Schema(t.Input), "strict": false,
		}})
	}
	if r.Search != nil {
		t := sdk.ResponseTool{Type: sdk.ToolTypeWebSearch, Parameters: map[string]any{}}
		switch {
		case len(r.Search.Allowed) > 0:
			t.Parameters["filters"] = map[string]any{"allowed_domains": r.Search.Allowed}
		case len(r.Search.Blocked) > 0 && m.xai():
			t.Parameters["filters"] = map[string]any{"excluded_domains": r.Search.Blocked}
		}
		out.Tools = append(out.Tools, t)
	}
	if len(r.Schema) > 0 {
		out.Text = &sdk.ResponseTextConfig{Format: &sdk.ResponseTextFormat{Type: "json_schema", Name: "answer", Schema: r.Schema}}
	}
	input := []any{}
	if m.xai() && r.System != "" { // it refuses instructions
		out.Instructions = ""
		input = append(input, item{"role": "system", "content": r.System})
	}
	for _, msg := range r.Messages {
		input = append(input, m.items(msg)...)
	}
	out.Input = input
	return out
}

// effort is the nearest that a model has. They differ at the lower end; xAI's
// least is low, and its first one with efforts has two.
func (m *responses) effort(e model.Effort) string {
	none, codex := e == model.EffortNone, strings.Contains(m.id, "codex")
	switch {
	case strings.HasPrefix(m.id, "gpt-5-pro"):
		return string(model.EffortHigh)
	case m.xai() && (none || e == model.EffortMedium && strings.HasPrefix(m.id, "grok-3-")):
		return string(model.EffortLow)
	case gptPro.MatchString(m.id) && (none || e == model.EffortLow):
		return string(model.EffortMedium)
	case !none:
		return string(e)
	case codex || strings.HasPrefix(m.id, "o"):
		return string(model.EffortLow)
	case m.id == "gpt-5" || strings.HasPrefix(m.id, "gpt-5-"):
		return "minimal"
	}
	return string(model.EffortNone)
}

var gptPro = regexp.MustCompile(`^gpt-[\d.]+-pro`)

// item is one element of the input.
type item map[string]any

// items translates a message into the flat list that this API has.
func (m *responses) items(msg model.Message) []any {
	var out []any
	var parts []any // of a message of the user
	for _, b := range msg.Blocks {
		raw := wire.Native(b, m.nativeName())
		switch {
		case raw != nil:
			out = append(out, raw)
		case b.Call != nil:
			out = append(out, item{
				"type": "function_call", "call_id": b.Call.ID, "name": wire.Name(b.Call.Name), "arguments": string(wire.Object(b.Call.Args)),
			})
		case b.Result != nil:
			out = append(out, item{"type": "function_call_output", "call_id": b.Result.ID, "output": output(b.Result)})
		case b.Content == nil:
		case msg.Role == model.RoleAssistant && m.xai():
			out = append(out, item{"role": "assistant", "content": wire.Plain(*b.Content)})
		case msg.Role == model.RoleAssistant:
			out = append(out, item{"type": "message", "role": "assistant", "content": []any{item{"type": "output_text", "text": wire.Plain(*b.Content)}}})
		default:
			parts = append(parts, part(*b.Content))
		}
	}
	if len(parts) > 0 {
		out = append(out, item{"role": "user", "content": parts})
	}
	return out
}

func part(c abi.Content) item {
	if wire.Image(c) {
		return item{"type": "input_image", "image_url": wire.DataURL(c)}
	}
	return item{"type": "input_text", "text": wire.Plain(c)}
}

// output is text, or a list where there are images.
func output(r *model.CallResult) any {
	text := wire.Text(r.Result, wire.Image)
	if r.IsError {
		text = "Error: " + strings.TrimPrefix(text, "Error: ")
	}
	parts := []any{item{"type": "input_text", "text": text}}
	for _, c := range r.Content {
		if wire.Image(c) {
			parts = append(parts, part(c))
		}
	}
	if len(parts) == 1 {
		return text
	}
	return parts
}

// reasoning prepares an item of reasoning for being sent back. xAI wants the
// identifiers that OpenAI refuses where nothing is stored.
func (m *responses) reasoning(raw json.RawMessage) json.RawMessage {
	if m.xai() {
		return keep(raw)
	}
	return keep(raw, "id", "status")
}

// keep prepares an item of an answer for being sent back: without its
// identifier and status, which mean something only where the vendor stores.
func keep(raw json.RawMessage, drop ...string) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	for _, k := range drop {
		delete(o, k)
	}
	out, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return out
}
