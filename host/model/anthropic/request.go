package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// params translates a request.
func (m *Model) params(r model.Request) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: sdk.Model(m.id), MaxTokens: r.MaxTokens}
	if p.MaxTokens <= 0 {
		p.MaxTokens = m.answer()
	}
	if strings.TrimSpace(r.System) != "" {
		p.System = []sdk.TextBlockParam{{Text: r.System}}
	}
	for _, t := range r.Tools {
		p.Tools = append(p.Tools, sdk.ToolUnionParam{OfTool: &sdk.ToolParam{
			Name: t.Name, Description: sdk.String(t.Description),
			InputSchema: param.Override[sdk.ToolInputSchemaParam](wire.Schema(t.Input)),
		}})
	}
	if r.Search != nil {
		p.Tools = append(p.Tools, search(r.Search))
	}
	for _, msg := range r.Messages {
		if blocks := blocks(msg); len(blocks) > 0 {
			role := sdk.MessageParamRoleUser
			if msg.Role == model.RoleAssistant {
				role = sdk.MessageParamRoleAssistant
			}
			p.Messages = append(p.Messages, sdk.MessageParam{Role: role, Content: blocks})
		}
	}
	if len(r.Schema) > 0 {
		var schema map[string]any
		if err := json.Unmarshal(r.Schema, &schema); err != nil {
			return p, &model.Error{Code: model.ErrRequest, Provider: Name, Message: "the schema of the answer is no JSON object", Err: err}
		}
		p.OutputConfig.Format = sdk.JSONOutputFormatParam{Schema: schema}
	}
	m.think(&p, r)
	if !r.NoCache {
		mark(&p)
	}
	return p, nil
}

// answer is how long an answer may be where the request does not say. The API
// wants a number, and refuses one above the model's own limit.
func (m *Model) answer() int64 {
	switch {
	case strings.HasPrefix(m.id, "claude-3-5"), strings.HasPrefix(m.id, "claude-3-7"):
		return 8192
	case strings.HasPrefix(m.id, "claude-3"), strings.HasPrefix(m.id, "claude-2"):
		return 4096
	}
	return 16_000
}

var budgets = map[model.Effort]int64{model.EffortLow: 2048, model.EffortMedium: 8192, model.EffortHigh: 24_576}

// think sets how much the model thinks. Models from 4.6 on decide by
// themselves within an effort, older ones want a budget.
func (m *Model) think(p *sdk.MessageNewParams, r model.Request) {
	budget, some := budgets[r.Effort]
	switch {
	case before37.MatchString(m.id): // they do not think, and refuse to be told anything about it
	case r.Effort == model.EffortNone:
		p.Thinking.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	case !some:
	case m.adaptive():
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
		p.OutputConfig.Effort = sdk.OutputConfigEffort(r.Effort)
	case !lacksThinking(r.Messages):
		p.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
		p.MaxTokens = max(p.MaxTokens, budget+4096)
	}
}

var before37 = regexp.MustCompile(`^claude-(3-(5-)?(opus|sonnet|haiku)|2|instant)`)

var version = regexp.MustCompile(`^claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?:-|$)`)

// adaptive reports models that take no thinking budget any more.
func (m *Model) adaptive() bool {
	v := version.FindStringSubmatch(m.id)
	if v == nil {
		return true
	}
	major, _ := strconv.Atoi(v[1])
	minor, _ := strconv.Atoi(v[2])
	return major > 4 || major == 4 && minor >= 6
}

// lacksThinking reports a conversation in the middle of tool calls that were
// made without thinking, or by another provider: the API refuses to begin
// with it there.
func lacksThinking(messages []model.Message) bool {
	if len(messages) < 2 || messages[len(messages)-1].Role != model.RoleTool {
		return false
	}
	for _, b := range messages[len(messages)-2].Blocks {
		if b.Thinking != nil && wire.Native(b, Name) != nil {
			return false
		}
	}
	return true
}

// mark puts cache breakpoints (the API takes four) behind what will be sent
// again: the tools, the system prompt, and the newest two turns of the user's
// side, so that the next request finds the last one's prefix.
func mark(p *sdk.MessageNewParams) {
	if n := len(p.Tools); n > 0 {
		if c := p.Tools[n-1].GetCacheControl(); c != nil {
			*c = sdk.NewCacheControlEphemeralParam()
		}
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	left := 2
	for i := len(p.Messages) - 1; i >= 0 && left > 0; i-- {
		if p.Messages[i].Role != sdk.MessageParamRoleUser {
			continue
		}
		content := p.Messages[i].Content
		if c := content[len(content)-1].GetCacheControl(); c != nil {
			*c = sdk.NewCacheControlEphemeralParam()
			left--
		}
	}
}

func search(s *model.Search) sdk.ToolUnionParam {
	t := &sdk.WebSearchTool20250305Param{AllowedDomains: s.Allowed}
	if len(s.Allowed) == 0 { // the API takes one of the two
		t.BlockedDomains = s.Blocked
	}
	if s.MaxUses > 0 {
		t.MaxUses = sdk.Int(int64(s.MaxUses))
	}
	return sdk.ToolUnionParam{OfWebSearchTool20250305: t}
}

// blocks translates a message.
func blocks(m model.Message) []sdk.ContentBlockParamUnion {
	var out []sdk.ContentBlockParamUnion
	for _, b := range m.Blocks {
		switch raw := wire.Native(b, Name); {
		case raw != nil:
			out = append(out, param.Override[sdk.ContentBlockParamUnion](raw))
		case b.Call != nil:
			out = append(out, sdk.NewToolUseBlock(b.Call.ID, wire.Object(b.Call.Args), wire.Name(b.Call.Name)))
		case b.Result != nil:
			out = append(out, result(b.Result))
		case b.Content != nil && wire.Image(*b.Content):
			out = append(out, sdk.NewImageBlockBase64(b.Content.MIMEType, base64.StdEncoding.EncodeToString(b.Content.Data)))
		case b.Content != nil:
			if s := wire.Plain(*b.Content); strings.TrimSpace(s) != "" {
				out = append(out, sdk.NewTextBlock(s))
			}
		}
	}
	return out
}

func result(r *model.CallResult) sdk.ContentBlockParamUnion {
	block := sdk.ToolResultBlockParam{ToolUseID: r.ID}
	if r.IsError {
		block.IsError = sdk.Bool(true)
	}
	block.Content = append(block.Content, sdk.ToolResultBlockParamContentUnion{OfText: &sdk.TextBlockParam{Text: wire.Text(r.Result, wire.Image)}})
	for _, c := range r.Content {
		if wire.Image(c) {
			block.Content = append(block.Content, image(c))
		}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &block}
}

func image(c abi.Content) sdk.ToolResultBlockParamContentUnion {
	return sdk.ToolResultBlockParamContentUnion{OfImage: &sdk.ImageBlockParam{Source: sdk.ImageBlockParamSourceUnion{
		OfBase64: &sdk.Base64ImageSourceParam{
			MediaType: sdk.Base64ImageSourceMediaType(c.MIMEType), Data: base64.StdEncoding.EncodeToString(c.Data),
		},
	}}}
}
