package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Stream sends the request.
func (m *responses) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		noted, notes := wire.WithNotes(ctx)
		stream, err := m.p.client.CreateResponseStream(noted, m.request(r))
		if err != nil {
			yield(model.Event{}, wire.Err(ctx, m.p.opt.Name, err))
			return
		}
		defer stream.Close()
		a := responsesAnswer{out: out{yield: yield}, m: m}
		if rate := notes.Rate(); rate != nil {
			a.send(model.Event{Kind: model.KindRate, Rate: rate})
		}
		for !a.left && !a.whole {
			raw, err := stream.RecvRaw()
			if errors.Is(err, io.EOF) {
				err = &model.Error{Code: model.ErrTruncated, Provider: m.p.opt.Name}
			}
			if err == nil {
				err = a.take(raw)
			}
			if err != nil && !a.left {
				yield(model.Event{}, wire.Err(ctx, m.p.opt.Name, err))
				return
			}
		}
	}
}

// responseEvent is an event of the stream, with what is used of it.
type responseEvent struct {
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	Index    int             `json:"output_index"`
	Summary  int             `json:"summary_index"`
	Item     json.RawMessage `json:"item"`
	Response struct {
		Error      json.RawMessage `json:"error"`
		Incomplete struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *struct {
			Input  int64 `json:"input_tokens"`
			Output int64 `json:"output_tokens"`
			In     struct {
				Cached int64 `json:"cached_tokens"`
			} `json:"input_tokens_details"`
			Out struct {
				Reasoning int64 `json:"reasoning_tokens"`
			} `json:"output_tokens_details"`
		} `json:"usage"`
	} `json:"response"`
}

// outputItem is a part of an answer.
type outputItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text string `json:"text"`
	} `json:"summary"`
	Action struct {
		Type  string `json:"type"`
		Query string `json:"query"`
		URL   string `json:"url"`
	} `json:"action"`
}

// responsesAnswer turns events of the vendor into ours.
type responsesAnswer struct {
	out
	m        *responses
	open     map[int]*model.Call // calls being written, by output index
	calls    int
	searches int64
	refused  bool
	said     bool
	whole    bool
}

func (a *responsesAnswer) take(raw []byte) error {
	var e responseEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	switch e.Type {
	case "response.output_text.delta":
		a.send(model.Event{Kind: model.KindText, Text: e.Delta})
	case "response.refusal.delta":
		a.send(model.Event{Kind: model.KindRefusal, Text: e.Delta})
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.send(model.Event{Kind: model.KindThinking, Text: e.Delta})
	case "response.reasoning_summary_part.added":
		if e.Summary > 0 {
			a.send(model.Event{Kind: model.KindThinking, Text: "\n\n"})
		}
	case "response.output_item.added":
		return a.begin(e)
	case "response.function_call_arguments.delta":
		if c := a.open[e.Index]; c != nil && e.Delta != "" {
			a.send(model.Event{Kind: model.KindCallArgs, Call: &model.Call{ID: c.ID, Name: c.Name}, Text: e.Delta})
		}
	case "response.output_item.done":
		return a.finish(e)
	case "response.completed", "response.done", "response.incomplete":
		a.end(e)
	case "response.failed":
		return a.m.p.errors.Parse(0, e.Response.Error)
	}
	return nil
}

func (a *responsesAnswer) begin(e responseEvent) error {
	var it outputItem
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return err
	}
	if it.Type != "function_call" {
		return nil
	}
	if a.open == nil {
		a.open = map[int]*model.Call{}
	}
	a.open[e.Index] = &model.Call{ID: it.CallID, Name: it.Name}
	a.send(model.Event{Kind: model.KindCallStart, Call: &model.Call{ID: it.CallID, Name: it.Name}})
	return nil
}

// finish emits the block of an item.
func (a *responsesAnswer) finish(e responseEvent) error {
	var it outputItem
	if err := json.Unmarshal(e.Item, &it); err != nil {
		return err
	}
	var b model.Block
	switch it.Type {
	case "message":
		a.message(it, e.Item)
		return nil
	case "function_call":
		a.calls++
		b.Call = &model.Call{ID: it.CallID, Name: it.Name, Args: it.Arguments}
	case "reasoning":
		b.Thinking = &model.Thinking{Text: summary(it)}
		if it.Encrypted != "" { // without it the item means nothing to the vendor
			b.Native = a.native(a.m.reasoning(e.Item))
		}
	case "web_search_call":
		a.searches++
		query := it.Action.Query
		if query == "" {
			query = it.Action.URL
		}
		a.send(model.Event{Kind: model.KindSearch, Text: query})
		if a.m.xai() { // what it found is in its encrypted reasoning
			return nil
		}
		b.Native = a.native(e.Item)
	default:
		return nil
	}
	a.send(model.Event{Kind: model.KindBlock, Block: &b})
	return nil
}

// message emits the text of a message item. What is sent back of it is its
// text and whatever else the vendor put beside it, without annotations.
func (a *responsesAnswer) message(it outputItem, raw json.RawMessage) {
	var text strings.Builder
	for _, p := range it.Content {
		text.WriteString(p.Text)
		a.refused = a.refused || p.Refusal != ""
	}
	if text.Len() == 0 {
		return
	}
	a.said = true
	c := abi.TextBlock(text.String())
	if a.m.xai() {
		a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}})
		return
	}
	content, _ := json.Marshal([]any{item{"type": "output_text", "text": text.String(), "annotations": []any{}}})
	var o map[string]json.RawMessage
	_ = json.Unmarshal(keep(raw, "id", "status"), &o)
	o["content"] = content
	data, _ := json.Marshal(o)
	a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c, Native: a.native(data)}})
}

func (a *responsesAnswer) native(data json.RawMessage) *model.Native {
	if data == nil {
		return nil
	}
	return &model.Native{Provider: a.m.nativeName(), Data: data}
}

func summary(it outputItem) string {
	var parts []string
	for _, s := range it.Summary {
		parts = append(parts, s.Text)
	}
	for _, c := range it.Content {
		parts = append(parts, c.Text)
	}
	return strings.Join(parts, "\n\n")
}

func (a *responsesAnswer) end(e responseEvent) {
	if u := e.Response.Usage; u != nil {
		a.send(model.Event{Kind: model.KindUsage, Usage: &model.Usage{
			Input: max(0, u.Input-u.In.Cached), CacheRead: u.In.Cached, Output: u.Output, Reasoning: u.Out.Reasoning, Searches: a.searches,
		}})
	}
	stop := model.StopEnd
	switch reason := e.Response.Incomplete.Reason; {
	case reason == "max_output_tokens":
		stop = model.StopLength
	case reason == "content_filter", a.refused && !a.said && a.calls == 0:
		stop = model.StopRefusal
	case reason != "":
		stop = model.StopOther
	case a.calls > 0:
		stop = model.StopCalls
	}
	a.whole = true
	a.send(model.Event{Kind: model.KindStop, Stop: stop})
}
