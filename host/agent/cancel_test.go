package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// L01: two of three parallel calls are done when the run is cancelled. The
// session, live and reloaded, has one result for each, and goes on.
func TestL01CancelKeepsPairs(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	quick := newTool("Quick", true, func(context.Context, map[string]any) abi.Result { return abi.Text("quick") })
	slow := newTool("Slow", true, func(ctx context.Context, _ map[string]any) abi.Result {
		<-ctx.Done()
		return abi.Errorf("killed")
	})
	after := newTool("After", false, func(context.Context, map[string]any) abi.Result {
		t.Error("a call started after the cancellation")
		return abi.Text("after")
	})
	m := &script{turns: []turn{
		does(call("a", "Quick", ""), call("b", "Slow", ""), call("c", "Quick", ""), call("d", "After", "")), says("fine")}}
	j := &memory{}
	s := New("s", j)
	l := newLoop(m, quick, slow, after)
	finished := 0
	var last Event
	for e, err := range l.Run(ctx, s, text("go")) {
		if err != nil {
			t.Errorf("a cancelled run is no failure: %v", err)
		}
		if e.Kind == KindFinish {
			if finished++; finished == 2 {
				cancel()
			}
		}
		last = e
	}
	if last.Kind != KindDone || last.Stop != StopCancelled || finished != 4 {
		t.Errorf("ended with %q %q, %d calls finished", last.Kind, last.Stop, finished)
	}
	again, err := Resume("s", j, j.records)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Session{"live": s, "reloaded": again} {
		mustValid(t, s)
		res := resultsOf(t, s)
		if res[0].Text() != "quick" || res[2].Text() != "quick" {
			t.Errorf("%s: finished results are lost: %q %q", name, res[0].Text(), res[2].Text())
		}
		if !strings.Contains(res[1].Text(), "may have had effects") || !strings.Contains(res[3].Text(), "was not run") {
			t.Errorf("%s: %q / %q", name, res[1].Text(), res[3].Text())
		}
	}
	if len(again.Repairs()) != 0 {
		t.Errorf("nothing was broken, and yet repaired: %v", again.Repairs())
	}
	events, err := drain(t, l.Run(context.Background(), again, text("go on")))
	if err != nil || stopOf(events) != StopEnd {
		t.Errorf("after the reload: %q %v", stopOf(events), err)
	}
}

// L02: what ran and was interrupted says so, with what it had said.
func TestL02InterruptedText(t *testing.T) { synctest.Test(t, l02InterruptedText) }

func l02InterruptedText(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	bash := newTool("Bash", false, func(ctx context.Context, _ map[string]any) abi.Result {
		time.Sleep(120 * time.Millisecond)
		cancel()
		<-ctx.Done()
		return abi.Errorf("half of the output")
	})
	s := New("s", nil)
	drain(t, newLoop(&script{turns: []turn{does(call("a", "Bash", "{}"))}}, bash).Run(ctx, s, text("go")))
	got := resultsOf(t, s)[0].Text()
	if !regexp.MustCompile(`interrupted after 0\.1 s`).MatchString(got) {
		t.Errorf("the result does not say when: %s", got)
	}
	for _, want := range []string{"may have had effects", "half of the output"} {
		if !strings.Contains(got, want) {
			t.Errorf("the result lacks %q: %s", want, got)
		}
	}
	for _, no := range []string{"not run", "rejected", "denied"} {
		if strings.Contains(got, no) {
			t.Errorf("the result claims %q: %s", no, got)
		}
	}
}

// A call that ends well in spite of the cancellation has its result.
func TestFinishedDespiteCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	write := newTool("Write", false, func(context.Context, map[string]any) abi.Result { cancel(); return abi.Text("written") })
	s := New("s", nil)
	drain(t, newLoop(&script{turns: []turn{does(call("a", "Write", "{}"))}}, write).Run(ctx, s, text("go")))
	if got := resultsOf(t, s)[0]; got.IsError || got.Text() != "written" {
		t.Errorf("%v %q", got.IsError, got.Text())
	}
}

// A tool that ignores its context does not hold up the cancelled run, nor do
// calls that wait for its slot: they never start, and when it returns at last,
// nothing is left of the step (the bubble fails on a goroutine that stays).
func TestHungToolIsGivenUp(t *testing.T) { synctest.Test(t, hungToolIsGivenUp) }

func hungToolIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	release := make(chan struct{})
	returned := make(chan struct{})
	entered := 0
	hung := newTool("Hung", true, func(context.Context, map[string]any) abi.Result {
		entered++
		cancel()
		<-release
		defer close(returned)
		return abi.Text("too late")
	})
	j := &memory{}
	s := New("s", j)
	begin := time.Now()
	l := newLoop(&script{turns: []turn{does(ids(5, "Hung", "{}")...)}}, hung)
	l.Limits.Parallel = 1
	events, _ := drain(t, l.Run(ctx, s, text("go")))
	if d := time.Since(begin); d > grace || stopOf(events) != StopCancelled {
		t.Errorf("ended after %s with %q", d, stopOf(events))
	}
	before := len(j.records)
	close(release)
	<-returned
	synctest.Wait()
	mustValid(t, s)
	if entered != 1 {
		t.Errorf("%d calls were entered", entered)
	}
	if len(j.records) != before || !strings.Contains(resultsOf(t, s)[0].Text(), "interrupted") {
		t.Errorf("the late answer changed the session")
	}
}

// The front end leaves in the middle: the session is in order all the same.
func TestLeavingTheRange(t *testing.T) {
	for n := range 12 {
		m := &script{turns: []turn{does(call("a", "Echo", "{}"), call("b", "Echo", "{}")), says("done")}}
		s := New("s", nil)
		echo := newTool("Echo", true, func(ctx context.Context, _ map[string]any) abi.Result { return abi.Text("echo") })
		i := 0
		for range newLoop(m, echo).Run(context.Background(), s, text("go")) {
			if i++; i > n {
				break
			}
		}
		mustValid(t, s)
		if _, err := drain(t, newLoop(&script{turns: []turn{says("ok")}}).Run(context.Background(), s, text("more"))); err != nil {
			t.Errorf("left after %d events: %v", n, err)
		}
	}
}

// The disk is full at every possible point: the run fails, the session stays
// whole, no tool runs that was not written down, and a reload agrees.
func TestJournalFailsAnywhere(t *testing.T) {
	for n := 1; n <= 7; n++ {
		ran := map[string]bool{}
		var mu sync.Mutex
		touch := newTool("Touch", true, func(_ context.Context, args map[string]any) abi.Result {
			mu.Lock()
			defer mu.Unlock()
			ran[fmt.Sprint(args["n"])] = true
			return abi.Text("ok")
		})
		j := &memory{}
		j.fail = func(r Record) error {
			if len(j.records)+1 >= n {
				return errDisk
			}
			return nil
		}
		m := &script{turns: []turn{does(call("a", "Touch", `{"n":"a"}`), call("b", "Touch", `{"n":"b"}`)), says("done")}}
		s := New("s", j)
		_, err := drain(t, newLoop(m, touch).Run(context.Background(), s, text("go")))
		if !errors.Is(err, errDisk) || !errors.Is(err, ErrJournal) {
			t.Errorf("failing at record %d: %v", n, err)
		}
		mustValid(t, s)
		started := map[string]bool{}
		for _, r := range j.records {
			if r.Kind == RecordStart {
				started[r.Call.ID] = true
			}
		}
		for id := range ran {
			if !started[id] {
				t.Errorf("failing at record %d: call %q ran without a record", n, id)
			}
		}
		again, err := Resume("s", j, j.records)
		if err != nil {
			t.Fatal(err)
		}
		mustValid(t, again)
	}
}

// Whatever the moment of a crash, the records up to it give a valid session
// in which a started call is Unknown and an unstarted one Skipped.
func TestL01ResumeFromEveryPrefix(t *testing.T) {
	m := &script{turns: []turn{does(call("a", "T", "{}"), call("b", "T", "{}")), does(call("c", "T", "{}")), says("done")}}
	j := &memory{}
	if _, err := drain(t, newLoop(m, newTool("T", true, func(context.Context, map[string]any) abi.Result { return abi.Text("t") })).Run(context.Background(), New("s", j), text("go"))); err != nil {
		t.Fatal(err)
	}
	for n := range len(j.records) + 1 {
		s, err := Resume("s", nil, j.records[:n])
		if err != nil {
			t.Fatal(err)
		}
		mustValid(t, s)
		open := map[string]Outcome{}
		for _, r := range j.records[:n] {
			switch r.Kind {
			case RecordMessage:
				for _, c := range r.Message.Calls() {
					open[c.ID] = Skipped
				}
			case RecordStart:
				open[r.Call.ID] = Unknown
			case RecordResult:
				delete(open, r.Result.ID)
			}
		}
		if len(s.Repairs()) != len(open) {
			t.Errorf("after %d records: repaired %v, open %v", n, s.Repairs(), open)
		}
		for _, p := range s.Repairs() {
			if open[p.Call.ID] != p.Outcome {
				t.Errorf("after %d records: %q is %q, want %q", n, p.Call.ID, p.Outcome, open[p.Call.ID])
			}
		}
	}
	if _, err := Resume("s", nil, append(j.records[:2:2], j.records[3:]...)); err == nil {
		t.Error("a gap in the records was not noticed")
	}
}

// L01: broken transcripts of older versions are repaired.
func TestL01Mend(t *testing.T) {
	c, d := call("a", "T", "{}"), call("b", "T", "{}")
	res := func(id, s string) model.Block {
		return model.Block{Result: &model.CallResult{ID: id, Name: "T", Result: abi.Text(s)}}
	}
	broken := map[string][]model.Message{
		"no result":      {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}}}, model.User(text("hello"))},
		"one of two":     {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}, {Call: &d}}}, {Role: model.RoleTool, Blocks: []model.Block{res("b", "2")}}},
		"wrong order":    {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}, {Call: &d}}}, {Role: model.RoleTool, Blocks: []model.Block{res("b", "2"), res("a", "1")}}},
		"twice":          {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}}}, {Role: model.RoleTool, Blocks: []model.Block{res("a", "1"), res("a", "x")}}},
		"stray":          {model.User(text("hi")), {Role: model.RoleTool, Blocks: []model.Block{res("zz", "1")}}},
		"late":           {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}}}, model.User(text("hello")), {Role: model.RoleTool, Blocks: []model.Block{res("a", "1")}}},
		"same id, twice": {{Role: model.RoleAssistant, Blocks: []model.Block{{Call: &c}, {Call: &c}}}, {Role: model.RoleTool, Blocks: []model.Block{res("a", "1"), res("a", "2")}}},
		"empty":          {{Role: model.RoleAssistant}, {Role: model.RoleUser, Blocks: []model.Block{{}}}},
		"call of a user": {{Role: model.RoleUser, Blocks: []model.Block{{Call: &c}}}},
	}
	for name, messages := range broken {
		if err := model.Check(messages); err == nil {
			t.Errorf("%s: is not broken", name)
		}
		fixed := mend(messages)
		if err := model.Check(fixed); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if name == "wrong order" && (fixed[1].Blocks[0].Result.Text() != "1" || len(fixed) != 2) {
			t.Errorf("%s: %+v", name, fixed)
		}
	}
}

// Random cancellations over many parallel calls; run with -race.
func TestHammerCancellation(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	work := func(ctx context.Context, _ map[string]any) abi.Result {
		select {
		case <-time.After(time.Duration(rand.IntN(4)) * time.Millisecond):
			return abi.Text("ok")
		case <-ctx.Done():
			return abi.Errorf("stopped")
		}
	}
	var wg sync.WaitGroup
	for range rounds {
		wg.Go(func() {
			m := &script{turns: []turn{
				does(append(ids(10, "P", "{}"), call("s1", "S", "{}"), call("p1", "P", "{}"))...),
				does(ids(16, "P", "{}")...), does(ids(3, "S", "{}")...), says("done")}}
			j := &memory{}
			s := New("s", j)
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(12))*time.Millisecond)
			defer cancel()
			drain(t, newLoop(m, newTool("P", true, work), newTool("S", false, work)).Run(ctx, s, text("go")))
			mustValid(t, s)
			again, err := Resume("s", nil, j.records)
			if err != nil {
				t.Error(err)
				return
			}
			mustValid(t, again)
			if len(again.Repairs()) != 0 {
				t.Errorf("the journal misses results: %v", again.Repairs())
			}
		})
	}
	wg.Wait()
}

// strict is a journal that takes nothing when its context has ended, and sees a
// record before.
type strict struct {
	memory
	sees func(Record)
}

func (j *strict) Append(ctx context.Context, session string, r Record) error {
	j.sees(r)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return j.memory.Append(ctx, session, r)
}

// A cancellation while what a person said is being written down is no failure
// of the journal, and what was said stays.
func TestCancelledWhileAMessageIsKept(t *testing.T) {
	for _, said := range []string{"go", "and more"} {
		ctx, cancel := context.WithCancel(context.Background())
		j := &strict{sees: func(r Record) {
			if r.Message != nil && r.Message.Role == model.RoleUser && r.Message.Text() == said {
				cancel()
			}
		}}
		s := New("s", j)
		if said == "and more" {
			s.Steer(text(said))
		}
		events, err := drain(t, newLoop(&script{turns: []turn{says("ok")}}).Run(ctx, s, text("go")))
		if err != nil || stopOf(events) != StopCancelled {
			t.Errorf("%q: %q %v", said, stopOf(events), err)
		}
		if m := s.Messages(); len(m) == 0 || m[len(m)-1].Text() != said {
			t.Errorf("%q is lost: %v", said, m)
		}
		cancel()
	}
}
