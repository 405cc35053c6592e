package abi

import (
	"strings"
	"testing"
)

func TestCheckName(t *testing.T) {
	for _, ok := range []string{"a", "webfetch", "web-fetch", "a1", "console", "com10", "com"} {
		if err := CheckName(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "A", "1a", "-a", "a-", "a--b", "a_b", "a.b", "a/b", "..", "con", "nul", "com1", "lpt9", "bücher", "a\x00", strings.Repeat("a", 65)} {
		if CheckName(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
