package agents

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
)

// answer is one answer of a model: words, or calls.
type answer struct {
	text  string
	calls []model.Call
	err   error
}

func says(text string) answer { return answer{text: text} }

func does(name string, args ...string) answer {
	var a answer
	for i, s := range args {
		a.calls = append(a.calls, model.Call{ID: name + string(rune('a'+i%26)) + string(rune('a'+i/26)), Name: name, Args: s})
	}
	return a
}

// cast is a model that plays the parent and every child whose prompt begins
// with a key: one answer a step, then "done".
type cast struct {
	mu       sync.Mutex
	parts    map[string][]answer
	requests []model.Request
	before   func(ctx context.Context, part string) // called outside of the lock
}

func (m *cast) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	m.mu.Lock()
	m.requests = append(m.requests, r)
	part := ""
	for k := range m.parts {
		if k != "" && strings.HasPrefix(r.Messages[0].Text(), k) {
			part = k
		}
	}
	step := 0
	for _, msg := range r.Messages {
		if msg.Role == model.RoleAssistant {
			step++
		}
	}
	a := says("done")
	if step < len(m.parts[part]) {
		a = m.parts[part][step]
	}
	m.mu.Unlock()
	return func(yield func(model.Event, error) bool) {
		if m.before != nil {
			m.before(ctx, part)
		}
		stop := model.StopEnd
		if a.text != "" {
			c := abi.TextBlock(a.text)
			if !yield(model.Event{Kind: model.KindText, Text: a.text}, nil) || !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}}, nil) {
				return
			}
		}
		if a.err != nil {
			yield(model.Event{}, a.err)
			return
		}
		for _, c := range a.calls {
			stop = model.StopCalls
			if !yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c}}, nil) {
				return
			}
		}
		_ = yield(model.Event{Kind: model.KindUsage, Usage: &model.Usage{Input: 10, Output: 2}}, nil) &&
			yield(model.Event{Kind: model.KindStop, Stop: stop}, nil)
	}
}

// request is the first one of a part.
func (m *cast) request(t *testing.T, part string) model.Request {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.requests {
		if strings.HasPrefix(r.Messages[0].Text(), part) {
			return r
		}
	}
	t.Fatalf("nobody was asked to %s", part)
	return model.Request{}
}

func offered(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// house is a session with tools that note who called them.
type house struct {
	t     *testing.T
	model *cast
	gate  *host.Gate
	tools *host.Registry
	runs  *agent.Runs
	s     *agent.Session
	loop  *agent.Loop

	mu  sync.Mutex
	ran []string
}

func newHouse(t *testing.T, o Options, gate *host.Gate, parts map[string][]answer) *house {
	t.Helper()
	h := &house{t: t, gate: gate, model: &cast{parts: parts}, runs: &agent.Runs{}, s: agent.New("root", nil)}
	if o.Runs == nil {
		o.Runs = h.runs
	}
	h.runs = o.Runs
	h.tools = host.New(host.Options{Gate: gate})
	for name, origin := range map[string]host.Origin{
		"Read": {Source: host.Builtin}, "ReadFile": {Source: host.Builtin}, "Grep": {Source: host.Builtin}, "Write": {Source: host.Builtin},
		"Shell": {Source: host.Builtin}, "Plan": {Source: host.Builtin}, "Notify": {Source: host.Builtin}, "SessionsSend": {Source: host.Builtin}, "skillhub_install": {Source: host.Builtin},
		"list_skills": {Source: host.Builtin}, "slash_command": {Source: host.Builtin}, "WebFetch": {Source: host.Bundled, Name: "webfetch"},
		"mcp__git__log": {Source: host.MCP, Name: "git"}, "mcp__web__get": {Source: host.MCP, Name: "web"},
		"Edit": {Source: host.Plugin, Name: "stranger"}, "weather": {Source: host.Plugin, Name: "weather"},
	} {
		kind := host.KindOther
		h.add(host.Spec{Name: name, Origin: origin, Kind: kind, Parallel: true, Input: json.RawMessage(`{"type":"object"}`)})
	}
	h.add(host.Spec{Name: "Bash", Origin: host.Origin{Source: host.Builtin}, Kind: host.KindExecute, Input: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)})
	if err := h.tools.Add(append(Queries(o), Spawner(o))...); err != nil {
		t.Fatal(err)
	}
	h.loop = &agent.Loop{Model: h.model, Tools: h.tools, System: "PARENT", Retry: model.Retry{Attempts: 1}}
	return h
}

func (h *house) add(s host.Spec) {
	h.t.Helper()
	if err := h.tools.Add(&tool.Func{S: s, Run: func(_ context.Context, c host.Call) (abi.Result, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ran = append(h.ran, c.Tool+string(c.Args))
		return abi.Text("ok"), nil
	}}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) run(ctx context.Context) agent.Stop {
	h.t.Helper()
	var stop agent.Stop
	for e, err := range h.loop.Run(ctx, h.s, abi.TextBlock("go")) {
		if err != nil {
			h.t.Fatal(err)
		}
		stop = e.Stop
	}
	if err := model.Check(h.s.Messages()); err != nil {
		h.t.Fatal(err)
	}
	return stop
}

// results are those of the parent's calls, in order.
func (h *house) results() (out []model.CallResult) {
	for _, m := range h.s.Messages() {
		for _, b := range m.Blocks {
			if b.Result != nil {
				out = append(out, *b.Result)
			}
		}
	}
	return out
}
