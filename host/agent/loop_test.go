package agent

import (
	"context"
	"errors"
	"fmt"
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
)

func TestRunUntilDone(t *testing.T) {
	m := &script{turns: []turn{does(call("a", "Echo", `{"text":"hi"}`)), says("done")}}
	l := newLoop(m, newTool("Echo", false, func(_ context.Context, args map[string]any) abi.Result {
		return abi.Textf("echo %v", args["text"])
	}))
	l.Price = &model.Price{Input: 1e6, Output: 2e6}
	j := &memory{}
	s := New("s1", j)
	events, err := drain(t, l.Run(context.Background(), s, text("say hi")))
	if err != nil || stopOf(events) != StopEnd {
		t.Fatalf("stop %q, %v", stopOf(events), err)
	}
	mustValid(t, s)
	if got := resultsOf(t, s)[0].Text(); got != "echo hi" {
		t.Errorf("result %q", got)
	}
	if u := s.Usage(); u.Input != 20 || u.Output != 4 || u.Steps != 2 || u.Context != 12 || u.Cost != 28 {
		t.Errorf("usage %+v", u)
	}
	var kinds []string
	for _, r := range j.records {
		kinds = append(kinds, string(r.Kind))
	}
	if got := strings.Join(kinds, " "); got != "message message start result message" {
		t.Errorf("journal: %s", got)
	}
}

// A04: both results of one turn reach the model in the same next request.
func TestA04ResultsTogether(t *testing.T) {
	runs := &Runs{}
	m := &family{parts: map[string]*script{
		"": {turns: []turn{does(call("a", "spawn_agent", ""), call("b", "Echo", "")), says("ok")}},
		"CHILD": {turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
			time.Sleep(30 * time.Millisecond)
			says("the task is done")(ctx, r, yield)
		}}},
	}}
	fast := newTool("Echo", true, func(context.Context, map[string]any) abi.Result { return abi.Text("echo") })
	s := New("s", nil)
	if _, err := drain(t, newLoop(m, spawner(runs, Spawn{Prompt: "CHILD"}), fast).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	next := m.parts[""].requests[1].Messages
	last := next[len(next)-1]
	if len(last.Blocks) != 2 || !strings.Contains(last.Blocks[0].Result.Text(), "the task is done") || last.Blocks[1].Result.Text() != "echo" {
		t.Errorf("the next request ends with %+v", last)
	}
}

func TestParallelOnlyWhereAllowed(t *testing.T) { synctest.Test(t, parallelOnlyWhereAllowed) }

func parallelOnlyWhereAllowed(t *testing.T) {
	var now, most atomic.Int32
	var order []string
	var mu sync.Mutex
	work := func(name string) func(context.Context, map[string]any) abi.Result {
		return func(context.Context, map[string]any) abi.Result {
			n := now.Add(1)
			defer now.Add(-1)
			for {
				m := most.Load()
				if n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, name)
			return abi.Text(name)
		}
	}
	read, write := newTool("Read", true, work("r")), newTool("Write", false, work("w"))
	m := &script{turns: []turn{does(
		call("1", "Read", ""), call("2", "Read", ""), call("3", "Write", ""), call("4", "Write", ""), call("5", "Read", ""), call("6", "Read", "")), says("ok")}}
	if _, err := drain(t, newLoop(m, read, write).Run(context.Background(), New("s", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, ""); got != "rrwwrr" || most.Load() != 2 {
		t.Errorf("order %s, at once %d; want rrwwrr, 2", got, most.Load())
	}

	most.Store(0)
	m = &script{turns: []turn{does(ids(20, "Read", "")...), says("ok")}}
	l := newLoop(m, read)
	l.Limits.Parallel = 3
	if _, err := drain(t, l.Run(context.Background(), New("s", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	if most.Load() != 3 {
		t.Errorf("at once %d, limit 3", most.Load())
	}
}

// C06: the tool is not run, and the error names the place.
func TestC06MalformedArguments(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		stop model.StopReason
		want []string
	}{
		"cut in a string": {`{"path": "a`, model.StopCalls, []string{"end at byte 11", `{\"path\": \"a`}},
		"cut by length":   {`{"path": "a`, model.StopLength, []string{"because your answer reached its length limit"}},
		"nothing, cut":    {``, model.StopLength, []string{"before the arguments"}},
		"bad token":       {`{"path": a}`, model.StopCalls, []string{"invalid character 'a'", "at byte 9"}},
		"two values":      {`{"a":1} {"b":2}`, model.StopCalls, []string{"at byte 7", "one complete JSON object"}},
		"prose":           {`Sure! {"a":1}`, model.StopCalls, []string{"at byte 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			touch := newTool("Touch", false, func(context.Context, map[string]any) abi.Result { ran = true; return abi.Text("ran") })
			m := &script{turns: []turn{stopsAfter(c.stop, call("a", "Touch", c.args)), says("ok")}}
			s := New("s", nil)
			if _, err := drain(t, newLoop(m, touch).Run(context.Background(), s, text("go"))); err != nil {
				t.Fatal(err)
			}
			res := resultsOf(t, s)[0]
			if ran || !res.IsError {
				t.Errorf("ran %v, error %v", ran, res.IsError)
			}
			for _, w := range c.want {
				if !strings.Contains(res.Text(), w) {
					t.Errorf("the result lacks %q: %s", w, res.Text())
				}
			}
		})
	}
}

func TestEmptyArgumentsAreNone(t *testing.T) {
	m := &script{turns: []turn{does(call("a", "Now", "")), says("ok")}}
	var got host.Call
	now := tool{spec: spec("Now", false), call: func(_ context.Context, c host.Call) (abi.Result, error) { got = c; return abi.Text("noon"), nil }}
	if _, err := drain(t, newLoop(m, now).Run(context.Background(), New("s", nil), text("go"))); err != nil {
		t.Fatal(err)
	}
	if string(got.Args) != "{}" || got.Caller.Session != "s" || got.Caller.Step != 1 {
		t.Errorf("args %s, caller %+v", got.Args, got.Caller)
	}
}

func TestUnknownToolIsAnAnswer(t *testing.T) {
	m := &script{turns: []turn{does(call("a", "Nope", "{}")), says("ok")}}
	s := New("s", nil)
	events, err := drain(t, newLoop(m).Run(context.Background(), s, text("go")))
	if err != nil || stopOf(events) != StopEnd || !strings.Contains(resultsOf(t, s)[0].Text(), `"Nope"`) {
		t.Errorf("%v %v", stopOf(events), err)
	}
}

func TestRepeatGuard(t *testing.T) {
	same := does(call("a", "Read", `{"path":"x"}`))
	read := newTool("Read", true, func(context.Context, map[string]any) abi.Result { return abi.Text("same") })
	s := New("s", nil)
	m := &script{turns: []turn{same}}
	events, err := drain(t, newLoop(m, read).Run(context.Background(), s, text("go")))
	if err != nil || stopOf(events) != StopRepeat {
		t.Fatalf("stop %q, %v", stopOf(events), err)
	}
	mustValid(t, s)
	if m.n != 6 {
		t.Errorf("stopped after %d steps, want 6", m.n)
	}
	told := 0
	for _, x := range s.Messages() {
		if strings.Contains(x.Text(), "only repeats calls") {
			told++
		}
	}
	if told != 3 {
		t.Errorf("told %d times, want 3", told)
	}
}

func TestRepeatGuardLetsWorkGoOn(t *testing.T) {
	// Edit, test, edit, test: the tests always say the same, the edits differ.
	var turns []turn
	for i := range 20 {
		turns = append(turns, does(call("e", "Edit", fmt.Sprintf(`{"n":%d}`, i))), does(call("t", "Bash", `{"command":"go test"}`)))
	}
	turns = append(turns, says("done"))
	same := func(context.Context, map[string]any) abi.Result { return abi.Text("ok") }
	events, err := drain(t, newLoop(&script{turns: turns}, newTool("Edit", false, same), newTool("Bash", false, same)).Run(context.Background(), New("s", nil), text("go")))
	if err != nil || stopOf(events) != StopEnd {
		t.Errorf("stop %q, %v", stopOf(events), err)
	}
}

func TestLimits(t *testing.T) {
	var n atomic.Int32
	tick := newTool("Tick", false, func(context.Context, map[string]any) abi.Result { return abi.Textf("%d", n.Add(1)) })
	for name, c := range map[string]struct {
		limits Limits
		want   Stop
		steps  int
	}{
		"steps":  {Limits{Steps: 4}, StopSteps, 4},
		"tokens": {Limits{Tokens: 30}, StopTokens, 3},
		"cost":   {Limits{Cost: 0.0000239}, StopCost, 2},
	} {
		m := &script{turns: []turn{does(call("a", "Tick", "{}"))}}
		l := newLoop(m, tick)
		l.Limits, l.Price = c.limits, &model.Price{Input: 1, Output: 1}
		s := New("s", nil)
		events, err := drain(t, l.Run(context.Background(), s, text("go")))
		if err != nil || stopOf(events) != c.want || m.n != c.steps {
			t.Errorf("%s: stop %q after %d, %v", name, stopOf(events), m.n, err)
		}
		mustValid(t, s)
	}
}

func TestRetryVoidsAndGoesOn(t *testing.T) {
	half := func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		if yield(model.Event{Kind: model.KindText, Text: "hal"}, nil) {
			yield(model.Event{}, &model.Error{Code: model.ErrTruncated})
		}
	}
	m := &script{turns: []turn{half, fails(&model.Error{Code: model.ErrOverload, RetryAfter: 5 * time.Millisecond}), says("whole")}}
	s := New("s", nil)
	events, err := drain(t, newLoop(m).Run(context.Background(), s, text("go")))
	if err != nil {
		t.Fatal(err)
	}
	retries := 0
	for _, e := range events {
		if e.Kind == KindRetry {
			retries++
			if e.Retry.Attempt == 3 && e.Retry.After < 5*time.Millisecond {
				t.Errorf("waited %s, less than the provider asked for", e.Retry.After)
			}
		}
	}
	messages := s.Messages()
	if got := messages[len(messages)-1].Text(); got != "whole" || retries != 2 || len(messages) != 2 {
		t.Errorf("%q after %d retries, %d messages", got, retries, len(messages))
	}
}

func TestErrorKeepsWhatWasSeen(t *testing.T) {
	half := func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		c := call("x", "T", `{"a"`)
		_ = yield(model.Event{Kind: model.KindText, Text: "half a sen"}, nil) &&
			yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Call: &c}}, nil) &&
			yield(model.Event{}, &model.Error{Code: model.ErrAuth, Provider: "p"})
	}
	s := New("s", nil)
	events, err := drain(t, newLoop(&script{turns: []turn{half}}).Run(context.Background(), s, text("go")))
	if !errors.Is(err, model.ErrAuth) || stopOf(events) != StopError {
		t.Errorf("%q %v", stopOf(events), err)
	}
	mustValid(t, s)
	if m := s.Messages(); len(m) != 2 || m[1].Text() != "half a sen" || len(m[1].Calls()) != 0 {
		t.Errorf("kept %+v", m)
	}
}

func TestSteerAndEnd(t *testing.T) {
	s := New("s", nil)
	work := newTool("Work", false, func(context.Context, map[string]any) abi.Result {
		s.Steer(text("also this"))
		return abi.Text("done")
	})
	yield := newTool("Yield", false, func(ctx context.Context, _ map[string]any) abi.Result {
		if !End(ctx, "until tomorrow") {
			t.Error("no run to end")
		}
		return abi.Text("ending")
	})
	m := &script{turns: []turn{does(call("a", "Work", "")), does(call("b", "Yield", ""), call("c", "Yield", ""))}}
	events, err := drain(t, newLoop(m, work, yield).Run(context.Background(), s, text("go")))
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.Stop != StopYield || last.Text != "until tomorrow" {
		t.Errorf("ended with %q %q", last.Stop, last.Text)
	}
	mustValid(t, s)
	asked := m.requests[1].Messages
	if got := asked[len(asked)-1].Text(); got != "also this" {
		t.Errorf("the second request ends with %q", got)
	}
}

func TestSteerAfterTheLastAnswer(t *testing.T) {
	s := New("s", nil)
	first := func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		s.Steer(text("wait"))
		says("done")(ctx, r, yield)
	}
	m := &script{turns: []turn{first, says("waited")}}
	if _, err := drain(t, newLoop(m).Run(context.Background(), s, text("go"))); err != nil || m.n != 2 {
		t.Errorf("%d requests, %v", m.n, err)
	}
}

// A message that is put together when its time has come is asked for once, and
// its event tells the person's words alone.
func TestSteerWith(t *testing.T) {
	s := New("s", nil)
	asked := 0
	work := newTool("Work", false, func(context.Context, map[string]any) abi.Result {
		withdraw := s.SteerWith(func(context.Context) []abi.Content { return []abi.Content{text("never")} })
		s.SteerWith(func(context.Context) []abi.Content {
			asked++
			return []abi.Content{text("look at @f"), {Type: abi.TypeText, Name: Attached, Text: "the file"}}
		})
		if asked != 0 || !withdraw() || withdraw() {
			t.Error("it was asked for too early, or not taken back")
		}
		return abi.Text("done")
	})
	m := &script{turns: []turn{does(call("a", "Work", "")), says("done")}}
	events, err := drain(t, newLoop(m, work).Run(t.Context(), s, text("go")))
	if err != nil || asked != 1 {
		t.Fatal(err, asked)
	}
	if last := m.requests[1].Messages[3]; last.Text() != "look at @fthe file" {
		t.Errorf("the model is told %q", last.Text())
	}
	i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == KindSteer })
	if i < 0 || events[i].Text != "look at @f" {
		t.Errorf("the person is told %q", events[max(i, 0)].Text)
	}
}

func TestBusy(t *testing.T) {
	s := New("s", nil)
	l := newLoop(nil)
	l.Model = &script{turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		if _, err := drain(t, l.Run(ctx, s, text("again"))); !errors.Is(err, ErrBusy) {
			t.Errorf("a second run: %v", err)
		}
		says("ok")(ctx, r, yield)
	}}}
	if _, err := drain(t, l.Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	l.Model = &script{turns: []turn{says("free again")}}
	if _, err := drain(t, l.Run(context.Background(), s, text("again"))); err != nil {
		t.Errorf("after the first run: %v", err)
	}
}

func TestHandmadeIDs(t *testing.T) {
	m := &script{turns: []turn{does(call("", "T", "{}"), call("x", "T", "{}"), call("x", "T", "{}")), does(call("x", "T", "{}")), says("ok")}}
	s := New("s", nil)
	if _, err := drain(t, newLoop(m, newTool("T", true, func(context.Context, map[string]any) abi.Result { return abi.Text("t") })).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	mustValid(t, s)
}

// drafts is a journal that keeps pieces until it fails.
type drafts struct {
	memory
	left int
	kept []string
}

func (d *drafts) Draft(_ context.Context, _ string, p Piece) error {
	if d.left--; d.left < 0 {
		return errDisk
	}
	d.kept = append(d.kept, p.Text)
	return nil
}

// A piece of an answer is shown once it is kept, and not before.
func TestNothingIsShownThatIsNotKept(t *testing.T) {
	three := func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		for _, piece := range []string{"one ", "two ", "three"} {
			if !yield(model.Event{Kind: model.KindText, Text: piece}, nil) {
				return
			}
		}
		yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
	}
	j := &drafts{left: 2}
	events, err := drain(t, newLoop(&script{turns: []turn{three}}).Run(context.Background(), New("s", j), text("go")))
	if !errors.Is(err, ErrJournal) {
		t.Errorf("it ended with %v", err)
	}
	shown := ""
	for _, e := range events {
		if e.Kind == KindText {
			shown += e.Text
		}
	}
	if shown != "one two " || strings.Join(j.kept, "") != shown {
		t.Errorf("shown %q, kept %q", shown, j.kept)
	}
}

// What Messages gave stays as it was, whatever comes, and takes no room of the
// session's when somebody appends to it.
func TestMessagesStay(t *testing.T) {
	s := New("s", nil)
	l := newLoop(&script{turns: []turn{says("one"), says("two"), says("three"), says("four")}})
	var before []model.Message
	for i, prompt := range []string{"a", "b", "c", "d"} {
		if _, err := drain(t, l.Run(context.Background(), s, text(prompt))); err != nil {
			t.Fatal(err)
		}
		if i == 2 {
			before = s.Messages()
		}
	}
	_ = append(before, model.User(text("mine")))
	got := ""
	for _, m := range s.Messages() {
		got += m.Text() + " "
	}
	if got != "a one b two c three d four " || len(before) != 6 || before[5].Text() != "three" {
		t.Errorf("%s, %d before", got, len(before))
	}
}

func TestTooManyCalls(t *testing.T) {
	var ran atomic.Int32
	m := &script{turns: []turn{does(ids(500, "T", "{}")...), says("ok")}}
	s := New("s", nil)
	if _, err := drain(t, newLoop(m, newTool("T", true, func(context.Context, map[string]any) abi.Result { ran.Add(1); return abi.Text("t") })).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	mustValid(t, s)
	if ran.Load() != maxCalls || len(resultsOf(t, s)) != 500 {
		t.Errorf("ran %d, %d results", ran.Load(), len(resultsOf(t, s)))
	}
}

// An empty prompt goes on: after results as they are, after the model's own
// words with a word of the person.
func TestGoOn(t *testing.T) {
	s := New("s", nil)
	m := &script{turns: []turn{stopsAfter(model.StopCalls, call("a", "T", "")), says("half"), says("whole")}}
	l := newLoop(m, newTool("T", true, func(context.Context, map[string]any) abi.Result { return abi.Text("t") }))
	l.Limits.Steps = 1
	for range 3 {
		prompt := []abi.Content{text("go")}
		if m.n > 0 {
			prompt = nil
		}
		if _, err := drain(t, l.Run(context.Background(), s, prompt...)); err != nil {
			t.Fatal(err)
		}
	}
	var roles []string
	for _, msg := range s.Messages() {
		roles = append(roles, string(msg.Role))
	}
	if got := strings.Join(roles, " "); got != "user assistant tool assistant user assistant" {
		t.Errorf("%s", got)
	}
}

func TestUsageIsGuessedWhereItIsMissing(t *testing.T) {
	quiet := func(_ context.Context, _ model.Request, yield func(model.Event, error) bool) {
		c := text(strings.Repeat("word ", 100))
		_ = yield(model.Event{Kind: model.KindBlock, Block: &model.Block{Content: &c}}, nil) && yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
	}
	s := New("s", nil)
	if _, err := drain(t, newLoop(&script{turns: []turn{quiet}}).Run(context.Background(), s, text("go"))); err != nil {
		t.Fatal(err)
	}
	if u := s.Usage(); u.Output < 100 || u.Output > 300 || u.Input == 0 || u.Context == 0 {
		t.Errorf("%+v", u)
	}
}
