package app

import "testing"

func TestSplitModel(t *testing.T) {
	for in, want := range map[string][2]string{
		"anthropic/claude": {"anthropic", "claude"}, "openrouter/a/b": {"openrouter", "a/b"}, "claude": {"", "claude"},
	} {
		if p, id := splitModel(in); p != want[0] || id != want[1] {
			t.Errorf("%s: %q %q", in, p, id)
		}
	}
}
