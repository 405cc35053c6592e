package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// tool is a host.Tool made of a function.
type tool struct {
	spec host.Spec
	call func(ctx context.Context, c host.Call) (abi.Result, error)
}

func (t tool) Spec() host.Spec                                           { return t.spec }
func (t tool) Call(ctx context.Context, c host.Call) (abi.Result, error) { return t.call(ctx, c) }

func newTool(name string, parallel bool, call func(ctx context.Context, args map[string]any) abi.Result) tool {
	return tool{
		spec: spec(name, parallel),
		call: func(ctx context.Context, c host.Call) (abi.Result, error) {
			var args map[string]any
			_ = json.Unmarshal(c.Args, &args)
			return call(ctx, args), nil
		},
	}
}

func spec(name string, parallel bool) host.Spec {
	return host.Spec{Name: name, Description: name + " of a test.", Parallel: parallel, Origin: host.Origin{Source: host.Builtin}, Input: json.RawMessage(`{"type":"object"}`)}
}

// registry holds tools behind a gate that asks nothing.
func registry(t ...host.Tool) *host.Registry {
	r := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := r.Add(t...); err != nil {
		panic(err)
	}
	return r
}

// script is a model whose n-th answer is made by the n-th function; the last
// one answers all further requests.
type script struct {
	mu       sync.Mutex
	n        int
	requests []model.Request
	turns    []func(ctx context.Context, r model.Request, yield func(model.Event, error) bool)
}

func (s *script) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		s.mu.Lock()
		turn := s.turns[min(s.n, len(s.turns)-1)]
		s.n++
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		if err := model.Check(r.Messages); err != nil {
			yield(model.Event{}, &model.Error{Code: model.ErrRequest, Message: err.Error()})
			return
		}
		turn(ctx, r, yield)
	}
}

type turn = func(ctx context.Context, r model.Request, yield func(model.Event, error) bool)

// says answers with text.
func says(text string) turn {
	return func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		c := abi.TextBlock(text)
		_ = yield(model.Event{Kind: model.KindText, Text: text}, nil) &&
			yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}}, nil) &&
			yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 10, Output: 2}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
	}
}

// does answers with calls.
func does(calls ...model.Call) turn { return stopsAfter(model.StopCalls, calls...) }

func stopsAfter(stop model.StopReason, calls ...model.Call) turn {
	return func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		for _, c := range calls {
			if !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c}}, nil) {
				return
			}
		}
		_ = yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 10, Output: 2}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: stop}, nil)
	}
}

func fails(err error) turn {
	return func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		yield(model.Event{}, err)
	}
}

// memory is a journal that can be made to fail.
type memory struct {
	mu      sync.Mutex
	records []Record
	fail    func(Record) error
}

func (m *memory) Append(_ context.Context, _ string, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		if err := m.fail(r); err != nil {
			return err
		}
	}
	// Through JSON, as a store would keep it.
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	var back Record
	if err := json.Unmarshal(b, &back); err != nil {
		return err
	}
	m.records = append(m.records, back)
	return nil
}

// kept is what was written so far; background children may be writing still.
func (m *memory) kept() []Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Record(nil), m.records...)
}

func newLoop(m model.Model, tools ...host.Tool) *Loop {
	return &Loop{Model: m, Tools: registry(tools...), Retry: model.Retry{Attempts: 3, First: time.Millisecond}}
}

// drain ranges over a run and gives its events; the last one is KindDone.
func drain(t testing.TB, seq iter.Seq2[Event, error]) ([]Event, error) {
	t.Helper()
	var events []Event
	var last error
	for e, err := range seq {
		if last != nil || len(events) > 0 && events[len(events)-1].Kind == KindDone {
			t.Errorf("event %q after the end", e.Kind)
		}
		events = append(events, e)
		last = err
	}
	if len(events) == 0 || events[len(events)-1].Kind != KindDone {
		t.Fatalf("a run ended without %q: %v", KindDone, events)
	}
	return events, last
}

func stopOf(events []Event) Stop { return events[len(events)-1].Stop }

// resultsOf lists the results of the newest tool message.
func resultsOf(t testing.TB, s *Session) []model.CallResult {
	t.Helper()
	messages := s.Messages()
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == model.RoleTool {
			var out []model.CallResult
			for _, b := range messages[i].Blocks {
				out = append(out, *b.Result)
			}
			return out
		}
	}
	t.Fatal("no tool message")
	return nil
}

func text(s string) abi.Content { return abi.TextBlock(s) }

func call(id, name, args string) model.Call { return model.Call{ID: id, Name: name, Args: args} }

var errDisk = errors.New("disk full")

func mustValid(t testing.TB, s *Session) {
	t.Helper()
	if err := model.Check(s.Messages()); err != nil {
		t.Fatalf("the transcript is broken: %v", err)
	}
}

func ids(n int, name, args string) []model.Call {
	var out []model.Call
	for i := range n {
		out = append(out, call(fmt.Sprintf("c%d", i), name, args))
	}
	return out
}
