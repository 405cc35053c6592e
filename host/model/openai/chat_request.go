package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/sashabaranov/go-openai"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// chat is a model behind the Chat Completions API.
type chat struct {
	p  *Provider
	id string
}

// chatRequest is a request in the library's types, with what those lack.
type chatRequest struct {
	sdk.ChatCompletionRequest
	extra    map[string]any                     // fields of the request
	messages map[int]map[string]json.RawMessage // fields of its messages
}

func (c *chat) request(r model.Request) chatRequest {
	out := chatRequest{extra: map[string]any{}, messages: map[int]map[string]json.RawMessage{}}
	out.Model = c.id
	out.StreamOptions = &sdk.StreamOptions{IncludeUsage: true}
	if c.p.opt.Name == "openai" {
		out.MaxCompletionTokens = int(r.MaxTokens)
	} else {
		//lint:ignore SA1019 deprecated at OpenAI, but most servers know no other name
		out.MaxTokens = int(r.MaxTokens)
	}
	if r.System != "" {
		out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleSystem, Content: r.System})
	}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, sdk.Tool{Type: sdk.ToolTypeFunction, Function: &sdk.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: wire.Schema(t.Input),
		}})
	}
	if len(r.Schema) > 0 {
		out.ResponseFormat = &sdk.ChatCompletionResponseFormat{
			Type:       sdk.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &sdk.ChatCompletionResponseFormatJSONSchema{Name: "answer", Schema: r.Schema},
		}
	}
	for _, m := range r.Messages {
		c.message(&out, m)
	}
	c.own(&out, r)
	for k, v := range c.p.opt.Extra {
		out.extra[k] = v
	}
	return out
}

// own sets the fields that vendors have invented for the same things.
func (c *chat) own(out *chatRequest, r model.Request) {
	vendor := c.p.opt.Name
	switch { // most servers have no word for none
	case r.Effort == model.EffortDefault:
	case vendor == "openrouter":
		out.extra["reasoning"] = map[string]any{"effort": string(r.Effort)}
	case r.Effort != model.EffortNone || vendor == "ollama":
		out.ReasoningEffort = string(r.Effort)
	}
	if r.CacheKey != "" && !r.NoCache && vendor == "openai" {
		out.extra["prompt_cache_key"] = r.CacheKey
	}
	if r.Search == nil {
		return
	}
	switch vendor { // xAI's search is a tool of its Responses API alone
	case "openai":
		out.extra["web_search_options"] = map[string]any{}
	case "openrouter":
		out.extra["plugins"] = []any{map[string]any{"id": "web"}}
	}
}

// message translates one of ours, which may become several.
func (c *chat) message(out *chatRequest, m model.Message) {
	switch m.Role {
	case model.RoleAssistant:
		c.said(out, m)
	case model.RoleTool:
		c.results(out, m)
	default:
		out.Messages = append(out.Messages, user(m.Blocks))
	}
}

// said translates what the model said.
func (c *chat) said(out *chatRequest, m model.Message) {
	msg := sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleAssistant, Content: m.Text()}
	own := map[string]json.RawMessage{}
	for _, b := range m.Blocks {
		if b.Call != nil {
			msg.ToolCalls = append(msg.ToolCalls, sdk.ToolCall{ID: b.Call.ID, Type: sdk.ToolTypeFunction, Function: sdk.FunctionCall{
				Name: wire.Name(b.Call.Name), Arguments: string(wire.Object(b.Call.Args)),
			}})
		}
		// Reasoning goes back to who made it, and only with calls, which it explains.
		if raw := wire.Native(b, c.p.opt.Name); raw != nil && b.Thinking != nil && len(m.Calls()) > 0 {
			_ = json.Unmarshal(raw, &own)
		}
	}
	if msg.Content == "" && len(msg.ToolCalls) == 0 {
		return
	}
	if len(own) > 0 {
		out.messages[len(out.Messages)] = own
	}
	out.Messages = append(out.Messages, msg)
}

// results translates results. Their images follow as a message of the user,
// since this API has no other place for them.
func (c *chat) results(out *chatRequest, m model.Message) {
	var images []model.Block
	for _, b := range m.Blocks {
		text := wire.Text(b.Result.Result, wire.Image)
		if b.Result.IsError {
			text = "Error: " + strings.TrimPrefix(text, "Error: ")
		}
		out.Messages = append(out.Messages, sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleTool, ToolCallID: b.Result.ID, Content: text})
		for _, part := range b.Result.Content {
			if wire.Image(part) {
				images = append(images, model.Block{Content: &part})
			}
		}
	}
	if len(images) > 0 {
		note := abi.TextBlock("The images of the results above:")
		out.Messages = append(out.Messages, user(append([]model.Block{{Content: &note}}, images...)))
	}
}

// user translates content; text alone stays a string, which every server takes.
func user(blocks []model.Block) sdk.ChatCompletionMessage {
	msg := sdk.ChatCompletionMessage{Role: sdk.ChatMessageRoleUser}
	var texts []string
	images := false
	for _, b := range blocks {
		if b.Content == nil {
			continue
		}
		part := sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeText, Text: wire.Plain(*b.Content)}
		if wire.Image(*b.Content) {
			images = true
			part = sdk.ChatMessagePart{Type: sdk.ChatMessagePartTypeImageURL, ImageURL: &sdk.ChatMessageImageURL{URL: wire.DataURL(*b.Content)}}
		}
		texts = append(texts, part.Text)
		msg.MultiContent = append(msg.MultiContent, part)
	}
	if !images {
		msg.MultiContent, msg.Content = nil, strings.Join(texts, "\n")
	}
	return msg
}

// patch adds what the library's types lack.
func (r chatRequest) patch(body map[string]json.RawMessage) error {
	for k, v := range r.extra {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		body[k] = raw
	}
	if len(r.messages) == 0 {
		return nil
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(body["messages"], &list); err != nil {
		return err
	}
	for i, own := range r.messages {
		for k, v := range own {
			list[i][k] = v
		}
	}
	raw, err := json.Marshal(list)
	body["messages"] = raw
	return err
}
