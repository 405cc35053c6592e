// Over 500 lines: the rows of sub-agents share one set of children and gates.

package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
)

// spawner is a tool that starts children and, unless they are in the
// background, waits for them.
func spawner(r *Runs, s Spawn) tool {
	return tool{spec: func() host.Spec { s := spec("spawn_agent", true); return s }(), call: func(ctx context.Context, c host.Call) (abi.Result, error) {
		run, err := r.Spawn(ctx, s)
		if err != nil {
			return abi.Errorf("%v", err), nil
		}
		if s.Background {
			return abi.Text(run.State().ID), nil
		}
		st, err := run.Wait(ctx)
		if err != nil {
			return abi.Result{}, err
		}
		res := abi.Text(st.Tell())
		res.IsError = st.Status != Completed
		return res, nil
	}}
}

// family is a model that answers the parent with parent's turns and everyone
// whose prompt contains a key with that key's turns.
type family struct {
	mu    sync.Mutex
	parts map[string]*script
}

func (f *family) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, s := range f.parts {
		if key != "" && strings.Contains(r.Messages[0].Text(), key) {
			return s.Stream(ctx, r)
		}
	}
	return f.parts[""].Stream(ctx, r)
}

func blocker(name string, started chan<- string) tool {
	return newTool(name, true, func(ctx context.Context, _ map[string]any) abi.Result {
		started <- name
		<-ctx.Done()
		return abi.Errorf("killed")
	})
}

// A01: the parent is cancelled while a child and a grandchild run.
func TestA01CancelEndsDescendants(t *testing.T) {
	for _, background := range []bool{false, true} {
		t.Run(fmt.Sprintf("background=%v", background), func(t *testing.T) {
			started := make(chan string, 4)
			runs := &Runs{}
			child := spawner(runs, Spawn{Name: "child", Prompt: "CHILD", Background: background})
			grand := child
			grand.spec.Name = "spawn_grand"
			grand.call = spawner(runs, Spawn{Name: "grand", Prompt: "GRAND", Background: background}).call
			m := &family{parts: map[string]*script{
				"":      {turns: []turn{does(call("a", "spawn_agent", ""), call("b", "Block", ""))}},
				"CHILD": {turns: []turn{does(call("a", "spawn_grand", ""), call("b", "Block", ""))}},
				"GRAND": {turns: []turn{does(call("a", "Block", ""))}},
			}}
			j := &memory{}
			s := New("root", j)
			l := newLoop(m, child, grand, blocker("Block", started))
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				for range 3 {
					<-started
				}
				cancel()
			}()
			events, err := drain(t, l.Run(ctx, s, text("go")))
			if err != nil || stopOf(events) != StopCancelled {
				t.Fatalf("%q %v", stopOf(events), err)
			}
			wait, done := context.WithTimeout(context.Background(), 2*time.Minute)
			defer done()
			runs.mu.Lock()
			all := make([]*Run, 0, len(runs.all))
			for _, r := range runs.all {
				all = append(all, r)
			}
			runs.mu.Unlock()
			if len(all) != 2 {
				t.Fatalf("%d runs", len(all))
			}
			for _, r := range all {
				st, err := r.Wait(wait)
				if err != nil || st.Status != Cancelled {
					t.Errorf("%s is %q, %v", st.Name, st.Status, err)
				}
				mustValid(t, r.child)
			}
			mustValid(t, s)
		})
	}
}

// A01: after a restart nothing is left running.
func TestA01NothingRunsAfterRestart(t *testing.T) {
	j := &memory{}
	runs := &Runs{}
	hold := make(chan string, 1)
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("started")}},
		"CHILD": {turns: []turn{does(call("a", "Block", ""))}},
	}}
	s := New("root", j)
	s.journal = onlyOf{j, "root"}
	l := newLoop(m, spawner(runs, Spawn{Name: "child", Prompt: "CHILD", Background: true}), blocker("Block", hold))
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	<-hold
	j.mu.Lock()
	records := slices.Clone(j.records) // the process is killed here
	j.mu.Unlock()
	again, err := Resume("root", nil, records)
	if err != nil {
		t.Fatal(err)
	}
	list := (&Runs{}).List(again)
	if len(list) != 1 || list[0].Status != Cancelled {
		t.Fatalf("after the restart: %+v", list)
	}
	st, err := (&Runs{}).Status(context.Background(), again, list[0].ID)
	if err != nil || st.Status != Cancelled || len((&Runs{}).List(again)) != 0 {
		t.Errorf("%+v %v", st, err)
	}
	if err := runs.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// onlyOf keeps the records of one session.
type onlyOf struct {
	*memory
	id string
}

func (o onlyOf) Append(ctx context.Context, id string, r Record) error {
	if id != o.id {
		return nil
	}
	return o.memory.Append(ctx, id, r)
}

// A02: one of two parallel children hangs in a tool; the other's result is
// kept, the first hits its time, and the parent goes on.
func TestA02HungChild(t *testing.T) { synctest.Test(t, a02HungChild) }

func a02HungChild(t *testing.T) {
	runs := &Runs{}
	hung, quick := spawner(runs, Spawn{Name: "hung", Prompt: "HUNG", Time: 80 * time.Millisecond}), spawner(runs, Spawn{Name: "quick", Prompt: "QUICK"})
	quick.spec.Name = "spawn_quick"
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", ""), call("b", "spawn_quick", "")), says("both")}},
		"HUNG":  {turns: []turn{does(call("a", "Hang", ""))}},
		"QUICK": {turns: []turn{says("quick result")}},
	}}
	release := make(chan struct{})
	defer close(release)
	hang := newTool("Hang", false, func(context.Context, map[string]any) abi.Result { <-release; return abi.Text("late") })
	s := New("root", nil)
	events, err := drain(t, newLoop(m, hung, quick, hang).Run(context.Background(), s, text("go")))
	if err != nil || stopOf(events) != StopEnd {
		t.Fatalf("%q %v", stopOf(events), err)
	}
	res := resultsOf(t, s)
	if !strings.Contains(res[0].Text(), "its time of 80ms was over") || !res[0].IsError || !strings.Contains(res[1].Text(), "quick result") {
		t.Errorf("%q\n%q", res[0].Text(), res[1].Text())
	}
}

// A05, SES-03: a planning parent's child cannot change anything, whatever the
// request says; steps and depth are capped.
func TestA05ChildOfAPlannerPlans(t *testing.T) {
	runs := &Runs{}
	wrote := false
	write := newTool("Write", false, func(context.Context, map[string]any) abi.Result { wrote = true; return abi.Text("written") })
	read := newTool("Read", true, func(context.Context, map[string]any) abi.Result { return abi.Text("read") })
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", `{"permissionMode":"plan"}`)), says("ok")}},
		"CHILD": {turns: []turn{does(call("a", "Write", "{}"), call("b", "Read", "{}"), call("c", "Bash", "{}")), says("tried")}},
	}}
	sp := spawner(runs, Spawn{Name: "child", Prompt: "CHILD", Mode: "bypass", Tools: []string{"*"}, Steps: 1_000_000_000})
	gate := &host.Gate{Mode: host.ModePlan}
	r := host.New(host.Options{Gate: gate})
	sp.spec.Input = []byte(`{"type":"object","properties":{"permissionMode":{"type":"string"}}}`)
	if err := r.Add(sp, write, read); err != nil {
		t.Fatal(err)
	}
	var child *Session
	runs.Session = func(_ context.Context, _ *Session, id string, _ Spawn) (*Session, error) {
		child = New(id, nil)
		return child, nil
	}
	l := newLoop(m)
	l.Tools, l.Limits.Steps = r, 7
	if _, err := drain(t, l.Run(context.Background(), New("root", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	if wrote || child == nil {
		t.Fatalf("wrote %v, child %v", wrote, child)
	}
	res := resultsOf(t, child)
	if !res[0].IsError || res[1].IsError || !res[2].IsError {
		t.Errorf("results: %v", res)
	}
	offered := m.parts["CHILD"].requests[0].Tools
	for _, o := range offered {
		if o.Name == "Write" {
			t.Error("Write is offered to a planner's child")
		}
	}
}

func TestSES03Caps(t *testing.T) {
	parent := Limits{Steps: 7, Cost: 2, Tokens: 100}
	got := narrow(Limits{Cost: 5, Parallel: 100}, parent, 1_000_000_000)
	if got.Steps != 7 || got.Cost != 2 || got.Tokens != 100 || got.Parallel != 8 {
		t.Errorf("%+v", got)
	}
	if got := narrow(Limits{}, Limits{}, -5); got.Steps != 1 {
		t.Errorf("negative steps: %+v", got)
	}
	if _, err := childMode("root"); err == nil {
		t.Error("an unknown mode was taken")
	}

	// Every child starts a child: the depth ends it.
	runs := &Runs{Limits: RunLimits{Depth: 4}}
	var deepest atomic.Int32
	sp := tool{spec: spec("spawn_agent", true), call: func(ctx context.Context, c host.Call) (abi.Result, error) {
		if deepest.Load() > 4 { // it would go on until the machine is full
			return abi.Errorf("that is deep enough"), nil
		}
		run, err := runs.Spawn(ctx, Spawn{Prompt: "deeper"})
		if err != nil {
			if !errors.Is(err, ErrTooMany) {
				t.Error(err)
			}
			return abi.Errorf("%v", err), nil
		}
		deepest.Add(1)
		st, err := run.Wait(ctx)
		return abi.Text(st.Tell()), err
	}}
	l := newLoop(modelFunc(func(r model.Request) turn {
		if len(r.Messages) == 1 {
			return does(call("a", "spawn_agent", "{}"))
		}
		return says("up")
	}), sp)
	if _, err := drain(t, l.Run(context.Background(), New("root", nil), text("go"))); err != nil || deepest.Load() != 4 {
		t.Errorf("%d deep, %v", deepest.Load(), err)
	}
}

// modelFunc chooses a turn by the request.
type modelFunc func(r model.Request) turn

func (f modelFunc) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) { f(r)(ctx, r, yield) }
}

func TestFanOutIsBounded(t *testing.T) {
	runs := &Runs{Limits: RunLimits{Children: 2}}
	hold := make(chan string, 8)
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", ""), call("b", "spawn_agent", ""), call("c", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{does(call("x", "Block", ""))}},
	}}
	s := New("root", nil)
	if _, err := drain(t, newLoop(m, spawner(runs, Spawn{Prompt: "CHILD", Background: true}), blocker("Block", hold)).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for _, r := range resultsOf(t, s) {
		if r.IsError && strings.Contains(r.Text(), "too many agents") {
			refused++
		}
	}
	if refused != 1 || len(runs.List(s)) != 2 {
		t.Errorf("refused %d, running %d", refused, len(runs.List(s)))
	}
	if err := runs.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, st := range runs.List(s) {
		if st.Status != Cancelled {
			t.Errorf("after Close: %q", st.Status)
		}
	}
	if _, err := drain(t, newLoop(&script{turns: []turn{does(call("z", "spawn_agent", "")), says("ok")}}, spawner(runs, Spawn{Prompt: "x"})).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if r := resultsOf(t, s)[0]; !r.IsError {
		t.Errorf("started after Close: %s", r.Text())
	}
}

func TestBackgroundReports(t *testing.T) {
	runs := &Runs{}
	gate := make(chan struct{})
	m := &family{parts: map[string]*script{
		"": {turns: []turn{does(call("a", "spawn_agent", "")), says("started"), says("thanks")}},
		"CHILD": {turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
			<-gate
			says("the report")(ctx, r, yield)
		}}},
	}}
	j := &memory{}
	s := New("root", onlyOf{j, "root"})
	l := newLoop(m, spawner(runs, Spawn{Name: "scout", Prompt: "CHILD", Background: true}))
	l.Price = &model.Price{Input: 1e6, Output: 1e6}
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	id := resultsOf(t, s)[0].Text()
	if l := runs.List(s); len(l) != 1 || l[0].Status != Running || l[0].Name != "scout" {
		t.Errorf("while it runs: %+v", l)
	}
	close(gate)
	if err := runs.Wait(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	// Another session does not see it.
	if _, err := runs.Status(context.Background(), New("other", nil), id); !errors.Is(err, ErrNoRun) {
		t.Errorf("another session sees it: %v", err)
	}
	st, err := runs.Status(context.Background(), s, id)
	if err != nil || st.Status != Completed || !strings.Contains(st.Tell(), "the report") {
		t.Errorf("%+v %v", st, err)
	}
	if l := runs.List(s); len(l) != 0 {
		t.Errorf("still listed after it was read: %+v", l)
	}
	again, err := Resume("root", nil, j.kept())
	if err != nil {
		t.Fatal(err)
	}
	if l := (&Runs{}).List(again); len(l) != 0 {
		t.Errorf("listed again after a restart: %+v", l)
	}
	if u := s.Usage(); u.Input != 30 || u.Cost != 36 || u.Steps != 2 {
		t.Errorf("the child's use is not counted: %+v", u)
	}
	if _, err := drain(t, l.Run(context.Background(), s, text("and?"))); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, msg := range s.Messages() {
		found = found || strings.Contains(msg.Text(), `background agent "scout" has ended: completed`)
	}
	if !found {
		t.Error("the parent was not told")
	}
}

// SES-01: identifiers are opaque and checked.
func TestSES01RunIDs(t *testing.T) {
	for _, id := range []string{"../../etc/passwd", "a/b", "", strings.Repeat("a", 300), "run_\x00", newID("run") + "x"} {
		if _, err := (&Runs{}).Status(context.Background(), New("s", nil), id); !errors.Is(err, ErrNoRun) || len(err.Error()) > 200 {
			t.Errorf("%q: %v", id, err)
		}
	}
	first, second := newID("run"), newID("run")
	if !idForm.MatchString(first) || first == second {
		t.Error("identifiers have not their form")
	}
}

// A failed child is reported as failed, with what it had.
func TestFailedChildTellsWhatItHad(t *testing.T) {
	runs := &Runs{}
	m := &family{parts: map[string]*script{
		"": {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
			_ = yield(model.Event{Kind: model.KindText, Text: "found half of it"}, nil) && yield(model.Event{}, &model.Error{Code: model.ErrQuota, Provider: "p"})
		}}},
	}}
	s := New("root", nil)
	events, err := drain(t, newLoop(m, spawner(runs, Spawn{Name: "scout", Prompt: "CHILD"})).Run(context.Background(), s, text("go")))
	if err != nil || stopOf(events) != StopEnd {
		t.Fatalf("%q %v", stopOf(events), err)
	}
	got := resultsOf(t, s)[0]
	if !got.IsError || !strings.Contains(got.Text(), "failed (p: the account has no credit left)") || !strings.Contains(got.Text(), "found half of it") {
		t.Errorf("%s", got.Text())
	}
	from := false
	for _, e := range events {
		from = from || e.Kind == KindText && e.From != ""
	}
	if !from {
		t.Error("the child's words are not in the parent's stream")
	}
}

// The budget is one for the whole family: what the parent has used before is
// not there for the child.
func TestFamilyBudget(t *testing.T) {
	tick := func() turn { return does(call("a", "Tick", "")) }
	spawn := does(call("b", "spawn_agent", ""))
	for name, before := range map[string][]turn{"unused": {spawn}, "half used": {tick(), tick(), tick(), tick(), spawn}} {
		t.Run(name, func(t *testing.T) {
			runs := &Runs{}
			var n atomic.Int32
			tool := newTool("Tick", false, func(context.Context, map[string]any) abi.Result { return abi.Textf("%d", n.Add(1)) })
			m := &family{parts: map[string]*script{"": {turns: before}, "CHILD": {turns: []turn{tick()}}}}
			l := newLoop(m, spawner(runs, Spawn{Prompt: "CHILD"}), tool)
			l.Limits.Tokens = 100
			s := New("root", nil)
			events, err := drain(t, l.Run(context.Background(), s, text("go")))
			if err != nil || stopOf(events) != StopTokens {
				t.Fatalf("%q %v", stopOf(events), err)
			}
			if total := s.Usage().Total(); total < 100 || total > 124 {
				t.Errorf("used %d tokens of 100", total)
			}
			if !strings.Contains(resultsOf(t, s)[0].Text(), "used up its tokens") {
				t.Errorf("%s", resultsOf(t, s)[0].Text())
			}
		})
	}
}

// Run with -race.
func Test64Agents(t *testing.T) {
	runs := &Runs{Limits: RunLimits{Children: 64, Depth: 5}}
	sp := tool{spec: spec("spawn_agent", true), call: func(ctx context.Context, c host.Call) (abi.Result, error) {
		run, err := runs.Spawn(ctx, Spawn{Prompt: "LEAF"})
		if err != nil {
			return abi.Result{}, err
		}
		_ = runs.List(Current(ctx))
		st, err := run.Wait(ctx)
		return abi.Text(st.Tell()), err
	}}
	work := newTool("Work", true, func(context.Context, map[string]any) abi.Result { return abi.Text("w") })
	l := newLoop(modelFunc(func(r model.Request) turn {
		root := r.Messages[0].Text() == "go"
		switch {
		case root && len(r.Messages) == 1:
			return does(ids(64, "spawn_agent", "{}")...)
		case !root && len(r.Messages) == 1:
			return does(ids(4, "Work", "{}")...)
		}
		return says("done")
	}), sp, work)
	l.Limits.Parallel = 64
	j := &memory{}
	s := New("root", onlyOf{j, "root"})
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	mustValid(t, s)
	for _, r := range resultsOf(t, s) {
		if r.IsError || !strings.Contains(r.Text(), "is done") {
			t.Fatalf("%s", r.Text())
		}
	}
	if u := s.Usage(); u.Input != 20+64*20 {
		t.Errorf("usage %+v", u)
	}
	if _, err := Resume("root", nil, j.records); err != nil {
		t.Error(err)
	}
}

// A06: the parent's rules deny all but git status; the child may run git
// status, and nothing else.
func TestA06WholeRuleSetHolds(t *testing.T) {
	rule := func(e policy.Effect, pattern string) policy.Rule {
		p, err := policy.ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Rule{Pattern: p, Effect: e}
	}
	pol, err := policy.NewPolicy(policy.Layer{Kind: policy.User, Tools: []policy.Rule{
		rule(policy.Only, "Bash(git status:*)"), rule(policy.Only, "spawn_agent"),
		rule(policy.Allow, "Bash(git status:*)"), rule(policy.Allow, "spawn_agent"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	bash := tool{spec: spec("Bash", false), call: func(_ context.Context, c host.Call) (abi.Result, error) {
		ran = append(ran, string(c.Args))
		return abi.Text("clean"), nil
	}}
	bash.spec.Kind = host.KindExecute
	bash.spec.Input = []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)
	runs := &Runs{}
	r := host.New(host.Options{Gate: &host.Gate{Policy: pol, Mode: host.ModeAsk}})
	if err := r.Add(bash, spawner(runs, Spawn{Prompt: "CHILD", Tools: []string{"Bash"}})); err != nil {
		t.Fatal(err)
	}
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{does(call("a", "Bash", `{"command":"git status"}`), call("b", "Bash", `{"command":"git push"}`)), says("tried")}},
	}}
	l := newLoop(m)
	l.Tools = r
	s := New("root", nil)
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if len(ran) != 1 || ran[0] != `{"command":"git status"}` {
		t.Errorf("ran %q; the parent saw %s", ran, resultsOf(t, s)[0].Text())
	}
}

// What an agent definition brings along is cut to what the parent has.
func TestSES03OpenCannotWiden(t *testing.T) {
	wide := newTool("Wide", false, func(context.Context, map[string]any) abi.Result {
		t.Error("a child used a tool that its parent has not")
		return abi.Text("wide")
	})
	read := newTool("Read", true, func(context.Context, map[string]any) abi.Result { return abi.Text("read") })
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{does(call("a", "Wide", ""), call("b", "Read", "")), says("tried")}},
	}}
	runs := &Runs{}
	var child *Session
	runs.Session = func(_ context.Context, _ *Session, id string, _ Spawn) (*Session, error) {
		child = New(id, nil)
		return child, nil
	}
	runs.Open = func(_ context.Context, parent *Loop, _ Spawn) (*Loop, error) {
		l := *parent
		l.Tools, l.Limits = registry(wide, read), Limits{Steps: 1000, Cost: 50}
		return &l, nil
	}
	l := newLoop(m, read, spawner(runs, Spawn{Prompt: "CHILD"}))
	if _, err := drain(t, l.Run(context.Background(), New("root", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	if res := resultsOf(t, child); !res[0].IsError || res[1].IsError {
		t.Errorf("%s / %s", res[0].Text(), res[1].Text())
	}
}

// A06, SES-03: rules with arguments hold for the calls of a child, those of
// the request and those of its definition, and a child cannot undo them.
func TestA06RulesOfARequest(t *testing.T) {
	for name, c := range map[string]struct {
		spawn Spawn
		ran   []string
	}{
		"request":    {Spawn{Tools: []string{"Bash(git status:*)"}}, []string{"git status"}},
		"definition": {Spawn{Within: []string{"Bash(git push:*)"}}, []string{"git push"}},
		"both":       {Spawn{Tools: []string{"Bash(git status:*)"}, Within: []string{"Bash(git push:*)"}}, nil},
		"wider":      {Spawn{Tools: []string{"*"}, Within: []string{"Bash(git status:*)", "Read"}}, []string{"git status"}},
		"none":       {Spawn{Tools: []string{}}, nil},
		"kept out":   {Spawn{Keep: func(s host.Spec) bool { return s.Name != "Bash" }}, nil},
		"all":        {Spawn{}, []string{"git status", "git push"}},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			bash := tool{spec: spec("Bash", false), call: func(ctx context.Context, c host.Call) (abi.Result, error) {
				Tools(ctx).Gate().Widen()
				ran = append(ran, strings.TrimSuffix(strings.TrimPrefix(string(c.Args), `{"command":"`), `"}`))
				return abi.Text("clean"), nil
			}}
			bash.spec.Kind = host.KindExecute
			bash.spec.Input = []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)
			c.spawn.Prompt = "CHILD"
			runs := &Runs{}
			r := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
			if err := r.Add(bash, spawner(runs, c.spawn)); err != nil {
				t.Fatal(err)
			}
			m := &family{parts: map[string]*script{
				"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
				"CHILD": {turns: []turn{does(call("a", "Bash", `{"command":"git status"}`)), does(call("b", "Bash", `{"command":"git push"}`)), says("tried")}},
			}}
			l := newLoop(m)
			l.Tools = r
			s := New("root", nil)
			if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ran, c.ran) {
				t.Errorf("ran %q; the parent saw %s", ran, resultsOf(t, s)[0].Text())
			}
		})
	}
}

func TestSpawnRefusesToolsThatItCannotRead(t *testing.T) {
	runs := &Runs{}
	m := &script{turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}}
	s := New("root", nil)
	if _, err := drain(t, newLoop(m, spawner(runs, Spawn{Prompt: "x", Tools: []string{"Bash(git"}})).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if res := resultsOf(t, s)[0]; !res.IsError || !strings.Contains(res.Text(), "closing parenthesis") {
		t.Errorf("%s", res.Text())
	}
}

func TestOwnInstructionsOfAChild(t *testing.T) {
	runs := &Runs{}
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{says("done")}},
	}}
	l := newLoop(m, spawner(runs, Spawn{Prompt: "CHILD", System: "You review."}))
	l.System = "PARENT"
	if _, err := drain(t, l.Run(context.Background(), New("root", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	got := m.parts["CHILD"].requests[0].System
	if !strings.HasPrefix(got, "PARENT\n") || !strings.Contains(got, "You are a sub-agent") || !strings.HasSuffix(got, "\nYou review.\n") {
		t.Errorf("%q", got)
	}
}

// What was opened for a child is released once, however it ends.
func TestReleasedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		spawn Spawn
		runs  *Runs
		opens int32
	}{
		"ended":       {Spawn{Prompt: "CHILD"}, &Runs{}, 1},
		"refused":     {Spawn{Prompt: "CHILD"}, &Runs{Limits: RunLimits{Total: -1}}, 1},
		"bad rule":    {Spawn{Prompt: "CHILD", Tools: []string{"("}}, &Runs{}, 1},
		"no session":  {Spawn{Prompt: "CHILD"}, &Runs{Session: func(context.Context, *Session, string, Spawn) (*Session, error) { return nil, errors.New("no") }}, 1},
		"not started": {Spawn{Prompt: "CHILD", Mode: "x"}, &Runs{}, 0},
	} {
		var opened, released atomic.Int32
		c.runs.Open = func(_ context.Context, parent *Loop, _ Spawn) (*Loop, error) {
			l := *parent
			opened.Add(1)
			l.Release = func() { released.Add(1) }
			return &l, nil
		}
		m := &family{parts: map[string]*script{"": {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}}, "CHILD": {turns: []turn{says("done")}}}}
		s := New("root", nil)
		if _, err := drain(t, newLoop(m, spawner(c.runs, c.spawn)).Run(context.Background(), s, text("go"))); err != nil {
			t.Fatal(err)
		}
		if opened.Load() != c.opens || released.Load() != c.opens {
			t.Errorf("%s: opened %d times, released %d times; %s", name, opened.Load(), released.Load(), resultsOf(t, s)[0].Text())
		}
	}
}
