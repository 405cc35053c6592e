package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
)

// script is a model that answers by what was said so far: answers[i] is given
// after i answers of its own are in the conversation.
type script []func(yield func(model.Event, error) bool)

func (s script) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		if err := model.Check(r.Messages); err != nil {
			yield(model.Event{}, &model.Error{Code: model.ErrRequest, Message: err.Error()})
			return
		}
		n := 0
		for _, m := range r.Messages {
			if m.Role == model.RoleAssistant {
				n++
			}
		}
		if n >= len(s) {
			yield(model.Event{}, &model.Error{Code: model.ErrRequest, Message: "nothing more"})
			return
		}
		s[n](yield)
	}
}

func says(pieces ...string) func(func(model.Event, error) bool) {
	return func(yield func(model.Event, error) bool) {
		for _, p := range pieces {
			if !yield(model.Event{Kind: model.KindText, Text: p}, nil) {
				return
			}
		}
		c := abi.TextBlock(strings.Join(pieces, ""))
		_ = yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}}, nil) &&
			yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 10, Output: 2}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
	}
}

func does(calls ...model.Call) func(func(model.Event, error) bool) {
	return func(yield func(model.Event, error) bool) {
		for _, c := range calls {
			if !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c}}, nil) {
				return
			}
		}
		_ = yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 10, Output: 2}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: model.StopCalls}, nil)
	}
}

func call(id, name, args string) model.Call { return model.Call{ID: id, Name: name, Args: args} }

type tool struct {
	spec host.Spec
	run  func(ctx context.Context, c host.Call) (abi.Result, error)
}

func (t tool) Spec() host.Spec                                           { return t.spec }
func (t tool) Call(ctx context.Context, c host.Call) (abi.Result, error) { return t.run(ctx, c) }

func newTool(name string, kind host.Kind, run func(ctx context.Context, c host.Call) (abi.Result, error)) tool {
	return tool{host.Spec{
		Name: name, Description: name + " of a test.", Kind: kind, Origin: host.Origin{Source: host.Builtin},
		Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"},"path":{"type":"string"}}}`),
	}, run}
}

func echo(_ context.Context, c host.Call) (abi.Result, error) {
	return abi.Text("echo of " + string(c.Args)), nil
}

func loopOf(m model.Model, tools ...host.Tool) *agent.Loop {
	r := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := r.Add(tools...); err != nil {
		panic(err)
	}
	return &agent.Loop{Model: m, Info: model.Info{ID: "test-1"}, Tools: r, Retry: model.Retry{Attempts: 1, First: time.Millisecond}}
}

func open(t testing.TB) *Archive {
	t.Helper()
	a := &Archive{Path: filepath.Join(t.TempDir(), "s.db")}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	return a
}

func start(t testing.TB, a *Archive, id string) *agent.Session {
	t.Helper()
	s, err := a.Start(Info{ID: id, Origin: "test"})
	must(t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// work runs a loop to its end and says how it stopped.
func work(t testing.TB, l *agent.Loop, s *agent.Session, prompt string) agent.Stop {
	t.Helper()
	var content []abi.Content
	if prompt != "" {
		content = append(content, abi.TextBlock(prompt))
	}
	var stop agent.Stop
	for e, err := range l.Run(context.Background(), s, content...) {
		if e.Kind == agent.KindDone {
			if stop = e.Stop; err != nil {
				t.Logf("the run ended with: %v", err)
			}
		}
	}
	return stop
}

// onePerCall checks the promise of a session: every call has one result.
func onePerCall(t testing.TB, s *agent.Session) {
	t.Helper()
	if err := model.Check(s.Messages()); err != nil {
		t.Fatalf("the transcript is broken: %v", err)
	}
}

func said(s *agent.Session) string {
	var b strings.Builder
	for _, m := range s.Messages() {
		fmt.Fprintf(&b, "[%s] %s", m.Role, m.Text())
		for _, c := range m.Calls() {
			fmt.Fprintf(&b, "%s %s ", c.Name, c.Args)
		}
		for _, k := range m.Blocks {
			if k.Thinking != nil {
				b.WriteString(k.Thinking.Text)
			}
			if k.Result != nil {
				b.WriteString(k.Result.Text())
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
