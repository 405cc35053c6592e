package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
)

// eventful records a session with most of what can happen in one.
func eventful(t *testing.T) *Transcript {
	t.Helper()
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	fail := newTool("Bash", host.KindExecute, func(context.Context, host.Call) (abi.Result, error) {
		s.Steer(abi.TextBlock("also say hello"))
		return abi.Errorf("exit status 1"), nil
	})
	same := does(call("", "Read", `{"n":7}`))
	answers := script{
		does(call("a", "Read", `{"n":1}`), call("b", "Bash", `{"path":"rm -rf /"}`), call("c", "Nope", `{}`), call("d", "Read", `{"n":`), call("e", "Read", `{"n":"x"}`)),
		says("I am ", "done."),
		same, same, same, same, same, same, same, // until the loop stops it
		says("Sorry."),
	}
	l := loopOf(answers, newTool("Read", host.KindRead, echo), fail)
	if stop := work(t, l, s, "begin"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	if stop := work(t, l, s, "again"); stop != agent.StopRepeat {
		t.Fatal(stop)
	}
	// A run that is cancelled in the middle of a call.
	cancelled, cancel := context.WithCancel(ctx)
	hang := newTool("Hang", host.KindOther, func(ctx context.Context, _ host.Call) (abi.Result, error) {
		cancel()
		<-ctx.Done()
		return abi.Result{}, ctx.Err()
	})
	n := 0
	for _, m := range s.Messages() {
		if m.Role == model.RoleAssistant {
			n++
		}
	}
	more := append(make(script, n), does(call("h1", "Hang", `{}`), call("h2", "Read", `{}`)), says("All right."))
	l = loopOf(more, hang, newTool("Read", host.KindRead, echo))
	for range l.Run(cancelled, s, abi.TextBlock("hang")) {
	}
	if stop := work(t, l, s, "and now?"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	tr, err := a.Load(ctx, "one")
	must(t, err)
	return tr
}

func TestReplayGoesAsRecorded(t *testing.T) {
	tr := eventful(t)
	got, err := tr.Replay(context.Background())
	must(t, err)
	if got.Divergence != nil {
		t.Fatalf("%+v", *got.Divergence)
	}
	if got.Answers < 8 || got.Calls < 12 {
		t.Errorf("it did not go far: %+v", got)
	}
}

// Whatever is changed in a transcript that the loop decides about by itself
// is the first divergence.
func TestReplayNamesTheFirstDivergence(t *testing.T) {
	find := func(tr *Transcript, f func(agent.Record) bool) int {
		for i, r := range tr.Records {
			if f(r) {
				return i
			}
		}
		t.Fatal("the record is not there")
		return 0
	}
	resultOf := func(id string) func(agent.Record) bool {
		return func(r agent.Record) bool { return r.Kind == agent.RecordResult && r.Result.ID == id }
	}
	for name, change := range map[string]func(tr *Transcript) int{
		"the complaint about broken arguments": func(tr *Transcript) int {
			i := find(tr, resultOf("d"))
			tr.Records[i].Result.Content[0].Text = "Fine."
			return i
		},
		"the warning of the guard": func(tr *Transcript) int {
			i := find(tr, func(r agent.Record) bool { return r.Own })
			m := model.User(abi.TextBlock("[never said]"))
			tr.Records[i].Message = &m
			return i
		},
		"a result is gone": func(tr *Transcript) int {
			i := find(tr, resultOf("a"))
			tr.Records = append(tr.Records[:i:i], tr.Records[i+1:]...)
			return find(tr, func(r agent.Record) bool { return r.Message != nil && len(r.Message.Calls()) == 5 })
		},
		"a call that was refused has started": func(tr *Transcript) int {
			i := find(tr, func(r agent.Record) bool { return r.Message != nil && len(r.Message.Calls()) == 5 })
			for _, b := range tr.Records[i].Message.Blocks {
				if b.Call != nil && b.Call.ID == "d" {
					b.Call.Args = `{"n":3}`
				}
			}
			return find(tr, resultOf("d"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			tr := eventful(t)
			i := change(tr)
			want := tr.Records[i].Seq
			got, err := tr.Replay(context.Background())
			must(t, err)
			if got.Divergence == nil || got.Divergence.Record != want {
				b, _ := json.Marshal(got)
				t.Errorf("want a divergence at record %d, got %s", want, b)
			}
		})
	}
}

// counted answers in order, whatever was said, and counts no tokens.
type counted struct {
	answers script
	n       int
}

func (c *counted) Stream(context.Context, model.Request) iter.Seq2[model.Event, error] {
	c.n++
	return func(yield func(model.Event, error) bool) {
		c.answers[c.n-1](func(e model.Event, err error) bool { return e.Kind == model.KindUsage || yield(e, err) })
	}
}

// A conversation that was shortened, by a person and by the loop itself: what
// comes after sees the same messages. (A name of a call that is used again is
// one after the shortening, and would be renamed without it.)
func TestReplayShortens(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	read := newTool("Read", host.KindRead, func(ctx context.Context, c host.Call) (abi.Result, error) {
		return abi.Text(strings.Repeat("a line of a file\n", 400)), nil
	})
	same := func(n int) func(func(model.Event, error) bool) {
		return does(call("a", "Read", fmt.Sprintf(`{"n":%d}`, n)))
	}
	l := loopOf(&counted{answers: script{same(1), says("one"), same(2), same(3), same(4), same(5), says("two")}}, read)
	l.Compact.Model = &counted{answers: script{says("Minutes."), says("More minutes."), says("Still more."), says("And more."), says("Enough.")}}
	work(t, l, s, "first")
	must(t, l.Shorten(ctx, s))
	l.Info.Window = 9000
	if stop := work(t, l, s, "second"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	tr, err := a.Load(ctx, "one")
	must(t, err)
	shortened := []int{}
	for i, r := range tr.Records {
		if r.Kind == agent.RecordCompact {
			shortened = append(shortened, i)
		}
	}
	if len(shortened) < 2 {
		t.Fatalf("the loop itself has not shortened: %v", shortened)
	}
	got, err := tr.Replay(ctx)
	must(t, err)
	if got.Divergence != nil || got.Answers != 7 {
		t.Fatalf("%s", jsonOf(got))
	}
	last := shortened[len(shortened)-1]
	tr.Records[last].Keep = 1000
	if got, err = tr.Replay(ctx); err != nil || got.Divergence == nil || got.Divergence.Record != tr.Records[last].Seq {
		t.Errorf("%s, %v", jsonOf(got), err)
	}
}

// A shortening amid a run does not end the run: the loop goes on counting the
// steps that go in circles.
func TestReplayShortensAmidARun(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	read := newTool("Read", host.KindRead, func(context.Context, host.Call) (abi.Result, error) {
		return abi.Text(strings.Repeat("a line of a file\n", 400)), nil
	})
	same := does(call("", "Read", `{"n":1}`))
	l := loopOf(&counted{answers: script{same, same, same, same, says("done")}}, read)
	minutes := &counted{}
	for i := range 8 {
		minutes.answers = append(minutes.answers, says(fmt.Sprintf("Minutes %d.", i)))
	}
	l.Compact.Model, l.Info.Window = minutes, 7000
	if stop := work(t, l, s, "go"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	tr, err := a.Load(ctx, "one")
	must(t, err)
	shortened, warned := 0, false
	for i, r := range tr.Records {
		if r.Kind == agent.RecordCompact {
			shortened = i
		}
		warned = warned || shortened > 0 && strings.Contains(jsonOf(r), "only repeats calls")
	}
	if !warned {
		t.Fatal("nothing was said about the circle after a shortening")
	}
	if got, err := tr.Replay(ctx); err != nil || got.Divergence != nil || got.Answers != 5 {
		t.Errorf("%s, %v", jsonOf(got), err)
	}
}

func TestReplayOfWhatWasCutOff(t *testing.T) {
	ctx, a := context.Background(), open(t)
	s := start(t, a, "one")
	cut := func(yield func(model.Event, error) bool) {
		_ = yield(model.Event{Kind: model.KindText, Text: "Half an ans"}, nil) &&
			yield(model.Event{}, &model.Error{Code: model.ErrTruncated})
	}
	work(t, loopOf(script{cut, says("Whole.")}), s, "speak")
	work(t, loopOf(script{nil, says("Whole.")}), s, "")
	must(t, a.Release(ctx, "one"))
	tr, err := a.Load(ctx, "one")
	must(t, err)
	if !strings.Contains(jsonOf(tr), "Half an ans") {
		t.Fatal("nothing was kept of the answer")
	}
	if got, err := tr.Replay(ctx); err != nil || got.Divergence != nil || got.Answers != 2 {
		t.Errorf("%s, %v", jsonOf(got), err)
	}
}

// Instruction files that the loop gave after calls are given again, and one
// that is not there any more is no divergence.
func TestReplayGivesInstructions(t *testing.T) {
	a := open(t)
	s := start(t, a, "one")
	l := loopOf(script{does(call("a", "Read", `{"n":1}`)), does(call("b", "Read", `{"n":2}`)), says("done")}, newTool("Read", host.KindRead, echo))
	l.Learn = func(_ context.Context, s *agent.Session, _ []model.Call) []abi.Content {
		return s.Instruct(0, []agent.Instruction{{Path: "sub/AGENTS.md", Text: "Use tabs."}})
	}
	if stop := work(t, l, s, "begin"); stop != agent.StopEnd {
		t.Fatal(stop)
	}
	tr, err := a.Load(context.Background(), "one")
	must(t, err)
	got, err := tr.Replay(context.Background())
	must(t, err)
	if got.Divergence != nil || got.Answers != 3 {
		t.Fatalf("%+v %+v", got, got.Divergence)
	}
	var b strings.Builder
	must(t, tr.WriteMarkdown(&b))
	if !strings.Contains(b.String(), "## Host") || !strings.Contains(b.String(), "Use tabs.") {
		t.Errorf("the transcript does not show them:\n%s", b.String())
	}
}
