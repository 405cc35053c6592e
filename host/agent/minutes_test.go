package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Minutes that broke off are none: what they leave out would be gone.
func TestMinutesThatBreakOff(t *testing.T) {
	s := long(t, nil, 40, 3000)
	before := len(s.Messages())
	cut := func(ctx context.Context, r model.Request, yield func(model.Event, error) bool) {
		says("half of")(ctx, r, func(e model.Event, err error) bool {
			if e.Kind == model.KindStop {
				e.Stop = model.StopLength
			}
			return yield(e, err)
		})
	}
	l := newLoop(&script{turns: []turn{cut}})
	l.Info.Window = 32_000
	if _, err := drain(t, l.Run(t.Context(), s, text("more"))); !errors.Is(err, ErrNoRoom) || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("%v", err)
	}
	if n := len(s.Messages()); n != before+1 {
		t.Errorf("%d messages of %d are left", n, before+1)
	}
}

// Minutes that are a little longer than what they stand for help nobody.
func TestMinutesALittleTooLong(t *testing.T) {
	s := long(t, nil, 6, 300)
	before := estimate(s.Messages())
	l := newLoop(writer(strings.Repeat("x", int(before)*bytesPerToken*5/4), says("ok")))
	if err := l.Shorten(t.Context(), s); !errors.Is(err, ErrNoRoom) || estimate(s.Messages()) != before {
		t.Errorf("%v", err)
	}
}

// What the person said outlives any number of minutes, once and as it was; what
// minutes cost is the session's; their writer is sent no more than fits.
func TestMinutesOfMinutes(t *testing.T) {
	const prompt = "Rename the parser to reader, everywhere."
	s := long(t, nil, 40, 3000)
	m := writer("what was done", says("ok"))
	l := newLoop(m)
	l.Info.Window, l.Price = 16_000, &model.Price{Input: 1e6}
	for range 3 {
		used, cost := s.Usage().Output, s.Usage().Cost
		if err := l.shorten(t.Context(), s, 12_000); err != nil {
			t.Fatal(err)
		}
		if now := s.Usage(); now.Output <= used || now.Cost <= cost {
			t.Errorf("minutes cost nothing: %+v", now)
		}
		s.messages = append(s.messages, long(t, nil, 40, 3000).Messages()[1:]...)
	}
	words := strings.Join(asked(s.Messages()), "")
	if strings.Count(words, prompt) != 1 || strings.Contains(words, "> >") || strings.Contains(words, "what was done") {
		t.Errorf("the person's words:\n%s", words)
	}
	for _, r := range m.requests {
		if n := estimate(r.Messages); n > 16_000 {
			t.Errorf("the writer of minutes is sent about %d tokens", n)
		}
	}
}

// One long result leaves room for all the others in what is told of a talk.
func TestNarrateCutsResults(t *testing.T) {
	res := model.CallResult{ID: "a", Name: "Read", Result: abi.Text(strings.Repeat("x", 100_000))}
	got := narrate([]model.Message{
		{Role: model.RoleTool, Blocks: []model.Block{{Result: &res}}}, model.User(abi.TextBlock("in the middle")),
		{Role: model.RoleTool, Blocks: []model.Block{{Result: &res}}},
	}, 20_000)
	if !strings.Contains(got, "in the middle") || len(got) > 20_000 {
		t.Errorf("%d bytes", len(got))
	}
}

// An assumed window stops nobody, and hides no failure.
func TestAFailureUnderAnUnknownWindow(t *testing.T) {
	l := newLoop(&script{turns: []turn{fails(&model.Error{Code: model.ErrAuth})}})
	l.Compact.Window = 32_000
	m := l.Model.(*script)
	if _, err := drain(t, l.Run(t.Context(), long(t, nil, 40, 3000), text("more"))); !errors.Is(err, model.ErrAuth) || len(m.requests) != 1 {
		t.Errorf("%v after %d requests", err, len(m.requests))
	}
}

func TestRoomOfAStep(t *testing.T) {
	for _, c := range []struct {
		window int64
		system int
		calls  int
		want   int
	}{
		{100_000, 0, 1, 60_000 * bytesPerToken}, {100_000, 0, 10, 6_000 * bytesPerToken}, {100_000, 30_000, 1, 52_500 * bytesPerToken},
		{10_000, 30_000, 1, leastResult}, {0, 0, 1, assumedWindow * 6 / 10 * bytesPerToken}, {1_000, 0, 1000, leastResult},
	} {
		l := &Loop{Info: model.Info{Window: c.window}, System: strings.Repeat("x", c.system)}
		if got := (&run{loop: l}).room(t.Context(), c.calls); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// A session that was never counted is guessed with what stands before it.
func TestFilledCountsTheBeginning(t *testing.T) {
	l := &Loop{System: strings.Repeat("x", 3000)}
	if got := l.filled(New("s", nil)); got != 1000 {
		t.Errorf("%d tokens", got)
	}
}
