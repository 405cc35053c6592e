package anthropic

import (
	"context"
	"encoding/json"
	"iter"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Stream sends the request.
func (m *Model) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		params, err := m.params(r)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		noted, notes := wire.WithNotes(ctx)
		stream := m.client.Messages.NewStreaming(noted, params)
		defer stream.Close()
		a := answer{yield: yield, open: map[int64]*block{}}
		for !a.left && stream.Next() {
			if rate := notes.Rate(); rate != nil && !a.rated {
				a.rated = true
				a.send(model.Event{Kind: model.KindRate, Rate: rate})
			}
			a.take(stream.Current())
		}
		switch err := stream.Err(); {
		case a.left:
		case err != nil:
			yield(model.Event{}, wire.Err(ctx, Name, err))
		case !a.whole:
			yield(model.Event{}, &model.Error{Code: model.ErrTruncated, Provider: Name})
		default:
			a.send(model.Event{Kind: model.KindStop, Stop: a.stop})
		}
	}
}

// answer turns vendor events into ours.
type answer struct {
	yield func(model.Event, error) bool
	left  bool // nobody listens
	rated bool
	whole bool // message_stop was seen
	open  map[int64]*block
	usage model.Usage
	stop  model.StopReason
}

// block is a content block that is being written.
type block struct {
	kind      string
	raw       string // as it began
	call      model.Call
	text      strings.Builder // text, thinking or partial JSON
	signature string
	citations []json.RawMessage
}

func (a *answer) send(e model.Event) {
	if !a.left {
		a.left = !a.yield(e, nil)
	}
}

func (a *answer) take(e sdk.MessageStreamEventUnion) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		a.usage = model.Usage{Input: u.InputTokens, CacheRead: u.CacheReadInputTokens, CacheWrite: u.CacheCreationInputTokens, Output: u.OutputTokens}
		a.send(model.Event{Kind: model.KindUsage, Usage: a.count()})
	case "content_block_start":
		a.begin(e)
	case "content_block_delta":
		if b := a.open[e.Index]; b != nil {
			a.delta(b, e)
		}
	case "content_block_stop":
		if b := a.open[e.Index]; b != nil {
			delete(a.open, e.Index)
			a.finish(b)
		}
	case "message_delta":
		a.total(e.Usage)
		a.stop = reason(string(e.Delta.StopReason))
		if a.stop == model.StopRefusal {
			a.send(model.Event{Kind: model.KindRefusal, Text: e.Delta.StopDetails.Explanation})
		}
	case "message_stop":
		a.whole = true
	}
}

// total takes the cumulative counts. Some servers send only the output.
func (a *answer) total(u sdk.MessageDeltaUsage) {
	a.usage.Input = max(a.usage.Input, u.InputTokens)
	a.usage.CacheRead = max(a.usage.CacheRead, u.CacheReadInputTokens)
	a.usage.CacheWrite = max(a.usage.CacheWrite, u.CacheCreationInputTokens)
	a.usage.Output = max(a.usage.Output, u.OutputTokens)
	a.usage.Reasoning = u.OutputTokensDetails.ThinkingTokens
	a.usage.Searches = u.ServerToolUse.WebSearchRequests
	a.send(model.Event{Kind: model.KindUsage, Usage: a.count()})
}

func (a *answer) count() *model.Usage { u := a.usage; return &u }

func (a *answer) begin(e sdk.MessageStreamEventUnion) {
	c := e.ContentBlock
	b := &block{kind: c.Type, raw: c.RawJSON(), call: model.Call{ID: c.ID, Name: c.Name}}
	a.open[e.Index] = b
	switch c.Type {
	case "text":
		b.text.WriteString(c.Text)
		a.say(model.KindText, c.Text)
	case "thinking":
		b.text.WriteString(c.Thinking)
		b.signature = c.Signature
		a.say(model.KindThinking, c.Thinking)
	case "tool_use":
		a.send(model.Event{Kind: model.KindCallStart, Call: b.name()})
	}
}

func (b *block) name() *model.Call { return &model.Call{ID: b.call.ID, Name: b.call.Name} }

func (a *answer) say(k model.Kind, s string) {
	if s != "" {
		a.send(model.Event{Kind: k, Text: s})
	}
}

func (a *answer) delta(b *block, e sdk.MessageStreamEventUnion) {
	d := e.Delta
	switch d.Type {
	case "text_delta":
		b.text.WriteString(d.Text)
		a.say(model.KindText, d.Text)
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
		a.say(model.KindThinking, d.Thinking)
	case "signature_delta":
		b.signature += d.Signature
	case "citations_delta":
		b.citations = append(b.citations, json.RawMessage(d.Citation.RawJSON()))
	case "input_json_delta":
		b.text.WriteString(d.PartialJSON)
		if b.kind == "tool_use" && d.PartialJSON != "" {
			a.send(model.Event{Kind: model.KindCallArgs, Call: b.name(), Text: d.PartialJSON})
		}
	}
}

// finish emits a block for the transcript.
func (a *answer) finish(b *block) {
	var out model.Block
	text := b.text.String()
	switch b.kind {
	case "text":
		c := abi.TextBlock(text)
		out.Content = &c
		if len(b.citations) > 0 {
			out.Native = native(map[string]any{"type": "text", "text": text, "citations": b.citations})
		}
	case "thinking":
		out.Thinking = &model.Thinking{Text: text}
		if b.signature != "" {
			out.Native = native(map[string]any{"type": "thinking", "thinking": text, "signature": b.signature})
		}
	case "redacted_thinking":
		out.Thinking, out.Native = &model.Thinking{}, &model.Native{Provider: Name, Data: json.RawMessage(b.raw)}
	case "tool_use":
		c := b.call
		c.Args = b.input()
		out.Call = &c
	case "server_tool_use":
		input := wire.Object(b.input())
		var q struct{ Query string }
		_ = json.Unmarshal(input, &q)
		a.send(model.Event{Kind: model.KindSearch, Text: q.Query})
		out.Native = native(map[string]any{"type": b.kind, "id": b.call.ID, "name": b.call.Name, "input": input})
	default: // results of the provider's own tools come whole
		out.Native = &model.Native{Provider: Name, Data: json.RawMessage(b.raw)}
	}
	a.send(model.Event{Kind: model.KindBlock, Block: &out})
}

// input is what was written of the arguments; some servers send them whole
// with the start of the block.
func (b *block) input() string {
	if b.text.Len() > 0 {
		return b.text.String()
	}
	var start struct {
		Input json.RawMessage `json:"input"`
	}
	_ = json.Unmarshal([]byte(b.raw), &start)
	if s := string(start.Input); s != "{}" && s != "null" {
		return s
	}
	return ""
}

func native(v any) *model.Native {
	data, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return &model.Native{Provider: Name, Data: data}
}

func reason(s string) model.StopReason {
	switch s {
	case "end_turn":
		return model.StopEnd
	case "tool_use":
		return model.StopCalls
	case "max_tokens":
		return model.StopLength
	case "model_context_window_exceeded":
		return model.StopWindow
	case "refusal":
		return model.StopRefusal
	case "pause_turn":
		return model.StopPause
	case "stop_sequence":
		return model.StopSequence
	}
	return model.StopOther
}
