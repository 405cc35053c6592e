package term

import (
	"context"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func typed(text string, pos int) *line {
	e := &Editor{Prompt: "> ", History: []string{"first", "second\nline"}}
	return &line{e: e, text: []rune(text), pos: pos, at: len(e.History)}
}

func TestEditorKeys(t *testing.T) {
	for _, c := range []struct {
		text string
		pos  int
		keys []rune
		want string // with | at the cursor
	}{
		{"ab", 2, []rune{'c'}, "abc|"},
		{"ab", 1, []rune{8}, "|b"},
		{"ab", 1, []rune{keyDelete}, "a|"},
		{"ab", 0, []rune{8, keyLeft}, "|ab"},
		{"one two  ", 9, []rune{23}, "one |"},
		{"one two", 4, []rune{11}, "one |"},
		{"a\nbc", 4, []rune{21}, "a\n|"},
		{"a\nbc", 4, []rune{keyUp}, "a|\nbc"},
		{"abc\nd", 3, []rune{keyDown}, "abc\nd|"},
		{"mine", 4, []rune{keyUp}, "second\nline|"},
		{"mine", 4, []rune{keyUp, keyUp, keyUp}, "first|"},
		{"mine", 4, []rune{keyUp, keyUp, keyUp, keyUp, keyDown, keyDown, keyDown}, "mine|"},
		{"one two", 0, []rune{keyWordRight, keyWordRight, keyWordLeft}, "one |two"},
		{"x\\", 2, []rune{'\r', 'y'}, "x\ny|"},
		{"x", 1, []rune{'\n', keyNewline}, "x\n\n|"},
		{"x", 1, []rune{keyNone, 0, 7}, "x|"},
		{"a\nb", 3, []rune{keyHome, keyEnd, 1}, "a\n|b"},
	} {
		l := typed(c.text, c.pos)
		for _, k := range c.keys {
			if done, err := l.press(k); done || err != nil {
				t.Errorf("%q: key %d ends the reading: %v", c.text, k, err)
			}
		}
		if got := string(l.text[:l.pos]) + "|" + string(l.text[l.pos:]); got != c.want {
			t.Errorf("%q at %d with %v gives %q, want %q", c.text, c.pos, c.keys, got, c.want)
		}
	}
	for _, c := range []struct{ keys, want string }{
		{"\x12s", "|second\nline"},
		{"\x12LINE\x7f\x7f\x7f", "second\n|line"},
		{"\x12s\x12", "fir|st"},
		{"\x12s\x12\x12!", "fir|st"},           // no further one: what was found stays
		{"\x12first\x05!", "first!|"},          // End goes on with it
		{"\x12first\x07", "mine|"},             // Ctrl-G: as it was
		{"\x12s\x7f", "mine|"},                 // nothing is looked for
		{"\x12nowhere\x05", "second\nline|"},   // what was found last stays
		{"\x12first\x05\x0e\x0e\x0e", "mine|"}, // down from there
	} {
		l := typed("mine", 4)
		for _, k := range c.keys {
			if done, err := l.press(k); done || err != nil {
				t.Errorf("%q: key %d ends the reading: %v", c.keys, k, err)
			}
		}
		if got := string(l.text[:l.pos]) + "|" + string(l.text[l.pos:]); got != c.want {
			t.Errorf("%q gives %q, want %q", c.keys, got, c.want)
		}
	}
	l := typed("", 0)
	for _, k := range "\x12fir" {
		_, _ = l.press(k)
	}
	if rows, _, _ := l.layout(40); rows[0] != "history: fir > first" {
		t.Errorf("a search looks like %q", rows)
	}
	if done, _ := l.press('\r'); !done || string(l.text) != "first" {
		t.Errorf("Enter does not send what was found, but %q", string(l.text))
	}
	if done, _ := typed("x", 1).press('\r'); !done {
		t.Error("Enter does not send")
	}
}

func TestEditorCompletes(t *testing.T) {
	for _, c := range []struct {
		text    string
		pos     int
		choices []string
		want    string
		hint    int
	}{
		{"say doc", 7, []string{"docs/"}, "say docs/|", 0},
		{"say d rest", 5, []string{"docs/", "doing"}, "say do| rest", 0},
		{"say do", 6, []string{"docs/", "doing"}, "say do|", 2},
		{"say ü", 6, []string{"überé", "überè"}, "say über|", 0},
		{"say x", 5, nil, "say x|", 0},
		{"say x", 5, strings.Split(strings.Repeat("x,", 20)+"xy", ","), "say x|", shownChoices + 1},
		{"a\n ", 3, []string{"docs/"}, "a\n   |", 0}, // an indent
	} {
		l := typed(c.text, len([]rune(c.text[:min(c.pos, len(c.text))])))
		l.e.Complete = func(_ context.Context, text string) (int, []string) {
			return strings.LastIndexByte(text, ' ') + 1, c.choices
		}
		l.complete(t.Context())
		if got := string(l.text[:l.pos]) + "|" + string(l.text[l.pos:]); got != c.want || len(l.hint) != c.hint {
			t.Errorf("%q becomes %q with %d hints, want %q with %d", c.text, got, len(l.hint), c.want, c.hint)
		}
	}
}

// TestEditorLayout: rows fit the width whatever is in them, nothing that was
// written moves the cursor, and the cursor is where its character is.
func TestEditorLayout(t *testing.T) {
	text := "漢字漢字漢字 \x1b[2J\u202e tab\there\nnext " + strings.Repeat("long", 30)
	for pos := range []rune(text) {
		rows, row, col := typed(text, pos).layout(20)
		for _, r := range rows {
			if w := ansi.StringWidth(r); w > 19 && !strings.Contains(r, "<U+") {
				t.Fatalf("a row of %d cells: %q", w, r)
			}
			if strings.ContainsAny(r, "\x1b\u202e\t\n") {
				t.Fatalf("a row holds a control: %q", r)
			}
		}
		if row >= len(rows) || col > 19 {
			t.Fatalf("the cursor of %d is at %d, %d of %d rows", pos, row, col, len(rows))
		}
	}
	rows, row, col := typed("ab\ncd", 4).layout(20)
	if strings.Join(rows, "|") != "> ab|  cd" || row != 1 || col != 3 {
		t.Errorf("rows %q, cursor %d, %d", rows, row, col)
	}
}

func TestPastesAreText(t *testing.T) {
	if got := clean("a\r\nb\rc\x1b[2J\x03\td\xff"); got != "a\nb\nc[2J\td\uFFFD" {
		t.Errorf("clean gives %q", got)
	}
}
