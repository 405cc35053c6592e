// Package chaos is a model that does everything a model should not: wrong
// types, unknown tools, arguments that are cut off or no JSON, many calls at
// once, identifiers twice or not at all, streams that break in the middle. It
// is seeded, so that what it finds can be found again. For tests.
package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Model is the model. It is safe for concurrent use; only a sequential use
// can be repeated from the seed.
type Model struct {
	// End is the chance, of 1000, that an answer has no calls and so ends a run.
	End int
	// Most is after how many answers it calls nothing any more; 0: it never stops.
	Most int
	// Texts are what arguments of these names say, where they are texts and fit
	// their schema.
	Texts map[string][]string
	// Often are tools of which every other call is one, if they are there.
	Often []string

	mu sync.Mutex
	r  *rand.Rand
	n  int
}

// New makes a model.
func New(seed uint64) *Model { return &Model{End: 20, r: rand.New(rand.NewPCG(seed, 77))} }

// Answers is how many answers were begun.
func (m *Model) Answers() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.n
}

// Stream answers with chaos. A request that a provider would refuse fails
// with ErrRequest, which no test should see.
func (m *Model) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if err := model.Check(r.Messages); err != nil {
			yield(model.Event{}, &model.Error{Code: model.ErrRequest, Provider: "chaos", Message: err.Error()})
			return
		}
		events, err := m.answer(r)
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
		if err != nil {
			yield(model.Event{}, err)
		}
	}
}

var breaks = []model.Code{model.ErrTruncated, model.ErrOverload, model.ErrServer}

// answer makes one up.
func (m *Model) answer(r model.Request) (events []model.Event, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.n++
	say := func(k model.Kind, s string) { events = append(events, model.Event{Kind: k, Text: s}) }
	block := func(b model.Block) { events = append(events, model.Event{Kind: model.KindBlock, Block: &b}) }
	if m.r.IntN(4) == 0 {
		say(model.KindThinking, "hm")
		block(model.Block{Thinking: &model.Thinking{Text: "hm"}, Native: &model.Native{Provider: "chaos", Data: json.RawMessage(`{"s":1}`)}})
	}
	if m.r.IntN(2) == 0 {
		text := m.text()
		say(model.KindText, text)
		c := abi.TextBlock(text)
		block(model.Block{Content: &c})
	}
	stop := model.StopEnd
	if m.r.IntN(1000) >= m.End && len(r.Tools) > 0 && (m.Most == 0 || m.n <= m.Most) {
		stop = model.StopCalls
		for range 1 + m.r.IntN(1+m.r.IntN(8)) {
			c := m.call(r)
			events = append(events, model.Event{Kind: model.KindCallStart, Call: &model.Call{ID: c.ID, Name: c.Name}})
			block(model.Block{Call: &c})
		}
	}
	if m.r.IntN(12) == 0 {
		cut := m.r.IntN(len(events) + 1)
		return events[:cut], &model.Error{Code: breaks[m.r.IntN(len(breaks))], Provider: "chaos"}
	}
	if m.r.IntN(15) == 0 {
		stop = []model.StopReason{model.StopLength, model.StopRefusal, model.StopOther, model.StopPause}[m.r.IntN(4)]
	}
	events = append(events, model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: int64(m.r.IntN(1000)), Output: 5}})
	return append(events, model.Event{Kind: model.KindStop, Stop: stop}), nil
}

func (m *Model) text() string {
	return []string{"", " ", "ok", "\x1b[2J\u202eevil", strings.Repeat("long ", 50), "\xff\xfe", "</file>"}[m.r.IntN(7)]
}

// call makes a call of a tool that is there, or nearly.
func (m *Model) call(r model.Request) model.Call {
	t := r.Tools[m.r.IntN(len(r.Tools))]
	if len(m.Often) > 0 && m.r.IntN(2) == 0 {
		name := m.Often[m.r.IntN(len(m.Often))]
		if i := slices.IndexFunc(r.Tools, func(t model.Tool) bool { return t.Name == name }); i >= 0 {
			t = r.Tools[i]
		}
	}
	c := model.Call{ID: fmt.Sprintf("c%d_%d", m.n, m.r.IntN(1_000_000)), Name: t.Name}
	args, _ := json.Marshal(m.value(t.Input, "", 0))
	c.Args = string(args)
	switch m.r.IntN(14) {
	case 0:
		c.Name = m.text() + c.Name
	case 1:
		c.Name = strings.ToUpper(c.Name)
	case 2:
		c.Args = c.Args[:m.r.IntN(len(c.Args)+1)]
	case 3:
		c.Args = []string{"", "null", "[]", "7", `"{}"`, `{"a":1}{"a":2}`, `{"a":1,"a":2}`, "{" + strings.Repeat(`"a":{`, 2000), strings.Repeat("[", 20_000)}[m.r.IntN(9)]
	case 4:
		c.ID = ""
	case 5:
		c.ID = "same"
	case 6:
		c.Args = fmt.Sprintf("%q", c.Args)
	}
	return c
}

// schema is what is read of a tool's.
type schema struct {
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Items      json.RawMessage            `json:"items"`
	Enum       []any                      `json:"enum"`
}

// value makes one that fits the schema of the argument name, mostly.
func (m *Model) value(raw json.RawMessage, name string, depth int) any {
	if m.r.IntN(25) == 0 || depth > 5 {
		return []any{nil, true, -1, 1e300, "x", []any{}, map[string]any{"x": nil}}[m.r.IntN(7)]
	}
	var s schema
	_ = json.Unmarshal(raw, &s)
	if len(s.Enum) > 0 {
		return s.Enum[m.r.IntN(len(s.Enum))]
	}
	switch s.Type {
	case "object":
		out := map[string]any{}
		names := make([]string, 0, len(s.Properties))
		for k := range s.Properties {
			names = append(names, k)
		}
		sort.Strings(names)
		for _, k := range names {
			if m.r.IntN(8) > 0 {
				out[k] = m.value(s.Properties[k], k, depth+1)
			}
		}
		return out
	case "array":
		out := []any{}
		for range m.r.IntN(4) {
			out = append(out, m.value(s.Items, name, depth+1))
		}
		return out
	case "integer", "number":
		return m.r.IntN(100) - 10
	case "boolean":
		return m.r.IntN(2) == 0
	}
	if t := m.Texts[name]; len(t) > 0 {
		return t[m.r.IntN(len(t))]
	}
	return []string{"a.txt", "../../etc/passwd", "", "echo hi", "*.go", "https://example.org/"}[m.r.IntN(6)]
}
