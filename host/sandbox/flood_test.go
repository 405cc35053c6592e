package sandbox

import (
	"bytes"
	"testing"
)

// What nobody will read is not looked at, however many lines it is: a guest can
// write two GiB of line ends in one call of a host function.
func TestAFullLogIsNotLookedAt(t *testing.T) {
	lines := 0
	l := newLogs(func(LogLine) { lines++ }, LogLine{}, 3, 80)
	for range 10 {
		if n, err := l.out.Write(bytes.Repeat([]byte("\n"), 1<<20)); n != 1<<20 || err != nil {
			t.Fatal(n, err)
		}
	}
	if lines != 3 || l.dropped != 10 {
		t.Errorf("%d lines, %d times something was dropped", lines, l.dropped)
	}
	if l.flush(); lines != 3 {
		t.Error("a line after the last")
	}
}
