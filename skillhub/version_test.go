package skillhub

import (
	"slices"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	// From section 11 of the specification, and what it does not speak of.
	order := []string{
		"0.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1",
		"1.0.0", "1.0.1", "1.2", "1.10.0", "2.0.0", "99999999999999999999.0", "100000000000000000000.0", "next",
	}
	for i, a := range order {
		for j, b := range order {
			want := min(1, max(-1, i-j))
			if got := CompareVersions(a, b); got != want {
				t.Errorf("CompareVersions(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
	for _, same := range [][2]string{{"1", "1.0.0"}, {"v1.2.0", "1.2"}, {"1.0.0+a", "1.0.0+b"}, {"01.2", "1.2"}} {
		if got := CompareVersions(same[0], same[1]); got != 0 {
			t.Errorf("CompareVersions(%q, %q) = %d", same[0], same[1], got)
		}
	}
	if !Prerelease("1.0.0-rc.1") || Prerelease("1.0.0+b-1") {
		t.Error("Prerelease")
	}
	if !slices.IsSortedFunc(order, CompareVersions) {
		t.Error("not an order")
	}
}
