package outline

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/elfhost/elfhost/abi"
)

// TestPaths: how a file is named, and what is said when it is none.
func TestPaths(t *testing.T) {
	d := newDesk(t, Options{})
	d.write("src/a.md", "# A\n")
	d.write("src/logo.md", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	d.write("top.md", "")
	for name, c := range map[string]struct {
		args  map[string]any
		want  string
		error bool
	}{
		"relative":      {map[string]any{"path": "src/a.md"}, "File: src/a.md\n", false},
		"cwd":           {map[string]any{"path": "a.md", "cwd": "src"}, "File: a.md\n", false},
		"absolute":      {map[string]any{"path": filepath.Join(d.dir, "src/a.md")}, "File: src/a.md\n", false},
		"URI":           {map[string]any{"path": "file://" + filepath.ToSlash(filepath.Join(d.dir, "src/a.md"))}, "File: src/a.md\n", false},
		"empty":         {map[string]any{"path": "top.md"}, "Total lines: 0\nNo top-level symbols found in this file.\n", false},
		"missing":       {map[string]any{"path": "none.go"}, "none.go does not exist", true},
		"a folder":      {map[string]any{"path": "src"}, "src is a folder", true},
		"binary":        {map[string]any{"path": "src/logo.md"}, "is not text (PNG image)", true},
		"missing a cwd": {map[string]any{"path": "a.md", "cwd": "none"}, "does not exist", true},
	} {
		res, err := d.call(t.Context(), c.args)
		if err != nil || res.IsError != c.error || !strings.Contains(res.Text(), c.want) {
			t.Errorf("%s: %v %v %q", name, err, res.IsError, res.Text())
		}
	}
	for _, p := range []string{"../outside.md", "/etc/passwd", "a\x00.md"} {
		if res, err := d.call(t.Context(), map[string]any{"path": p}); err == nil && !res.IsError {
			t.Errorf("%q: %q", p, res.Text())
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(d.dir, "link.md")); err == nil {
		if _, err := d.call(t.Context(), map[string]any{"path": "link.md"}); !errors.Is(err, abi.ErrDenied) {
			t.Errorf("a link out of the workspace: %v", err)
		}
	}
}

// TestUTF16: a file's encoding does not change its outline.
func TestUTF16(t *testing.T) {
	d := newDesk(t, Options{})
	text := "# Заголовок\n\n## Два\n"
	b := []byte{0xFF, 0xFE}
	for _, u := range utf16.Encode([]rune(text)) {
		b = append(b, byte(u), byte(u>>8))
	}
	want := strings.Replace(d.outlineOf("a.md", text), "a.md", "b.md", 1)
	if got := d.outlineOf("b.md", string(b)); got != want || !strings.Contains(got, "h1 Заголовок (lines 1-3)") {
		t.Errorf("%s\n%s", got, want)
	}
	if got := d.outlineOf("b.md", "\xEF\xBB\xBF"+text); got != want {
		t.Errorf("with a BOM: %s", got)
	}
}

// TestEndings: CRLF changes nothing but bytes.
func TestEndings(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	for _, f := range []string{"sample.ts", "sample.py", "sample.go", "sample.c", "sample.cpp", "sample.md"} {
		src, err := os.ReadFile(filepath.Join("testdata/samples", f))
		if err != nil {
			t.Fatal(err)
		}
		want := d.outlineOf(f, string(src))
		if got := d.outlineOf(f, strings.ReplaceAll(string(src), "\n", "\r\n")); got != want {
			t.Errorf("%s with CRLF:\n%s\nwant\n%s", f, got, want)
		}
	}
}

// TestHeaders: the headers of C++ that end in .h are read as such.
func TestHeaders(t *testing.T) {
	needNative(t)
	d := newDesk(t, Options{})
	if got := d.outlineOf("a.h", "namespace n {\nclass A { void f(); };\n}\n"); !strings.Contains(got, "Language: C++") || !strings.Contains(got, "    class A (line 2)\n        function f (line 2)\n") {
		t.Error(got)
	}
	if got := d.outlineOf("b.h", "#ifdef __cplusplus\nextern \"C\" {\n#endif\nint f(int using_class);\nstruct template { int namespace; };\n"); !strings.Contains(got, "Language: C\n") {
		t.Error(got)
	}
}

// TestHostile: no text takes the host down, or for long.
func TestHostile(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a quarter of a minute")
	}
	needNative(t)
	d := newDesk(t, Options{Packs: optionalPacks(t), Timeout: 500 * time.Millisecond})
	texts := map[string]string{
		"one line of 10 MB":  strings.Repeat("x = f(a, b) + [1, 2]; ", 10<<20/22),
		"letters":            strings.Repeat("a", 10<<20),
		"open braces":        strings.Repeat("{", 1<<17),
		"open parentheses":   strings.Repeat("f(", 1<<16),
		"nested classes":     strings.Repeat("class A {\n", 10_000),
		"nested namespaces":  strings.Repeat("namespace a { ", 10_000),
		"nested lists":       strings.Repeat("- ", 1<<16),
		"nested ifs":         nestedIfs(1000),
		"headings":           strings.Repeat("# a\n", 20_000),
		"quotes":             strings.Repeat("\"", 1<<16) + strings.Repeat("'", 1<<16),
		"damaged UTF-8":      strings.Repeat("func \xff\xfe() {}\n", 5_000) + "func é() {}\n",
		"a comment, no end":  "/*" + strings.Repeat("*", 1<<18),
		"control characters": "func a\x1b[2J() {}\nclass B\x07 {}\n# \x1b]0;x\x07\n",
	}
	for _, ext := range []string{".py", ".go", ".cpp", ".dart", ".md"} {
		for name, text := range texts {
			start := time.Now()
			got := d.outlineOf("hostile"+ext, text)
			if !strings.HasPrefix(got, "File: hostile"+ext+"\nLanguage: ") && !strings.Contains(got, "not text") {
				t.Errorf("%s, %s: %.200q", ext, name, got)
			}
			if strings.ContainsAny(got, "\x1b\x07") {
				t.Errorf("%s, %s: control characters in %.200q", ext, name, got)
			}
			if took := time.Since(start); took > 25*time.Second {
				t.Errorf("%s, %s: %v", ext, name, took)
			}
		}
	}
	d.answers("after.go", "package a\n\nfunc F() {}\n", "function F (line 3)")
}

func nestedIfs(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", min(i, 500)) + "if x:\n")
	}
	return b.String()
}

// TestTooLarge: what can be said without the text is said.
func TestTooLarge(t *testing.T) {
	d := newDesk(t, Options{})
	got := d.outlineOf("large.go", strings.Repeat("// a line of text\n", maxSource/18+1))
	if !strings.Contains(got, "Total lines: 932068\nNote: AST parse error: the file is over the 16 MB that are parsed.") {
		t.Error(got)
	}
}
