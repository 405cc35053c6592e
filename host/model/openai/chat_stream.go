package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Stream sends the request.
func (c *chat) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		req := c.request(r)
		noted, notes := wire.WithNotes(wire.WithPatch(ctx, req.patch))
		stream, err := c.p.client.CreateChatCompletionStream(noted, req.ChatCompletionRequest)
		if err != nil {
			yield(model.Event{}, wire.Err(ctx, c.p.opt.Name, err))
			return
		}
		defer stream.Close()
		a := chatAnswer{out: out{yield: yield}, provider: c.p.opt.Name, turn: len(r.Messages)}
		if rate := notes.Rate(); rate != nil {
			a.send(model.Event{Kind: model.KindRate, Rate: rate})
		}
		for !a.left {
			raw, err := stream.RecvRaw()
			if errors.Is(err, io.EOF) {
				err = a.end()
				if err == nil {
					return
				}
			}
			if err == nil {
				err = a.take(raw)
			}
			if err != nil && !a.left {
				yield(model.Event{}, wire.Err(ctx, c.p.opt.Name, err))
				return
			}
		}
	}
}

// out is where events go.
type out struct {
	yield func(model.Event, error) bool
	left  bool // nobody listens
}

func (o *out) send(e model.Event) {
	if !o.left {
		o.left = !o.yield(e, nil)
	}
}

// chunk is a piece of an answer, with the fields of all vendors.
type chunk struct {
	Choices []struct {
		Index int `json:"index"`
		Delta struct {
			Content          json.RawMessage   `json:"content"`
			Refusal          string            `json:"refusal"`
			ReasoningContent string            `json:"reasoning_content"` // DeepSeek, xAI, vLLM, llama.cpp
			Reasoning        string            `json:"reasoning"`         // OpenRouter, Ollama, Groq
			ReasoningDetails []json.RawMessage `json:"reasoning_details"` // OpenRouter
			ToolCalls        []toolPiece       `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage     *chatUsage `json:"usage"`
	Citations []string   `json:"citations"` // xAI
}

type toolPiece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"function"`
}

type chatUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
	Hit        int64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	In         struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Out struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Sources int64 `json:"num_sources_used"` // xAI
}

func (u chatUsage) usage() model.Usage {
	cached := max(u.In.Cached, u.Hit)
	v := model.Usage{Input: max(0, u.Prompt-cached), CacheRead: cached, Output: u.Completion, Reasoning: u.Out.Reasoning, Searches: u.Sources}
	if u.Out.Reasoning > 0 && u.Total == u.Prompt+u.Completion+u.Out.Reasoning {
		v.Output += u.Out.Reasoning // xAI counts it beside the completion, all others inside
	}
	return v
}

// chatAnswer turns chunks into events.
type chatAnswer struct {
	out
	provider string
	turn     int
	text     strings.Builder
	refusal  strings.Builder
	thinking strings.Builder
	plain    bool // thinking came as reasoning_content
	details  []map[string]json.RawMessage
	calls    []*model.Call
	named    map[*model.Call]bool
	byIndex  map[int]*model.Call
	finish   string
	cited    []string
}

func (a *chatAnswer) take(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	if len(c.Citations) > 0 {
		a.cited = c.Citations
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		d := ch.Delta
		a.plain = a.plain || d.ReasoningContent != ""
		thought, text := content(d.Content)
		a.think(d.ReasoningContent + thought)
		if d.ReasoningContent == "" {
			a.think(d.Reasoning)
		}
		for _, r := range d.ReasoningDetails {
			a.detail(r)
		}
		a.say(text)
		if d.Refusal != "" {
			a.refusal.WriteString(d.Refusal)
			a.send(model.Event{Kind: model.KindRefusal, Text: d.Refusal})
		}
		for _, t := range d.ToolCalls {
			a.piece(t)
		}
		if ch.FinishReason != "" {
			a.finish = ch.FinishReason
		}
	}
	if c.Usage != nil {
		u := c.Usage.usage()
		a.send(model.Event{Kind: model.KindUsage, Usage: &u})
	}
	return nil
}

// content is text, or Mistral's list of parts.
func content(raw json.RawMessage) (thinking, text string) {
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return "", text
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		switch p.Type {
		case "thinking":
			_, inner := content(p.Thinking)
			thinking += inner
		case "text":
			text += p.Text
		}
	}
	return thinking, text
}

func (a *chatAnswer) think(s string) {
	if s != "" {
		a.thinking.WriteString(s)
		a.send(model.Event{Kind: model.KindThinking, Text: s})
	}
}

func (a *chatAnswer) say(s string) {
	if s != "" {
		a.text.WriteString(s)
		a.send(model.Event{Kind: model.KindText, Text: s})
	}
}

// detail joins OpenRouter's pieces of reasoning, which it wants back whole.
func (a *chatAnswer) detail(raw json.RawMessage) {
	var d map[string]json.RawMessage
	if json.Unmarshal(raw, &d) != nil {
		return
	}
	if n := len(a.details); n > 0 && string(a.details[n-1]["type"]) == string(d["type"]) && string(a.details[n-1]["index"]) == string(d["index"]) {
		last := a.details[n-1]
		for k, v := range d {
			var old, more string
			if (k == "text" || k == "summary" || k == "data") && json.Unmarshal(last[k], &old) == nil && json.Unmarshal(v, &more) == nil {
				v, _ = json.Marshal(old + more)
			}
			if string(v) != "null" {
				last[k] = v
			}
		}
		return
	}
	a.details = append(a.details, d)
}

// piece adds to a call. A call begins with an index that is new, or with an
// ID that is: some servers give every call the index 0, others none at all.
func (a *chatAnswer) piece(t toolPiece) {
	if a.byIndex == nil {
		a.byIndex, a.named = map[int]*model.Call{}, map[*model.Call]bool{}
	}
	var c *model.Call
	if t.Index != nil {
		c = a.byIndex[*t.Index]
	} else if len(a.calls) > 0 {
		c = a.calls[len(a.calls)-1]
	}
	if c == nil || t.ID != "" && c.ID != "" && c.ID != t.ID || t.Index == nil && t.ID == "" && t.Function.Name != "" {
		c = &model.Call{}
		a.calls = append(a.calls, c)
		if t.Index != nil {
			a.byIndex[*t.Index] = c
		}
	}
	if c.ID == "" {
		c.ID = t.ID
	}
	if t.Function.Name != c.Name { // some repeat it with every piece
		c.Name += t.Function.Name
	}
	if c.Name != "" && !a.named[c] {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%d_%d", a.turn, len(a.calls))
		}
		a.named[c] = true
		a.send(model.Event{Kind: model.KindCallStart, Call: &model.Call{ID: c.ID, Name: c.Name}})
	}
	if s := argText(t.Function.Arguments); s != "" {
		c.Args += s
		a.send(model.Event{Kind: model.KindCallArgs, Call: &model.Call{ID: c.ID, Name: c.Name}, Text: s})
	}
}

// argText is a piece of the arguments; some servers send an object.
func argText(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// end emits the blocks. Only a reason to finish makes an answer whole.
func (a *chatAnswer) end() error {
	stop, ok := map[string]model.StopReason{
		"": "", "stop": model.StopEnd, "eos": model.StopEnd, "tool_calls": model.StopCalls, "function_call": model.StopCalls,
		"length": model.StopLength, "content_filter": model.StopRefusal,
	}[a.finish]
	switch {
	case a.finish == "":
		return &model.Error{Code: model.ErrTruncated, Provider: a.provider}
	case a.finish == "error":
		return &model.Error{Code: model.ErrServer, Provider: a.provider, Message: "it ended the answer with an error"}
	case !ok:
		stop = model.StopOther
	case stop == model.StopEnd && len(a.calls) > 0:
		stop = model.StopCalls
	case a.refusal.Len() > 0 && len(a.calls) == 0:
		stop = model.StopRefusal
	}
	if a.thinking.Len() > 0 || len(a.details) > 0 {
		a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Thinking: &model.Thinking{Text: a.thinking.String()}, Native: a.native()}})
	}
	if a.text.Len() > 0 {
		a.block(a.text.String())
	}
	for _, c := range a.calls {
		a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: c}})
	}
	a.send(model.Event{Kind: model.KindStop, Stop: stop})
	return nil
}

// block emits the text, with the sources that xAI names beside it.
func (a *chatAnswer) block(text string) {
	if len(a.cited) > 0 {
		var b strings.Builder
		b.WriteString("\n\nSources:")
		for i, u := range a.cited {
			fmt.Fprintf(&b, "\n[%d] %s", i+1, u)
		}
		a.send(model.Event{Kind: model.KindText, Text: b.String()})
		text += b.String()
	}
	c := abi.TextBlock(text)
	a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}})
}

// native is the reasoning in the vendor's own words.
func (a *chatAnswer) native() *model.Native {
	var v any
	switch {
	case len(a.details) > 0:
		v = map[string]any{"reasoning_details": a.details}
	case a.plain:
		v = map[string]any{"reasoning_content": a.thinking.String()}
	default:
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return &model.Native{Provider: a.provider, Data: data}
}
