package model

import (
	"strings"
	"testing"
)

func TestParseEffort(t *testing.T) {
	for in, want := range map[string]Effort{"": "", "default": "", " High ": EffortHigh, "none": EffortNone, "low": EffortLow, "MEDIUM": EffortMedium} {
		if got, err := ParseEffort(in); err != nil || got != want {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
	for _, in := range []string{"max", "hi gh", "0"} {
		got, err := ParseEffort(in)
		if err == nil || got != EffortDefault || !strings.Contains(err.Error(), "none, low, medium, high") {
			t.Errorf("%q: %q %v", in, got, err)
		}
	}
}
