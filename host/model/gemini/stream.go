package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/model/internal/wire"
)

// Stream sends the request. The library's own view of the answer goes through
// floating point, so each event is read again from its bytes.
func (m *Model) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		noted, notes := wire.WithNotes(ctx)
		a := answer{yield: yield, turn: len(r.Messages)}
		fail := func(err error) {
			if !a.left {
				yield(model.Event{}, wire.Err(ctx, Name, err))
			}
		}
		for _, err := range m.client.Models.GenerateContentStream(noted, m.id, contents(r.Messages), m.config(r)) {
			if err != nil {
				fail(err)
				return
			}
			raw, ok := notes.Next()
			if !ok {
				continue
			}
			if err := a.take(raw); err != nil {
				fail(err)
				return
			}
			if a.left {
				return
			}
		}
		if err := notes.Err(); err != nil {
			fail(err)
			return
		}
		if err := a.end(); err != nil {
			fail(err)
		}
	}
}

// event is a part of an answer.
type event struct {
	Candidates []struct {
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
		Grounding     struct {
			Queries []string `json:"webSearchQueries"`
		} `json:"groundingMetadata"`
	} `json:"candidates"`
	Feedback struct {
		BlockReason        string `json:"blockReason"`
		BlockReasonMessage string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	} `json:"usageMetadata"`
}

type part struct {
	Text      string `json:"text"`
	Thought   bool   `json:"thought"`
	Signature string `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// answer turns parts into events.
type answer struct {
	yield     func(model.Event, error) bool
	left      bool // nobody listens
	turn      int
	text      strings.Builder // of the block being written
	thinking  strings.Builder
	signature string
	calls     int
	searches  map[string]bool
	finish    string
	message   string
	blocked   bool
}

func (a *answer) send(e model.Event) {
	if !a.left {
		a.left = !a.yield(e, nil)
	}
}

func (a *answer) take(raw []byte) error {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	if len(e.Candidates) > 0 {
		c := e.Candidates[0]
		for _, p := range c.Content.Parts {
			a.part(p)
		}
		for _, q := range c.Grounding.Queries {
			a.search(q)
		}
		if c.FinishReason != "" {
			a.finish, a.message = c.FinishReason, c.FinishMessage
		}
	}
	if r := e.Feedback.BlockReason; r != "" {
		a.blocked, a.message = true, strings.TrimSpace(r+" "+e.Feedback.BlockReasonMessage)
	}
	if u := e.Usage; u != nil {
		a.send(model.Event{Kind: model.KindUsage, Usage: &model.Usage{
			Input: max(0, u.Prompt+u.ToolPrompt-u.Cached), CacheRead: u.Cached,
			Output: u.Candidates + u.Thoughts, Reasoning: u.Thoughts, Searches: int64(len(a.searches)),
		}})
	}
	return nil
}

func (a *answer) search(q string) {
	if a.searches == nil {
		a.searches = map[string]bool{}
	}
	if !a.searches[q] {
		a.searches[q] = true
		a.send(model.Event{Kind: model.KindSearch, Text: q})
	}
}

func (a *answer) part(p part) {
	switch {
	case p.Call != nil:
		a.flush()
		a.call(p)
	case p.Thought:
		a.flushText()
		if p.Text != "" {
			a.thinking.WriteString(p.Text)
			a.send(model.Event{Kind: model.KindThinking, Text: p.Text})
		}
	default:
		a.flushThinking()
		if p.Text != "" {
			a.text.WriteString(p.Text)
			a.send(model.Event{Kind: model.KindText, Text: p.Text})
		}
		if p.Signature != "" {
			a.signature = p.Signature
		}
	}
}

func (a *answer) call(p part) {
	a.calls++
	c := model.Call{ID: p.Call.ID, Name: p.Call.Name}
	if c.ID == "" {
		c.ID = fmt.Sprintf("call_%d_%d", a.turn, a.calls)
	}
	a.send(model.Event{Kind: model.KindCallStart, Call: &model.Call{ID: c.ID, Name: c.Name}})
	if s := string(p.Call.Args); s != "" && s != "null" {
		c.Args = s
		a.send(model.Event{Kind: model.KindCallArgs, Call: &model.Call{ID: c.ID, Name: c.Name}, Text: s})
	}
	a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c, Native: signed(p.Signature)}})
}

// signed is what must come back with a part.
func signed(signature string) *model.Native {
	if signature == "" {
		return nil
	}
	data, err := json.Marshal(map[string]string{"thoughtSignature": signature})
	if err != nil {
		return nil
	}
	return &model.Native{Provider: Name, Data: data}
}

func (a *answer) flush() {
	a.flushThinking()
	a.flushText()
}

func (a *answer) flushThinking() {
	if a.thinking.Len() > 0 {
		a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Thinking: &model.Thinking{Text: a.thinking.String()}}})
		a.thinking.Reset()
	}
}

func (a *answer) flushText() {
	if a.text.Len() > 0 {
		c := abi.TextBlock(a.text.String())
		a.send(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c, Native: signed(a.signature)}})
		a.text.Reset()
		a.signature = ""
	}
}

// end emits what is left, and the reason to stop.
func (a *answer) end() error {
	stop := model.StopOther
	switch a.finish {
	case "":
		if !a.blocked {
			return &model.Error{Code: model.ErrTruncated, Provider: Name}
		}
		stop = model.StopRefusal
	case "STOP":
		stop = model.StopEnd
		if a.calls > 0 {
			stop = model.StopCalls
		}
	case "MAX_TOKENS":
		stop = model.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE":
		stop = model.StopRefusal
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		// The call is not in the answer; another attempt usually has it.
		return &model.Error{Code: model.ErrServer, Provider: Name, Message: "the model wrote a call that Google could not read"}
	}
	a.flush()
	if stop == model.StopRefusal && a.message != "" {
		a.send(model.Event{Kind: model.KindRefusal, Text: a.message})
	}
	a.send(model.Event{Kind: model.KindStop, Stop: stop})
	return nil
}
