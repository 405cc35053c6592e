package bench

import (
	"strings"
	"testing"
	"time"
)

func TestFigure(t *testing.T) {
	var b strings.Builder
	if !Figure(&b, "x.ratio", 1.23456, 2) || Figure(&b, "y", 3, 2) || !Least(&b, "z", 3, 2) || Least(&b, "z2", 1, 2) {
		t.Error("verdicts")
	}
	var got []string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "figure\t") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := "figure\tx.ratio\t1.235\t<=2\tok|figure\ty\t3\t<=2\tshort|figure\tz\t3\t>=2\tok|figure\tz2\t1\t>=2\tshort"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %q", s)
	}
}

func TestTimes(t *testing.T) {
	calls := 0
	got := Times(3, 2, func() { calls++ }, func() { time.Sleep(time.Millisecond) })
	if calls != 6 || got[1] < time.Millisecond || got[0] >= got[1] {
		t.Errorf("%d calls, %v", calls, got)
	}
}
