package chat

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/internal/term"
)

// render shows a text that comes in pieces of n bytes.
func render(s term.Style, text string, n int) string {
	var b bytes.Buffer
	m := &markdown{out: &b, style: s}
	for len(text) > 0 {
		k := min(n, len(text))
		for k < len(text) && !utf8.RuneStart(text[k]) {
			k++
		}
		m.Write(text[:k])
		text = text[k:]
	}
	m.Close()
	return b.String()
}

var colour = term.Style{Color: true, Width: 30}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"# A *big* title\n", "A big title\n"},
		{"**bold** and *it* and `code` and __b__ and _i_\n", "bold and it and code and b\nand i\n"},
		{"2 * 3 * 4 and snake_case_name and a*b\n", "2 * 3 * 4 and snake_case_name\nand a*b\n"},
		{"see [here](http://x) and [http://y](http://y)\n", "see here (http://x) and\nhttp://y\n"},
		{"- one\n  - two words that have to be wrapped\n1. three\n", "• one\n  • two words that have to be\n    wrapped\n1. three\n"},
		{"> said\n", "│ said\n"},
		{"```go\na **b**\n```\nafter\n", "  a **b**\nafter\n"},
		{"~~~\n```\n~~~\nx", "  ```\nx\n"},
		{"| a | b |\n|---|:-:|\n| long `x` | y |\nend\n", "a       b\n------  -\nlong x  y\nend\n"},
		{"---\n", "---\n"},
		{"漢字漢字漢字漢字 漢字漢字漢字漢字 漢字\n", "漢字漢字漢字漢字\n漢字漢字漢字漢字 漢字\n"},
		{"an open **mark\nnext\n", "an open **mark\nnext\n"},
		{"\\*no\\*\n", "*no*\n"},
		{"a\n\nb", "a\n\nb\n"},
	} {
		for _, n := range []int{1, 2, 7, 1000} {
			if got := ansi.Strip(render(colour, c.in, n)); got != c.want {
				t.Errorf("%q in pieces of %d gives\n%q, want\n%q", c.in, n, got, c.want)
			}
		}
	}
	if got := render(colour, "a **b** `c`\n", 3); got != "a \x1b[1mb\x1b[0m \x1b[36mc\x1b[0m\n" {
		t.Errorf("looks: %q", got)
	}
}

// TestMarkdownStreams: a word is shown as soon as nothing can change its look.
func TestMarkdownStreams(t *testing.T) {
	var b bytes.Buffer
	m := &markdown{out: &b, style: colour}
	m.Write("One two **thr")
	if got := b.String(); got != "One two" {
		t.Errorf("after an open mark: %q", got)
	}
	m.Write("ee** four ")
	if got := ansi.Strip(b.String()); got != "One two three four" {
		t.Errorf("after its end: %q", got)
	}
	m.Close()
	if got := ansi.Strip(b.String()); got != "One two three four\n" {
		t.Errorf("at the end: %q", got)
	}
}

// sgr is all that may be sent: colours and weights.
var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// TestTUI01ModelTextCannotDriveTheTerminal: whatever a model says, the
// terminal gets colours of ours and nothing else.
func TestTUI01ModelTextCannotDriveTheTerminal(t *testing.T) {
	hostile := "a \x1b[2K\x1b[1A b\rc \x1b]8;;http://x\a link \x1b]52;c;eA==\a \u009b31m \x07 **\x1b[2J** `\x1b[H`\n```\n\x1b[2J\n```\n| \x1b[2J | x |\n# \x1b[2J\n- \x1b[2J\n\u202egnp.exe\n"
	for _, s := range []term.Style{{}, colour} {
		for _, n := range []int{1, 5, 10000} {
			got := sgr.ReplaceAllString(render(s, hostile, n), "")
			for _, r := range got {
				if r < 0x20 && r != '\n' || r >= 0x7f && r < 0xa0 || r == '\u202e' {
					t.Fatalf("colour %v, pieces of %d: %q came through in %q", s.Color, n, r, got)
				}
			}
			if !strings.Contains(got, "<U+001B>") || !strings.Contains(got, "<U+202E>gnp.exe") {
				t.Errorf("it is not shown: %q", got)
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n- **b** `c`\n```\nd\n```\n| e |\n", 3)
	f.Add("[a](b) *c* __d__ \\* 12. x", 1)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if len(text) > 4096 || !utf8.ValidString(text) {
			return
		}
		n = max(1, min(n, 64))
		pieces, whole := render(colour, text, n), render(colour, text, len(text)+1)
		// However it comes, the same words are shown.
		words := func(s string) string { return strings.Join(strings.Fields(ansi.Strip(s)), " ") }
		if words(pieces) != words(whole) {
			t.Fatalf("%q in pieces of %d shows\n%q, whole\n%q", text, n, words(pieces), words(whole))
		}
		if rest := sgr.ReplaceAllString(pieces, ""); strings.ContainsAny(rest, "\x1b\r\a") {
			t.Fatalf("%q sends %q", text, rest)
		}
		if plain := render(term.Style{}, text, n); strings.ContainsRune(plain, 0x1b) {
			t.Fatalf("plain: %q", plain)
		}
	})
}
