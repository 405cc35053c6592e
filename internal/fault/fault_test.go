package fault

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"testing"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{New("E1001", "", "x"), 2},
		{fmt.Errorf("more: %w", New("E1203", "", "x")), 3},
		{New("E1401", "", "x"), 4},
		{New("E1102", "", "x"), 75},
		{fmt.Errorf("x: %w", context.Canceled), 130},
	} {
		if got := Exit(c.err); got != c.want {
			t.Errorf("Exit(%v) = %d, want %d", c.err, got, c.want)
		}
	}
}

func TestCodesAreUniqueAndExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Codes() {
		if seen[c.ID] || !regexp.MustCompile(`^E1[0-9]{3}$`).MatchString(c.ID) || len(c.Explain) < 40 || c.Title == "" {
			t.Errorf("bad code %+v", c)
		}
		seen[c.ID] = true
	}
}

func TestWrapKeepsTheFirstCode(t *testing.T) {
	e := Wrap("E1302", "", fmt.Errorf("loading: %w", New("E1305", "h", "x")))
	var f *Error
	if !errors.As(e, &f) || f.Code != "E1305" {
		t.Fatalf("%v", e)
	}
}
