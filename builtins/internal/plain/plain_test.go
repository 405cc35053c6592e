package plain

import "testing"

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"a\r\nb\tc":                 "a b c",
		"a\u202eb\u200bc\U000e0041": "abc",
		"\x1b[31mred\x07":           "[31mred",
		"👩\u200d💻 नमस्ते 日本語": "👩\u200d💻 नमस्ते 日本語",
		"\ufeff  x  ":                "x",
		"0123456789abcdefghijklmnop": "0123456789abcdefghi…",
		"\u3164\u2800\U000e0101x":    "x",
	} {
		if got := Line(in, 20); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
