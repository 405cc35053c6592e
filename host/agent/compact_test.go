package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// long makes a session of n steps with a call each, and results of some size.
func long(t *testing.T, j Journal, n, size int) *Session {
	t.Helper()
	s := New("long", j)
	var turns []turn
	for i := range n {
		turns = append(turns, does(call(fmt.Sprintf("c%d", i), "Read", fmt.Sprintf(`{"n":%d}`, i))))
	}
	turns = append(turns, says("first part done"))
	l := newLoop(&script{turns: turns}, newTool("Read", true, func(_ context.Context, a map[string]any) abi.Result {
		return abi.Text(fmt.Sprint(a["n"]) + strings.Repeat(" word", size/5))
	}))
	l.Compact.Off = true
	if _, err := drain(t, l.Run(context.Background(), s, text("Rename the parser to reader, everywhere."))); err != nil {
		t.Fatal(err)
	}
	// As if the provider did not count.
	s.usage.Context = 0
	return s
}

// writer answers requests for minutes with a text, and others as told.
func writer(summary string, others ...turn) *script {
	n := 0
	return &script{turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		if strings.Contains(r.System, "You write the minutes") {
			if summary == "" {
				_ = yield(model.Event{Kind: model.KindStop, Stop: model.StopEnd}, nil)
				return
			}
			says(summary)(ctx, r, yield)
			return
		}
		n++
		others[min(n, len(others))-1](ctx, r, yield)
	}}}
}

func TestCompactionKeepsWhatMatters(t *testing.T) {
	j := &memory{}
	s := long(t, j, 40, 3000)
	m := writer("MINUTES OF THE TALK", does(call("x", "Read", `{"n":1}`)), says("all done"))
	l := newLoop(m, newTool("Read", true, func(context.Context, map[string]any) abi.Result { return abi.Text("fresh") }))
	l.Info.Window = 32_000
	l.Compact.Plan = func(string) string { return "1. rename\n2. test" }
	l.Compact.Changed = func(string) []string { return []string{"parser.go"} }
	before := len(j.records)
	events, err := drain(t, l.Run(context.Background(), s, text("Now the tests.")))
	if err != nil || stopOf(events) != StopEnd {
		t.Fatalf("%q %v", stopOf(events), err)
	}
	mustValid(t, s)
	compacted := 0
	for _, e := range events {
		if e.Kind == KindCompact {
			compacted++
		}
	}
	messages := s.Messages()
	first := messages[0].Text()
	for _, want := range []string{"MINUTES OF THE TALK", "> Rename the parser", "1. rename", "- parser.go", "not a new request"} {
		if !strings.Contains(first, want) {
			t.Errorf("the minutes lack %q:\n%s", want, first)
		}
	}
	if compacted != 1 || len(messages) < 5 {
		t.Errorf("compacted %d times, %d messages stay", compacted, len(messages))
	}
	if got := l.filled(s); got > 32_000*8/10 {
		t.Errorf("still %d tokens", got)
	}
	// The whole is in the journal, and a reload gives the short form.
	if len(j.records) <= before || j.records[0].Message.Text() != "Rename the parser to reader, everywhere." {
		t.Error("the journal lost the beginning")
	}
	again, err := Resume("long", nil, j.records)
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Messages()) != len(messages) || again.Messages()[0].Text() != first {
		t.Errorf("reloaded: %d messages, live: %d", len(again.Messages()), len(messages))
	}
}

// Minutes that are too long are shortened in turn, before the model is asked.
func TestLongMinutesAreShortenedAgain(t *testing.T) {
	s := long(t, nil, 20, 3000)
	const window = 10_000
	minutes := 0
	m := &script{turns: []turn{func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		if !strings.Contains(r.System, "You write the minutes") {
			if got := estimate(r.Messages); got > window*8/10 {
				t.Errorf("the model was sent about %d tokens", got)
			}
			says("done")(ctx, r, yield)
			return
		}
		if minutes++; minutes == 1 {
			says(strings.Repeat("and so on, ", window*bytesPerToken*6/10/11))(ctx, r, yield)
			return
		}
		says("Short.")(ctx, r, yield)
	}}}
	l := newLoop(m)
	l.Info.Window = window
	events, err := drain(t, l.Run(context.Background(), s, text("go on")))
	if err != nil || stopOf(events) != StopEnd || minutes != 2 {
		t.Errorf("%q after %d minutes: %v", stopOf(events), minutes, err)
	}
	mustValid(t, s)
}

// counted gives an answer the usage that its request would have.
func counted(inner turn) turn {
	return func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		inner(ctx, r, func(e model.Event, err error) bool {
			if e.Kind == model.KindUsage {
				e.Usage = &model.Usage{Input: estimate(r.Messages), Output: 20}
			}
			return yield(e, err)
		})
	}
}

// L05: compaction in the middle of a turn does not bring the prompt back as a
// request of its own.
func TestL05PromptIsNotRepeated(t *testing.T) {
	const prompt = "Rename everything, one file at a time."
	var others []turn
	for i := range 30 {
		others = append(others, counted(does(call(fmt.Sprint("k", i), "Read", fmt.Sprintf(`{"n":%d}`, i)))))
	}
	others = append(others, says("done"))
	m := writer("half of the files are renamed", others...)
	l := newLoop(m, newTool("Read", true, func(_ context.Context, a map[string]any) abi.Result {
		return abi.Text(strings.Repeat("long line ", 600))
	}))
	l.Info.Window = 20_000
	s := New("s", nil)
	events, err := drain(t, l.Run(context.Background(), s, text(prompt)))
	if err != nil || stopOf(events) != StopEnd {
		t.Fatalf("%q %v", stopOf(events), err)
	}
	compacted := 0
	for _, e := range events {
		if e.Kind == KindCompact {
			compacted++
		}
	}
	if compacted == 0 {
		t.Fatal("nothing was compacted")
	}
	for _, r := range m.requests {
		if strings.Contains(r.System, "You write the minutes") {
			continue
		}
		for i, msg := range r.Messages {
			if msg.Role == model.RoleUser && msg.Text() == prompt && i != 0 {
				t.Fatalf("the prompt stands at %d again", i)
			}
		}
		if r.Messages[0].Text() == prompt {
			continue
		}
		if !strings.Contains(r.Messages[0].Text(), "not a new request") || !strings.Contains(r.Messages[0].Text(), prompt) {
			t.Fatalf("a compacted conversation begins with %q", r.Messages[0].Text())
		}
	}
}

// L04: no room beside the fixed part, minutes that are empty or do not help:
// a bounded number of attempts, a clear error, nothing lost.
func TestL04CompactionCannotLoop(t *testing.T) {
	window := func(model.Request) error { return &model.Error{Code: model.ErrWindow, Provider: "p"} }
	full := func(_ context.Context, r model.Request, yield func(model.Event, error) bool) {
		yield(model.Event{}, window(r))
	}
	for name, c := range map[string]struct {
		model  *script
		window int64
		system int
		want   string
		most   int // requests for minutes
	}{
		"fixed part too large":        {writer("short", says("ok")), 32_000, 29_000 * bytesPerToken, "the system prompt and the tools alone", 0},
		"empty minutes":               {writer("", says("ok")), 32_000, 0, "gave no minutes", 1},
		"minutes as long as the talk": {writer(strings.Repeat("blah ", 60_000), says("ok")), 32_000, 0, "no shorter", 1},
		"the provider never has room": {writer("short", full), 0, 0, "context window", maxPacked},
	} {
		t.Run(name, func(t *testing.T) {
			s := long(t, nil, 40, 3000)
			whole := len(s.Messages())
			l := newLoop(c.model)
			l.Info.Window, l.System = c.window, strings.Repeat("x", c.system)
			events, err := drain(t, l.Run(context.Background(), s, text("more")))
			if !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), c.want) || stopOf(events) != StopError {
				t.Errorf("%q %v", stopOf(events), err)
			}
			asked := 0
			for _, r := range c.model.requests {
				if strings.Contains(r.System, "You write the minutes") {
					asked++
				}
			}
			if asked > c.most {
				t.Errorf("asked for minutes %d times, want at most %d", asked, c.most)
			}
			mustValid(t, s)
			if c.most <= 1 && len(s.Messages()) != whole+1 {
				t.Errorf("%d messages of %d are left", len(s.Messages()), whole+1)
			}
		})
	}
}

func TestTheSmallModelWritesMinutes(t *testing.T) {
	s := long(t, nil, 40, 3000)
	small, large := writer("by the small one", says("?")), writer("by the large one", says("ok"))
	l := newLoop(large)
	l.Info.Window, l.Compact.Model, l.Compact.Price = 32_000, small, &model.Price{Input: 1e6}
	if _, err := drain(t, l.Run(context.Background(), s, text("more"))); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Messages()[0].Text(), "by the small one") || s.Usage().Cost != 10 {
		t.Errorf("cost %v: %.200s", s.Usage().Cost, s.Messages()[0].Text())
	}
	s = long(t, nil, 40, 3000)
	l.Compact.Model = &script{turns: []turn{fails(&model.Error{Code: model.ErrAuth})}}
	if _, err := drain(t, l.Run(context.Background(), s, text("more"))); err != nil || !strings.Contains(s.Messages()[0].Text(), "by the large one") {
		t.Errorf("the large model does not stand in: %v", err)
	}
}

func TestShortenOnRequest(t *testing.T) {
	s := long(t, nil, 6, 300)
	before := len(s.Messages())
	l := newLoop(writer("short", says("ok")))
	if err := l.Shorten(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	mustValid(t, s)
	if len(s.Messages()) >= before {
		t.Errorf("%d messages of %d", len(s.Messages()), before)
	}
	if err := l.Shorten(context.Background(), New("new", nil)); err == nil || !strings.Contains(err.Error(), "nothing to shorten") {
		t.Errorf("an empty session: %v", err)
	}
}

func TestSplitNeverPartsPairs(t *testing.T) {
	s := long(t, nil, 12, 500)
	messages := s.Messages()
	for keep := int64(0); keep < estimate(messages)+100; keep += 37 {
		cut := split(messages, keep)
		if err := model.Check(messages[cut:]); err != nil {
			t.Fatalf("keep %d, cut %d: %v", keep, cut, err)
		}
		if cut == 0 || cut == len(messages) {
			t.Fatalf("keep %d: cut %d", keep, cut)
		}
	}
}

func TestTitle(t *testing.T) {
	s := long(t, nil, 2, 10)
	before := s.Usage()
	got, err := newLoop(&script{turns: []turn{says("\n\"Renaming the parser.\"\n")}}).Title(context.Background(), s)
	if err != nil || got != "Renaming the parser" {
		t.Errorf("%q %v", got, err)
	}
	if s.Usage().Output <= before.Output {
		t.Error("what a title costs is not the session's")
	}
}
