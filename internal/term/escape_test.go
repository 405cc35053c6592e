package term

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestTUI01: nothing that a tool's name or argument holds reaches the terminal as a control.
func TestTUI01(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2K\x1b[1Ax":         "<U+001B>[2K<U+001B>[1Ax",
		"safe\rrm -rf":            "safe<U+000D>rm -rf",
		"\x1b]8;;http://x\x07l":   "<U+001B>]8;;http://x<U+0007>l",
		"\x1b]52;c;aGk=\x1b\\":    "<U+001B>]52;c;aGk=<U+001B>\\",
		"\x1bPq\x1b\\":            "<U+001B>Pq<U+001B>\\",
		"\x9b2J":                  "<0x9B>2J",
		"\u009b2J":                "<U+009B>2J",
		"\a\x00\x7f":              "<U+0007><U+0000><U+007F>",
		"a\nb":                    "a<U+000A>b",
		"Привет, 世界, é, ё":        "Привет, 世界, é, ё",
		"👍 ok":                    "👍 ok",
		"\xff\xfe":                "<0xFF><0xFE>",
		"e\u0301 stays combining": "e\u0301 stays combining",
	} {
		if got, _ := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestTUI02: what reorders or hides text is named and counted.
func TestTUI02(t *testing.T) {
	for in, want := range map[string]string{
		"run \u202Egnp.exe":  "run <U+202E>gnp.exe",
		"\u2066x\u2069":      "<U+2066>x<U+2069>",
		"a\U000E0041b":       "a<U+E0041>b",
		"zero\u200bwidth":    "zero<U+200B>width",
		"\u3164name":         "<U+3164>name",
		"\u00a0nbsp":         "<U+00A0>nbsp",
		"line\u2028sep":      "line<U+2028>sep",
		"soft\u00adhyphen":   "soft<U+00AD>hyphen",
		"private\ue000use":   "private<U+E000>use",
		"\ufeffbom":          "<U+FEFF>bom",
		"variation\ufe0fsel": "variation<U+FE0F>sel",
	} {
		got, n := Escape(in)
		if got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
		if n != strings.Count(want, "<U+") {
			t.Errorf("Escape(%q) counted %d", in, n)
		}
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[31mb\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out, n := Escape(s)
		if !utf8.ValidString(out) {
			t.Fatalf("Escape(%q) is not UTF-8", s)
		}
		if again, m := Escape(out); again != out || m != 0 {
			t.Fatalf("Escape(%q) = %q is not safe itself", s, out)
		}
		if n == 0 && out != s {
			t.Fatalf("Escape(%q) changed without counting", s)
		}
	})
}
