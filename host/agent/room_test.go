package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// spilling is a registry that keeps what it cuts.
func spilling(kept map[string]string, tools ...host.Tool) *host.Registry {
	r := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}, Spill: func(_ context.Context, _, call, text string) (string, error) {
		name := fmt.Sprintf("/out/%s-%d", call, len(kept))
		kept[name] = text
		return name, nil
	}})
	if err := r.Add(tools...); err != nil {
		panic(err)
	}
	return r
}

// L04: results that are larger than the window, alone or together, become
// references to files; the run goes on, and no request is over the window.
func TestL04ResultsLargerThanTheWindow(t *testing.T) {
	const window = 16_000
	for _, calls := range []int{1, 8} {
		kept := map[string]string{}
		big := tool{spec: spec("Read", false), call: func(context.Context, host.Call) (abi.Result, error) {
			return abi.Text(strings.Repeat("long line\n", 12_000)), nil
		}}
		big.spec.MaxOutput = 128 << 10
		var step []model.Call
		for i := range calls {
			step = append(step, call(fmt.Sprint("c", i), "Read", fmt.Sprintf(`{"n":%d}`, i)))
		}
		m := writer("minutes", counted(does(step...)), counted(does(call("again", "Read", `{"n":99}`))), says("done"))
		l := newLoop(m)
		l.Tools, l.Info.Window = spilling(kept, big), window
		s := New("s", nil)
		events, err := drain(t, l.Run(t.Context(), s, text("read it all")))
		if err != nil || stopOf(events) != StopEnd {
			t.Fatalf("%d calls: %q %v", calls, stopOf(events), err)
		}
		mustValid(t, s)
		for _, r := range m.requests {
			if n := l.overhead() + estimate(r.Messages); n > window {
				t.Errorf("%d calls: a request of about %d tokens", calls, n)
			}
		}
		if len(kept) != calls+1 {
			t.Errorf("%d results were kept whole, want %d", len(kept), calls+1)
		}
		last := s.Messages()[len(s.Messages())-2]
		if text := last.Blocks[0].Result.Text(); !strings.Contains(text, "The whole is in /out/again-") {
			t.Errorf("the model is not told where the whole is: …%s", text[len(text)-100:])
		}
	}
}

// What the person began with a bracket is theirs, and what the host or a file
// has to say is not.
func TestWhatThePersonAsked(t *testing.T) {
	s := New("s", nil)
	r := run{loop: &Loop{}, session: s}
	if err := r.say(t.Context(), []abi.Content{abi.TextBlock("[URGENT] mend it"), {Type: abi.TypeText, Name: Attached, Text: "SECRET FILE"}}); err != nil {
		t.Fatal(err)
	}
	if err := r.remark(t.Context(), "Go on."); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked(s.Messages()), ""); !strings.Contains(got, "[URGENT] mend it") || strings.Contains(got, "SECRET") || strings.Contains(got, "Go on") {
		t.Errorf("%q", got)
	}
}

// Nobody is asked for a longer answer than it can give: providers refuse that,
// and the conversation could not be shortened at all.
func TestMinutesAskForNoMoreThanAModelCanWrite(t *testing.T) {
	for _, c := range []struct{ window, most, want int64 }{
		{1_000_000, 128_000, longestMinutes}, {200_000, 8_192, 8_192}, {1_000_000, 0, 0}, {20_000, 64_000, 4_000},
	} {
		for _, small := range []bool{false, true} {
			s := long(t, nil, 40, 3000)
			m := writer("minutes", says("ok"))
			l := newLoop(m)
			l.Info = model.Info{Window: c.window, MaxOutput: c.most}
			asking := m
			if small {
				asking = writer("minutes", says("?"))
				l.Info.MaxOutput, l.Compact.Model, l.Compact.Answer = 1, asking, c.most
			}
			if _, _, err := l.minutes(t.Context(), s.Messages(), c.window*8/10); err != nil {
				t.Fatal(err)
			}
			if got := asking.requests[0].MaxTokens; got != c.want {
				t.Errorf("window %d, answers of %d, small %v: asks for %d", c.window, c.most, small, got)
			}
		}
	}
}

// A window that is not known is taken to be small, and stops nobody.
func TestAnUnknownWindow(t *testing.T) {
	for name, c := range map[string]struct {
		system, compacts int
		minutes          string
	}{
		"shortens":     {0, 1, "minutes"},
		"cannot":       {0, 0, ""},
		"no room left": {200_000, 0, "minutes"},
	} {
		s := long(t, nil, 40, 3000)
		l := newLoop(writer(c.minutes, says("ok")))
		l.Compact.Window, l.System = 32_000, strings.Repeat("x", c.system)
		events, err := drain(t, l.Run(t.Context(), s, text("more")))
		if err != nil || stopOf(events) != StopEnd {
			t.Fatalf("%s: %q %v", name, stopOf(events), err)
		}
		n := 0
		for _, e := range events {
			if e.Kind == KindCompact {
				n++
			}
		}
		if n != c.compacts {
			t.Errorf("%s: shortened %d times", name, n)
		}
	}
	if n, known := newLoop(writer("x")).window(); n != assumedWindow || known {
		t.Errorf("without any word of it: %d %v", n, known)
	}
}

// A first message that alone is over the window is an error that says so, and
// the next one can be answered.
func TestAFirstMessageLargerThanTheWindow(t *testing.T) {
	m := writer("minutes", says("ok"))
	l := newLoop(m)
	l.Info.Window = 16_000
	s := New("s", nil)
	if _, err := drain(t, l.Run(t.Context(), s, text(strings.Repeat("word ", 20_000)))); err == nil || len(m.requests) > 0 || !strings.Contains(err.Error(), "its newest step alone") {
		t.Errorf("%v after %d requests", err, len(m.requests))
	}
	events, err := drain(t, l.Run(t.Context(), s, text("never mind")))
	if err != nil || stopOf(events) != StopEnd {
		t.Errorf("afterwards: %q %v", stopOf(events), err)
	}
	mustValid(t, s)
}

// A window that nobody knows is asked for when it matters: not for a short
// conversation without calls, but before results are cut to fit, and when a
// conversation is long or the provider says that it is full.
func TestTheWindowIsAskedForWhenItMatters(t *testing.T) {
	asked := 0
	ask := func(context.Context) int64 { asked++; return 16_000 }
	l := newLoop(writer("x", says("hello")))
	l.Compact.Ask = ask
	if _, err := drain(t, l.Run(t.Context(), New("x", nil), text("hi"))); err != nil || asked != 0 {
		t.Errorf("a short conversation asked %d times, %v", asked, err)
	}
	l.Info.Window = 32_000
	if n, known := l.askedWindow(t.Context()); n != 32_000 || !known || asked != 0 {
		t.Errorf("a known window: %d, %v, asked %d times", n, known, asked)
	}
	l.Info.Window = 0
	if got := (&run{loop: l}).room(t.Context(), 1); asked != 1 || got > 16_000*bytesPerToken {
		t.Errorf("a result may have %d bytes, asked %d times", got, asked)
	}
	// A conversation that fits the assumed window and not the true one is shortened before it is sent.
	s := long(t, nil, 40, 3000)
	m := writer("MINUTES", says("done"))
	l = newLoop(m)
	l.Compact.Ask = ask
	events, err := drain(t, l.Run(t.Context(), s, text("and now?")))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(events, func(e Event) bool { return e.Kind == KindCompact }) || l.filled(s) > 16_000 {
		t.Errorf("it takes %d tokens", l.filled(s))
	}
	// Nobody knows: what is assumed stays.
	l.Compact.Ask = func(context.Context) int64 { return 0 }
	if n, known := l.askedWindow(t.Context()); n != assumedWindow || known {
		t.Error(n, known)
	}
}
