package term

import (
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
	if done, _ := typed("x", 1).press('\r'); !done {
		t.Error("Enter does not send")
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
