package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A large file is edited as a small one is: what changes, what is said, and
// what is refused do not depend on the way.
func TestLargeEditsAreLikeSmallOnes(t *testing.T) {
	b := newBench(t)
	line := func(end string) string {
		var s strings.Builder
		for i := 0; s.Len() < largeEdit+largeEdit/4; i++ {
			s.WriteString("some line of text, as long as others are")
			s.WriteString(end)
		}
		return s.String()
	}
	lf, crlf := line("\n"), line("\r\n")
	put := func(text, piece string, at int) string { return text[:at] + piece + text[at:] }
	for name, c := range map[string]struct{ text, old, new string }{
		"middle":           {put(lf, "NEEDLE here", 5<<20), "NEEDLE here", "thread"},
		"start":            {"NEEDLE\n" + lf, "NEEDLE", "thread\nand more"},
		"end":              {lf + "NEEDLE", "NEEDLE", "thread"},
		"end of a line":    {lf + "NEEDLE\n", "NEEDLE\n", ""},
		"between pieces":   {put(lf, "NEEDLE here", editPiece-5), "NEEDLE here", ""},
		"at a piece":       {put(lf, "NEEDLE here", editPiece+11), "NEEDLE here", "x"},
		"lines":            {put(lf, "\nNEEDLE\nTWO\n", 6<<20), "NEEDLE\nTWO\n", "one\ntwo\nthree\n"},
		"CR LF":            {put(crlf, "NEEDLE", 7<<20), "NEEDLE", "one\ntwo"},
		"CR LF, two lines": {put(crlf, "NEEDLE\r\nTWO", 7<<20), "NEEDLE\nTWO", "one\ntwo"},
		"one long line":    {put(strings.ReplaceAll(lf, "\n", " "), "NEEDLE", 4<<20), "NEEDLE", "thread"},
		"mark":             {"\ufeff" + put(lf, "NEEDLE", 2<<20), "NEEDLE", "thread"},
	} {
		b.put("f", c.text)
		b.put("g", c.text)
		b.ok("Read", args{"path": "f", "limit": 1})
		b.ok("Read", args{"path": "g", "limit": 1})
		got := b.ok("Edit", args{"path": "f", "old_string": c.old, "new_string": c.new})
		want := b.ok("Edit", args{"path": "g", "old_string": c.old, "new_string": c.new, "replace_all": true})
		if want = strings.ReplaceAll(strings.ReplaceAll(want, " g\n", " f\n"), "Edited g", "Edited f"); got != want {
			t.Errorf("%s: the answer is\n%.600s\nand not\n%.600s", name, got, want)
		}
		f, _ := os.ReadFile(filepath.Join(b.dir, "f"))
		g, _ := os.ReadFile(filepath.Join(b.dir, "g"))
		if string(f) != string(g) {
			t.Errorf("%s: the files differ, %d and %d bytes", name, len(f), len(g))
		}
		// What was edited may be edited again.
		if c.new == "thread" {
			b.ok("Edit", args{"path": "f", "old_string": "thread", "new_string": c.old})
		}
	}
	for name, c := range map[string]struct{ text, old, want string }{
		"twice":            {put(put(lf, "NEEDLE", 7<<20), "NEEDLE", 2<<20), "NEEDLE", "occurs 2 times"},
		"twice, one piece": {put(lf, "NEEDLE NEEDLE", 2<<20), "NEEDLE", "occurs 2 times"},
		"across a piece":   {put(put(lf, "NEEDLE", 2*editPiece-3), "NEEDLE", 100), "NEEDLE", "occurs 2 times"},
		"none":             {put(lf, "needle", 2<<20), "NEEDLE", "upper and lower case"},
		"line numbers":     {put(lf, "\nNEEDLE", 2<<20), "    12→NEEDLE", "line-number column"},
	} {
		b.put("f", c.text)
		b.ok("Read", args{"path": "f", "limit": 1})
		b.fails("Edit", args{"path": "f", "old_string": c.old, "new_string": "x"}, c.want)
		if f, _ := os.ReadFile(filepath.Join(b.dir, "f")); string(f) != c.text {
			t.Errorf("%s: the file changed", name)
		}
	}
	b.put("f", put(lf, "NEEDLE", 100))
	b.fails("Edit", args{"path": "f", "old_string": "NEEDLE", "new_string": "x"}, "changed on disk since")
}

func TestNeedle(t *testing.T) {
	for _, text := range []string{"", "a", "aaaa", "abcabcabd", strings.Repeat("ab", 5000) + "aab", strings.Repeat("x", 100_000), "line 1: a\nline 2: a\nline 3: b\n"} {
		for _, old := range []string{"a", "aab", "abd", "line 3", "b\n", "nothing", strings.Repeat("x", 200), text} {
			if old == "" {
				continue
			}
			if got, want := newNeedle([]byte(old), []byte(text)).index([]byte(text)), strings.Index(text, old); got != want {
				t.Errorf("%.20q in %.20q: %d, want %d", old, text, got, want)
			}
		}
	}
}
