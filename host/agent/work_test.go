package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// What a session had used before somebody goes on with it was charged already.
func TestEarlierUseIsNotChargedAgain(t *testing.T) {
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: []turn{says("first"), says("second")}},
	}}
	old := New("old", nil)
	if _, err := drain(t, newLoop(m).Run(context.Background(), old, text("CHILD"))); err != nil {
		t.Fatal(err)
	}
	runs := &Runs{Session: func(context.Context, *Session, string, Spawn) (*Session, error) { return old, nil }}
	s := New("root", nil)
	if _, err := drain(t, newLoop(m, spawner(runs, Spawn{Session: "old", Prompt: "more"})).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Total() != 36 {
		t.Errorf("used %d tokens; two answers and one of the child are 36", u.Total())
	}
	if st := runs.List(s)[0]; st.Usage.Steps != 1 || st.Usage.Total() != 12 {
		t.Errorf("of the run, and not of the session, is told %+v", st.Usage)
	}
}

// generations is a parent with a child, and a grandchild in the background
// that works until it is let go.
func generations(t *testing.T, runs *Runs, child ...turn) (s *Session, l *Loop, letGo func()) {
	hold := make(chan struct{})
	m := &family{parts: map[string]*script{
		"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("ok")}},
		"CHILD": {turns: append([]turn{does(call("b", "spawn_below", ""))}, child...)},
		"GRAND": {turns: []turn{does(call("c", "Hold", "")), says("the report of the grandchild")}},
	}}
	below := tool{spec: spec("spawn_below", true), call: func(ctx context.Context, _ host.Call) (abi.Result, error) {
		run, err := runs.Spawn(ctx, Spawn{Name: "grand", Prompt: "GRAND", Background: true})
		if err != nil {
			return abi.Result{}, err
		}
		return abi.Text(run.State().ID), nil
	}}
	wait := newTool("Hold", true, func(ctx context.Context, _ map[string]any) abi.Result {
		select {
		case <-hold:
			return abi.Text("held")
		case <-ctx.Done():
			return abi.Errorf("cancelled")
		}
	})
	return New("root", nil), newLoop(m, spawner(runs, Spawn{Name: "kid", Prompt: "CHILD"}), below, wait), func() { close(hold) }
}

// A child is not done before what it left in the background: nobody else
// would be told of it.
func TestAChildWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := &Runs{}
		s, l, letGo := generations(t, runs, says("it is at work"), says("now it has ended"))
		over := make(chan struct{})
		go func() {
			defer close(over)
			if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		select {
		case <-over:
			t.Error("the parent went on without the grandchild")
		default:
		}
		letGo()
		<-over
		if got := resultsOf(t, s)[0].Text(); !strings.Contains(got, "now it has ended") {
			t.Error(got)
		}
		if n := s.Usage().Total(); n != 7*12 {
			t.Errorf("used %d tokens; seven answers are 84", n)
		}
	})
}

// A child that a limit stops takes what it started with it, and all that was
// used is the parent's.
func TestAStoppedChildLeavesNothingRunning(t *testing.T) {
	runs := &Runs{}
	s, l, _ := generations(t, runs, does(call("d", "Hold", "")))
	l.Tools.Remove("spawn_agent")
	if err := l.Tools.Add(spawner(runs, Spawn{Name: "kid", Prompt: "CHILD", Steps: 1})); err != nil {
		t.Fatal(err)
	}
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if got := resultsOf(t, s)[0].Text(); !strings.Contains(got, "used up its steps") {
		t.Error(got)
	}
	for _, run := range runs.all {
		if !run.ended() {
			t.Errorf("still at work: %+v", run.State())
		}
		if st := run.State(); st.Name == "grand" && (st.Status != Cancelled || !strings.Contains(st.Error, "the agent that started it has ended")) {
			t.Errorf("%+v", st)
		}
	}
}

// Whoever waits for a background agent is told also when its time was over.
func TestLateBackgroundAgentIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := &Runs{}
		m := &family{parts: map[string]*script{
			"":      {turns: []turn{does(call("a", "spawn_agent", "")), says("it works"), says("so it was late")}},
			"CHILD": {turns: []turn{does(call("c", "Hold", ""))}},
		}}
		hold := newTool("Hold", true, func(ctx context.Context, _ map[string]any) abi.Result {
			<-ctx.Done()
			return abi.Errorf("cancelled")
		})
		s, l := New("root", nil), newLoop(m, hold)
		if err := l.Tools.Add(spawner(runs, Spawn{Name: "slow", Prompt: "CHILD", Background: true, Time: time.Minute})); err != nil {
			t.Fatal(err)
		}
		if _, err := drain(t, runs.Work(context.Background(), l, s, text("go"))); err != nil {
			t.Fatal(err)
		}
		told := ""
		for _, m := range s.Messages() {
			if strings.Contains(m.Text(), `background agent "slow"`) {
				told = m.Text()
			}
		}
		if !strings.Contains(told, "has ended: cancelled") {
			t.Errorf("told %q", told)
		}
		if st := runs.List(s)[0]; !strings.Contains(st.Error, "its time of 1m0s was over") {
			t.Errorf("%+v", st)
		}
	})
}
