package files

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host"
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
		"cut in two":       {put(put(lf, "NEEDLE", editPiece-3), "NEEDLE", 100), "NEEDLE", "occurs 2 times"},
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

// A large file that changes between the search and the rename stays as it is,
// and so does one that shrinks while it is copied.
func TestLargeEditLosesNoChange(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows replaces no file that is open")
	}
	b := newBench(t)
	text := "NEEDLE\n" + strings.Repeat("some line of text\n", largeEdit/16)
	for name, change := range map[string]func(path string) error{
		"written over": func(p string) error { return os.WriteFile(p, []byte(strings.Replace(text, "some", "SOME", 1)), 0o644) },
		"replaced": func(p string) error {
			if err := os.WriteFile(p+".new", []byte(text+"more"), 0o644); err != nil {
				return err
			}
			return os.Rename(p+".new", p)
		},
		"removed": os.Remove,
		"shorter": func(p string) error { return os.Truncate(p, 1000) },
	} {
		b.put("f", text)
		path := filepath.Join(b.dir, "f")
		r := &room{tree: b.tree, state: b.state, names: tinyelf}
		f, err := r.tree.Open(t.Context(), rights(t), "/ws/f", os.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		if name == "written over" { // the size stays: the time has to tell
			time.Sleep(20 * time.Millisecond)
		}
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		want, _ := os.ReadFile(path)
		a := editArgs{old: []byte("NEEDLE"), new: []byte("thread")}
		res, err := r.applyLarge(t.Context(), host.Call{Rights: rights(t)}, target{"/ws/f", "f"}, a, f, info, found{})
		f.Close()
		if err == nil && res != nil {
			t.Errorf("%s: the edit was done: %.100s", name, res.Text())
		}
		if got, _ := os.ReadFile(path); string(got) != string(want) {
			t.Errorf("%s: the file holds %d bytes, and not the %d of the other change", name, len(got), len(want))
		}
		if left, _ := filepath.Glob(filepath.Join(b.dir, ".elf-*")); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
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
