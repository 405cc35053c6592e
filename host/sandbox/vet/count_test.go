package vet

import (
	"math"
	"testing"
)

// TestCountsStayPositive: a count that a module declares passes no limit by
// becoming negative, whatever size an int has.
func TestCountsStayPositive(t *testing.T) {
	for n, want := range map[uint32]int{0: 0, 70_000: 70_000, math.MaxInt32: math.MaxInt32, 1 << 31: math.MaxInt32, math.MaxUint32: math.MaxInt32} {
		if got := count(n); got != want {
			t.Errorf("%d is %d, not %d", n, got, want)
		}
	}
	c := &checker{r: &Report{}}
	c.r.Profile.Max[TableEntries] = 100
	for range 3 {
		if err := c.add(TableEntries, math.MaxInt32); err == nil {
			t.Error("a sum that is too large passes")
		}
	}
}
