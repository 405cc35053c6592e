package gemini

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// config translates all of a request but its messages.
func (m *Model) config(r model.Request) *genai.GenerateContentConfig {
	c := &genai.GenerateContentConfig{MaxOutputTokens: int32(min(r.MaxTokens, 1<<30)), ThinkingConfig: m.thinking(r.Effort)}
	if r.System != "" {
		c.SystemInstruction = &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{Text: r.System}}}
	}
	if len(r.Tools) > 0 {
		t := &genai.Tool{}
		for _, tool := range r.Tools {
			t.FunctionDeclarations = append(t.FunctionDeclarations, declare(tool))
		}
		c.Tools = append(c.Tools, t)
	}
	if r.Search != nil && Searches(m.id, len(r.Tools) > 0) {
		c.Tools = append(c.Tools, &genai.Tool{GoogleSearch: &genai.GoogleSearch{}})
	}
	if len(r.Schema) > 0 {
		c.ResponseMIMEType, c.ResponseJsonSchema = "application/json", r.Schema
	}
	return c
}

// Searches reports whether a model can search the web by itself: before Gemini
// 3 the API refuses its search beside functions.
func Searches(id string, functions bool) bool {
	return !functions || (&Model{id: id}).generation() >= 3
}

// declare passes a schema on as what it is: Gemini's own subset, which names
// types in capitals, or JSON Schema.
func declare(t model.Tool) *genai.FunctionDeclaration {
	d := &genai.FunctionDeclaration{Name: t.Name, Description: t.Description}
	var own genai.Schema
	switch {
	case len(t.Input) == 0 || string(t.Input) == "null":
	case json.Unmarshal(t.Input, &own) == nil && own.Type == genai.TypeObject:
		d.Parameters = &own
	default:
		d.ParametersJsonSchema = t.Input
	}
	return d
}

// generation is the first number of a model's name, 0 if there is none.
func (m *Model) generation() int {
	rest, ok := strings.CutPrefix(m.id, "gemini-")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return 0
	}
	return int(rest[0] - '0')
}

var budgets = map[model.Effort]int32{model.EffortNone: 0, model.EffortLow: 1024, model.EffortMedium: 8192, model.EffortHigh: 24_576}

// thinking sets how much the model thinks: a level from Gemini 3 on, a budget
// before. The Pro models cannot be told not to, and those before 2.5, like
// Gemma, nothing at all.
func (m *Model) thinking(e model.Effort) *genai.ThinkingConfig {
	budget, ok := budgets[e]
	if !ok || !strings.HasPrefix(m.id, "gemini-") || thoughtless.MatchString(m.id) {
		return nil
	}
	c := &genai.ThinkingConfig{IncludeThoughts: e != model.EffortNone}
	if m.generation() >= 3 {
		c.ThinkingLevel = m.level(e)
		return c
	}
	if strings.Contains(m.id, "pro") {
		budget = max(budget, 128)
	}
	c.ThinkingBudget = &budget
	return c
}

var thoughtless = regexp.MustCompile(`^gemini-(1|2\.0)`)

// level is the nearest that a model of the third generation has: the Flash
// models have all four, the Pro ones no least, and the first of them no middle.
func (m *Model) level(e model.Effort) genai.ThinkingLevel {
	switch pro := strings.Contains(m.id, "pro"); {
	case e == model.EffortNone && !pro:
		return genai.ThinkingLevelMinimal
	case e == model.EffortNone, e == model.EffortLow:
		return genai.ThinkingLevelLow
	case e == model.EffortMedium && !strings.HasPrefix(m.id, "gemini-3-pro"):
		return genai.ThinkingLevelMedium
	}
	return genai.ThinkingLevelHigh
}

// contents translates the messages.
func contents(messages []model.Message) []*genai.Content {
	var out []*genai.Content
	for _, m := range messages {
		c := &genai.Content{Role: genai.RoleUser}
		if m.Role == model.RoleAssistant {
			c.Role = genai.RoleModel
		}
		for _, b := range m.Blocks {
			c.Parts = append(c.Parts, parts(b)...)
		}
		if len(c.Parts) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// parts translates a block. Thoughts stay behind; their signatures, which
// came with other parts, go back with them.
func parts(b model.Block) []*genai.Part {
	var native struct {
		Signature []byte `json:"thoughtSignature"`
	}
	if raw := wire.Native(b, Name); raw != nil {
		_ = json.Unmarshal(raw, &native)
	}
	switch {
	case b.Call != nil:
		return []*genai.Part{{ThoughtSignature: native.Signature, FunctionCall: &genai.FunctionCall{
			ID: b.Call.ID, Name: wire.Name(b.Call.Name), Args: object(wire.Object(b.Call.Args)),
		}}}
	case b.Result != nil:
		return result(b.Result)
	case b.Content != nil && wire.Image(*b.Content):
		return []*genai.Part{{InlineData: &genai.Blob{MIMEType: b.Content.MIMEType, Data: b.Content.Data}}}
	case b.Content != nil:
		if s := wire.Plain(*b.Content); s != "" {
			return []*genai.Part{{Text: s, ThoughtSignature: native.Signature}}
		}
	}
	return nil
}

func result(r *model.CallResult) []*genai.Part {
	key := "result"
	if r.IsError {
		key = "error"
	}
	out := []*genai.Part{{FunctionResponse: &genai.FunctionResponse{
		ID: r.ID, Name: wire.Name(r.Name), Response: map[string]any{key: wire.Text(r.Result, wire.Image)},
	}}}
	for _, c := range r.Content {
		if wire.Image(c) {
			out = append(out, &genai.Part{InlineData: &genai.Blob{MIMEType: c.MIMEType, Data: c.Data}})
		}
	}
	return out
}

// object decodes without losing digits.
func object(raw json.RawMessage) map[string]any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o map[string]any
	_ = d.Decode(&o)
	return o
}
