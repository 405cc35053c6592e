package files

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
)

// edited puts a file, reads it, edits it and gives the answer.
func (b *bench) edited(content, old, new string, all bool) (text string, failed bool) {
	b.t.Helper()
	b.put("f.txt", content)
	b.ok("Read", args{"path": "f.txt"})
	res := b.call("Edit", args{"path": "f.txt", "old_string": old, "new_string": new, "replace_all": all})
	if res.IsError {
		b.holds("f.txt", content)
	}
	return res.Text(), res.IsError
}

func TestEditsKeepTheRest(t *testing.T) {
	utf16 := func(s string) string {
		return string(textfile.Encode([]byte(s), textfile.Verdict{Encoding: textfile.UTF16LE, BOM: true}))
	}
	for _, c := range []struct {
		name           string
		file, old, new string
		all            bool
		want           string
	}{
		{"E01 crlf", "alpha\r\nbeta\r\ngamma", "alpha\nbeta", "ALPHA\nBETA", false, "ALPHA\r\nBETA\r\ngamma"},
		{"E01 crlf, all", "alpha\r\nbeta\r\ngamma", "alpha\nbeta", "ALPHA\nBETA", true, "ALPHA\r\nBETA\r\ngamma"},
		{"E02 crlf in old, lf in file", "a\nb\nc\n", "a\r\nb", "x\r\ny", false, "x\ny\nc\n"},
		{"E02 mark and crlf", "\ufeffa\r\nb\r\n", "a\r\nb", "x\r\ny", false, "\ufeffx\r\ny\r\n"},
		{"E05 straight to curly", "print('%s')\n", "'%s'", "‘%s’", false, "print(‘%s’)\n"},
		{"E06 quotes are bytes", "x\n", "x", `re = [\"'(]`, false, `re = [\"'(]` + "\n"},
		{"E08 dollars", `log("done");`, `log("done");`, `log("$& ok $1 $$");`, false, `log("$& ok $1 $$");`},
		{"E08 dollars, all", "a a", "a", "$&", true, "$& $&"},
		{"E16 lone cr", "10%\r20%\rdone\nx\n", "x", "y", false, "10%\r20%\rdone\ny\n"},
		{"E16 mixed ends", "a\r\nb\nc\r\nd\n", "b", "B\nBB", false, "a\r\nB\nBB\nc\r\nd\n"},
		{"mixed ends inside", "a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nX\nY\nc\n", false, "a\r\nX\nY\nc\r\nd\n"},
		{"R03 mark stays", "\ufefffirst\nsecond\n", "first", "FIRST", false, "\ufeffFIRST\nsecond\n"},
		{"R01 utf-16 stays", utf16("<p>Hello</p>\r\n€\r\n"), "Hello", "Grüße 😀", false, utf16("<p>Grüße 😀</p>\r\n€\r\n")},
		{"no final newline", "a\nb", "b", "c", false, "a\nc"},
		{"final newline removed on purpose", "a\nb\n", "b\n", "b", false, "a\nb"},
		{"bytes that are not UTF-8", "naïve ünï çafé\xff\nx\n", "x", "y", false, "naïve ünï çafé\xff\ny\n"},
		{"deletion", "a\nb\nc\n", "b\n", "", false, "a\nc\n"},
		{"overlapping", "aaaa", "aa", "b", true, "bb"},
		{"tabs", "\tif x {\n\t\ty\n\t}\n", "\t\ty\n", "\t\tz\n", false, "\tif x {\n\t\tz\n\t}\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			text, failed := b.edited(c.file, c.old, c.new, c.all)
			if failed {
				t.Fatalf("edit failed: %s", text)
			}
			b.holds("f.txt", c.want)
			wants(t, text, "Edited f.txt", "--- f.txt\n+++ f.txt\n@@ ")
		})
	}
}

func TestEditRefusals(t *testing.T) {
	for _, c := range []struct {
		name           string
		file, old, new string
		words          []string
	}{
		{"E04 quotes", "She said, “Hello.”\n", `"Hello."`, `"Bye."`, []string{"not found", "Line 1", "typographic"}},
		{"E09 blank", "a\tb\nc\td\n", " ", "X", []string{"not found", "unchanged"}},
		{"E11 spaces for tabs", "x\n\t\t\t<Page>\n", "            <Page>", "y", []string{"Only white space differs at line 2", "→→→<Page>"}},
		{"E11 number column", "x\n\t\t\t<Page>\n", "     2→\t\t\t<Page>", "y", []string{"line-number column", "matches at line 2"}},
		{"E17 number column of others", "foo\nbar\n", "    1|foo\n    2|bar", "y", []string{"line-number column", "line 1"}},
		{"E13 inexact", "a\r\nb\r\nc\r\n", "a\nB\nc", "x", []string{"not found", "a␍"[:1]}},
		{"E14 final newline", "a\nreturn foo", "return foo\n", "return bar\n", []string{"ends with a newline", "last line has none"}},
		{"E18 anchors", "func a() {\n keep1\n keep2\n keep3\n}\n", "func a() {\n totally different\n}", "func a() {}", []string{"not found", "·keep1"}},
		{"E19 ambiguous", "x=1\ny=2\nx=1\n", "x=1", "x=3", []string{"2 times", "lines 1 and 3", "replace_all"}},
		{"same", "a\n", "a", "a", []string{"the same"}},
		{"line ends only", "a\r\nb\r\n", "a\nb", "a\r\nb", []string{"only in line ends"}},
		{"case", "Hello\n", "hello", "x", []string{"upper and lower case differ at line 1"}},
		{"lone cr", "a\rb\n", "a\nb", "x", []string{"lone carriage returns"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, failed := newBench(t).edited(c.file, c.old, c.new, false)
			if !failed {
				t.Fatalf("edit succeeded: %s", text)
			}
			wants(t, text, c.words...)
		})
	}
}

func TestE16DiffIsTheRealChange(t *testing.T) {
	text, _ := newBench(t).edited("1\n2\n3\n4\nold\n6\n7\n8\n9\n", "old", "new", false)
	want := "Edited f.txt at line 5.\n\n--- f.txt\n+++ f.txt\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-old\n+new\n 6\n 7\n 8"
	if text != want {
		t.Errorf("answer:\n%s\nwant:\n%s", text, want)
	}
	text, _ = newBench(t).edited(strings.Repeat("a\n", 10)+"x\n"+strings.Repeat("a\n", 20)+"x\n", "x\n", "y\nz\n", true)
	wants(t, text, "in 2 places, at lines 11 and 32", "@@ -8,7 +8,8 @@", "@@ -29,4 +30,5 @@")
}

func TestE07WriteKeepsCurlyQuotes(t *testing.T) {
	b := newBench(t)
	b.ok("Write", args{"path": "new/d.txt", "content": "d’apostrophe"})
	b.holds("new/d.txt", "d\xe2\x80\x99apostrophe")
}

func TestEditNeedsAReadFile(t *testing.T) {
	b := newBench(t)
	b.put("f.txt", "a\n")
	edit := args{"path": "f.txt", "old_string": "a", "new_string": "b"}
	b.fails("Edit", edit, "not read in this session", "Read")
	b.fails("EditFile", args{"path": "f.txt", "oldText": "a", "newText": "b"}, "not read", "ReadFile")
	b.ok("ReadFile", args{"path": "f.txt"})
	b.put("f.txt", "a \n")
	b.fails("Edit", edit, "changed on disk since it was read")
	b.holds("f.txt", "a \n")
	b.ok("Read", args{"path": "f.txt"})
	// Touched, not changed: the content decides.
	if err := os.Chtimes(filepath.Join(b.dir, "f.txt"), time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.ok("Edit", edit)
	b.ok("Edit", args{"path": "f.txt", "old_string": "b", "new_string": "c"}) // its own change is known
	b.holds("f.txt", "c \n")
}

func TestWriteRefusesOnlyWhatChangedSinceRead(t *testing.T) {
	b := newBench(t)
	b.put("f.txt", "a\n")
	wants(t, b.ok("Write", args{"path": "f.txt", "content": "b\n"}), "Replaced f.txt", "-a", "+b")
	b.put("f.txt", "somebody's work\n")
	b.fails("Write", args{"path": "f.txt", "content": "c\n"}, "changed on disk")
	b.holds("f.txt", "somebody's work\n")
	b.ok("Read", args{"path": "f.txt"})
	b.ok("WriteFile", args{"path": "f.txt", "content": ""})
	b.holds("f.txt", "")
	b.fails("Write", args{"path": ".", "content": ""}, "folder")
}

func TestEditKeepsMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes")
	}
	b := newBench(t)
	b.put("run.sh", "echo a\n")
	if err := os.Chmod(filepath.Join(b.dir, "run.sh"), 0o751); err != nil {
		t.Fatal(err)
	}
	b.ok("Read", args{"path": "run.sh"})
	b.ok("Edit", args{"path": "run.sh", "old_string": "a", "new_string": "b"})
	info, err := os.Stat(filepath.Join(b.dir, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o751 {
		t.Errorf("mode is %v, %v", info.Mode(), err)
	}
	left, _ := os.ReadDir(b.dir)
	if len(left) != 1 {
		t.Errorf("%d files are left, want the one", len(left))
	}
}

func TestFB05EditThroughALink(t *testing.T) {
	b := newBench(t)
	outside := filepath.Join(filepath.Dir(b.dir), "canary")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../canary", filepath.Join(b.dir, "l")); err != nil {
		t.Skip(err)
	}
	for _, tool := range []string{"Read", "ReadFile"} {
		if text := b.fails(tool, args{"path": "l"}); strings.Contains(text, "secret") {
			t.Errorf("%s shows %q", tool, text)
		}
	}
	b.fails("Edit", args{"path": "l", "old_string": "secret", "new_string": "x"})
	b.fails("Write", args{"path": "l", "content": "x"})
	if got, _ := os.ReadFile(outside); string(got) != "secret\n" {
		t.Errorf("the file outside holds %q", got)
	}
}

func TestNearestOnHostileInput(t *testing.T) {
	big := []byte(strings.Repeat("the same line over and over\n", 300_000))
	old := []byte(strings.Repeat("the same line over and over\n", 500) + "and another")
	start := time.Now()
	notFound(big, old, tinyelf)
	nearest([]byte(strings.Repeat("a", 1<<22)), []byte(strings.Repeat("ab", 1<<20)))
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func FuzzEdit(f *testing.F) {
	f.Add("a\r\nb\nc\r\n", "a\nb", "x\ny\nz")
	f.Add("a\rb\n", "\n", "\r\n")
	f.Add("\n\n\n", "\n\n", "\r")
	f.Fuzz(func(t *testing.T, text, old, new string) {
		if old == "" {
			return
		}
		at := find(fold([]byte(text)), []byte(old), 100)
		parts, put := replace([]byte(text), at, []byte(new))
		out := bytes.Join(parts, nil)
		last, shift := 0, 0
		for i, s := range at {
			if s.from < last || s.to > len(text) {
				t.Fatalf("span %v is out of order", s)
			}
			if text[last:s.from] != string(out[last+shift:put[i].from]) {
				t.Fatalf("what lies before span %v changed", s)
			}
			last, shift = s.to, put[i].to-s.to
		}
		if text[last:] != string(out[last+shift:]) {
			t.Fatal("what lies after the last span changed")
		}
		whole := diffAt("f", []byte(text), out, at, put, 1)
		if len(at) > 0 {
			if near := diffOf("f", []byte(text), parts, at, put, linesOf([]byte(text), at)[0]); near != whole {
				t.Fatalf("the diff of the surroundings is\n%s\nand of the whole\n%s", near, whole)
			}
		}
		if len(at) == 0 {
			notFound([]byte(text), []byte(old), tinyelf)
		}
	})
}
