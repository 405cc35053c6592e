package search

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
)

func TestG01ExactPathsAreFoundThoughIgnored(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put(".gitignore", "node_modules\n*.log\n")
	w.put("packages/x/node_modules/effect/package.json", "{}")
	w.put("a.log", "")
	w.put("b.txt", "")
	wants(t, w.ok("Glob", args{"pattern": "packages/x/node_modules/effect/package.json"}), "packages/x/node_modules/effect/package.json\n")
	wants(t, w.ok("Glob", args{"pattern": "packages/x/node_modules/effect/*.json"}), "effect/package.json\n")
	text := w.ok("Glob", args{"pattern": "**/*"})
	wants(t, text, "b.txt\n", "1 file and 1 folder are hidden by ignore rules.")
	lacks(t, text, "a.log", "package.json")
	wants(t, w.ok("Glob", args{"pattern": "*.log"}), "No files match.", "1 file is hidden by ignore rules.")
}

func TestG03LinkedIgnoreFile(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("conf/rules", "build/\n")
	w.put("build/out.txt", "needle")
	w.put("src/in.txt", "needle")
	w.link("conf/rules", ".gitignore")
	text := w.ok("Grep", args{"pattern": "needle"})
	wants(t, text, "src/in.txt")
	lacks(t, text, "build")
}

func TestG04Braces(t *testing.T) {
	w := newWorkspace(t, Options{})
	for _, n := range []string{"a.md", "b.sh", "c.txt", "x{literal}y.ts", "x{literal}y.tsx", "d/e.go", "d/f/g.go"} {
		w.put(n, "")
	}
	for pattern, want := range map[string][]string{
		"*.{md,sh}":             {"a.md", "b.sh"},
		"x{literal}*.{ts,tsx}":  {"x{literal}y.ts", "x{literal}y.tsx"},
		"{a,{b,c}}.{md,sh,txt}": {"a.md", "b.sh", "c.txt"},
		"d/{,f/}*.go":           {"d/e.go", "d/f/g.go"},
		"{d/**/,}[a-c]*.[!m]*":  {"b.sh", "c.txt"},
		"**/?.go":               {"d/e.go", "d/f/g.go"},
	} {
		text := w.ok("Glob", args{"pattern": pattern})
		wants(t, text, want...)
		if n := strings.Count(strings.Split(text, "\n\n")[0], "\n"); n != len(want) && n+1 != len(want) {
			t.Errorf("%s: %d lines, want %d:\n%s", pattern, n, len(want), text)
		}
	}
	w.fails("Glob", args{"pattern": "a{b"}, "without its }")
}

func TestK08BraceBomb(t *testing.T) {
	w := newWorkspace(t, Options{})
	start := time.Now()
	w.fails("Glob", args{"pattern": strings.Repeat("{a,b}", 20)}, "more than 1024 alternatives")
	w.fails("Grep", args{"pattern": "x", "include": strings.Repeat("{a,b}", 20)}, "more than 1024 alternatives")
	w.call("Glob", args{"pattern": strings.Repeat("{", 2000) + "a,b" + strings.Repeat("}", 2000)})
	w.fails("Glob", args{"pattern": strings.Repeat("a", 5000)}, "at most 4096")
	w.put("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "")
	w.ok("Glob", args{"pattern": strings.Repeat("*a", 30) + "b"})
	w.ok("Glob", args{"pattern": strings.Repeat("**/a", 60) + "b"})
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestFB01GlobStaysInside(t *testing.T) {
	w := newWorkspace(t, Options{})
	outside := filepath.Join(filepath.Dir(w.dir), "outside")
	os.Mkdir(outside, 0o755)
	os.WriteFile(filepath.Join(outside, "canary"), []byte("needle"), 0o644)
	w.put("in/f", "needle")
	w.link("../outside", "link")
	w.link(".", "in/loop")
	for _, p := range []string{"../**/*", "/etc/*", "{..,.}/*", "link/**", "in/../../outside/*", "**/../outside/*", "/**/passwd", "link/canary"} {
		res := w.call("Glob", args{"pattern": p})
		lacks(t, res.Text(), "canary\n", "/etc/passwd\n", "newest first")
	}
	lacks(t, w.call("Grep", args{"pattern": "needle"}).Text(), "canary", "loop")
	lacks(t, w.call("Grep", args{"pattern": "needle", "path": "link"}).Text(), "canary:", "1:needle")
	lacks(t, w.call("rg", args{"args": []string{"-uuu", "needle", "..", "/etc"}}).Text(), "needle")
	w.fails("Grep", args{"pattern": "x", "path": "/etc"})
}

func TestGlobIsNewestFirst(t *testing.T) {
	w := newWorkspace(t, Options{})
	for i, n := range []string{"b", "c", "a"} {
		w.put(n, "")
		w.age(n, i+1)
	}
	if got, want := w.ok("Glob", args{"pattern": "*"}), "b\nc\na\n\n3 files, newest first."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 700 {
		w.put(fmt.Sprintf("many/%d", i), "")
	}
	wants(t, w.ok("Glob", args{"pattern": "many/*"}), "The newest 500 of 700 files")
}

func TestP01LongLine(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("f", strings.Repeat("x", 70_000)+"mcp"+strings.Repeat("y", 70_000)+"\n")
	text := w.ok("Grep", args{"pattern": "mcp"})
	wants(t, text, "1:…x", "xmcpy", "y… [line of 140003 bytes]", "1 matching line in 1 file.")
	if len(text) > 1000 {
		t.Errorf("answer has %d bytes", len(text))
	}
	w.put("f", strings.Repeat("é", 40_000)+"mcp")
	if text := w.ok("Grep", args{"pattern": "mcp"}); strings.Contains(text, "\uFFFD") {
		t.Errorf("a rune is cut: %s", text)
	}
}

func TestP03P04FB04PatternsAreData(t *testing.T) {
	w := newWorkspace(t, Options{})
	script := filepath.Join(w.dir, "x.sh")
	w.put("x.sh", "#!/bin/sh\ntouch "+w.dir+"/PWN\n")
	os.Chmod(script, 0o755)
	w.put("f", "usage: app --help -foo --files --pre=x\n")
	for pattern, n := range map[string]string{"--help": "1 matching line", "-foo": "1 matching line", "--files": "1 matching line", "--pre=" + script: "No matches.", "-f/etc/passwd": "No matches."} {
		for _, tool := range []string{"Grep", "search"} {
			wants(t, w.ok(tool, args{"pattern": pattern}), n)
		}
	}
	wants(t, w.ok("Grep", args{"pattern": "usage", "include": "--files-from=/x"}), "No file was searched")
	w.fails("rg", args{"args": []string{"--pre", script, "usage"}}, "--pre is not done here", "runs a program")
	w.fails("rg", args{"args": []string{"-f", "/etc/passwd", "usage"}}, "-f is not done here")
	if _, err := os.Stat(filepath.Join(w.dir, "PWN")); err == nil {
		t.Error("a program ran")
	}
}

func TestP06BytesThatAreNotUTF8(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("latin", "caf\xe9 hi\n")
	wants(t, w.ok("Grep", args{"pattern": "hi"}), "latin", "caf\uFFFD hi")
	if err := os.WriteFile(filepath.Join(w.dir, "n\xe9"), []byte("hi\n"), 0o644); err == nil {
		wants(t, w.ok("Grep", args{"pattern": "^hi"}), "n\uFFFD\n1:hi")
	}
}

func TestP07IncludeIsAnchored(t *testing.T) {
	w := newWorkspace(t, Options{})
	for _, n := range []string{"a.go", "a.gold", "x.go.bak", "sub/b.go"} {
		w.put(n, "needle\n")
	}
	text := w.ok("Grep", args{"pattern": "needle", "include": "*.go", "mode": "files"})
	if want := "a.go\nsub/b.go\n\n2 files."; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
}

func TestFB03HostilePatterns(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("f", strings.Repeat("a", 1<<20)+"\n"+strings.Repeat("ab", 1<<19)+"!")
	start := time.Now()
	w.ok("Grep", args{"pattern": "(a+)+$"})
	w.ok("Grep", args{"pattern": "(a|b|ab)*c"})
	w.ok("Grep", args{"pattern": "(a?){300}a{300}z"})
	w.ok("Grep", args{"pattern": "(.*)(.*)(.*)(.*)(.*)[x-z]"})
	w.ok("Grep", args{"pattern": "[ab]{0,200}[ab][ab]{200}z"})
	w.fails("Grep", args{"pattern": "(x{1000}){10}"}, "not a valid RE2 expression")
	w.fails("Grep", args{"pattern": "a(?=b)"}, "no look-around")
	w.fails("Grep", args{"pattern": `(a)\1`}, "no back-references")
	w.fails("Grep", args{"pattern": "func("}, "escape them")
	w.fails("Grep", args{"pattern": "a\nb"}, "multiline")
	w.fails("Grep", args{"pattern": strings.Repeat("a", 100_000)}, "at most 65536")
	if took := time.Since(start); took > 3*time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestR03R01GrepSeesEncodedText(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("bom", "\ufefffirst\nsecond\n")
	for i, v := range []textfile.Verdict{{Encoding: textfile.UTF16LE, BOM: true}, {Encoding: textfile.UTF16BE}, {Encoding: textfile.UTF16LE}} {
		w.put(fmt.Sprintf("wide%d", i), string(textfile.Encode([]byte("first 混合\r\nsecond\r\n"), v)))
	}
	text := w.ok("Grep", args{"pattern": "^first"})
	wants(t, text, "bom\n1:first", "wide0 (UTF-16LE with BOM)\n1:first 混合\n", "wide1 (UTF-16BE)", "wide2 (UTF-16LE)", "4 matching lines in 4 files.")
	w.put("bin", "needle\x00\x01\n")
	w.put("later", "needle\n"+strings.Repeat("x", 100_000)+"\nneedle\x00needle\n")
	text = w.ok("Grep", args{"pattern": "needle"})
	wants(t, text, "later (binary data follows)\n1:needle", "1 file")
	lacks(t, text, "bin\n")
	wants(t, w.ok("rg", args{"args": []string{"-a", "-c", "needle"}}), "bin:1")
}

// -a reads binary files as text, and what its mark says is UTF-16 as UTF-16.
func TestTextFlagKeepsUTF16(t *testing.T) {
	w := newWorkspace(t, Options{})
	wide := func(s string) string {
		out := append(make([]byte, 0, 2*len(s)+2), 0xff, 0xfe)
		for _, c := range []byte(s) {
			out = append(out, c, 0)
		}
		return string(out)
	}
	w.put("wide", wide("one needle\n"))
	w.put("large", wide(strings.Repeat("hay\n", (wholeFile+chunk)/8)+"a needle\n"))
	w.put("bin", "a\x00\x01 needle\n")
	w.put(".gitignore", "wide\n")
	for _, flags := range [][]string{{"-uuu"}, {"-a", "--no-ignore", "--hidden"}} {
		got := w.ok("rg", args{"args": append(flags, "-c", "needle")})
		if got != "bin:1\nlarge:1\nwide:1" {
			t.Errorf("rg %q: %s", flags, got)
		}
	}
	lacks(t, w.ok("rg", args{"args": []string{"-c", "needle"}}), "bin:1")
}

func TestIgnoreRules(t *testing.T) {
	w := newWorkspace(t, Options{GlobalIgnore: "*.swp\n"})
	w.put(".gitignore", "# comment\n*.log\n!keep.log\n/top\nbuild/\ndocs/**/*.tmp\n\\!bang\ntrail\\ \n")
	w.put("sub/.gitignore", "!*.log\n*.x\n")
	w.put("sub/.ignore", "y.txt\n!z.x\n")
	w.put(".git/info/exclude", "excluded\n")
	w.put(".git/config", "needle")
	kept := []string{"keep.log", "sub/b.log", "sub/top", "docs/c.txt", "sub/z.x", ".hidden", "x/build.go"}
	out := []string{"a.log", "top", "build/f", "x/build/f", "docs/p/q/d.tmp", "!bang", "sub/a.x", "sub/y.txt", "excluded", "e.swp", "trail "}
	for _, n := range append(append([]string{}, kept...), out...) {
		w.put(n, "needle\n")
	}
	got := strings.Split(strings.Split(w.ok("Grep", args{"pattern": "needle", "mode": "files"}), "\n\n")[0], "\n")
	if want := ".hidden docs/c.txt keep.log sub/b.log sub/top sub/z.x x/build.go"; strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	// Rules above the folder that is searched count, but not for what is named.
	lacks(t, w.ok("Grep", args{"pattern": "needle", "path": "docs", "mode": "files"}), "d.tmp")
	wants(t, w.ok("Grep", args{"pattern": "needle", "path": "a.log"}), "1:needle")
	wants(t, w.ok("Grep", args{"pattern": "needle", "path": "build", "mode": "files"}), "build/f")
	wants(t, w.ok("Grep", args{"pattern": "needle", "no_ignore": true, "mode": "files"}), "a.log", "build/f")
}

func TestContextAndModes(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("f", "1\n2\nhit\n4\nhit\n6\n7\n8\n9\nhit\n")
	w.put("g", "Hit and hits\nhit")
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"pattern": "hit", "context": 1, "path": "f"}, "f\n2-2\n3:hit\n4-4\n5:hit\n6-6\n--\n9-9\n10:hit\n\n3 matching lines in 1 file."},
		{args{"pattern": "hit", "mode": "count"}, "f:3\ng:2\n\n5 matching lines in 2 files."},
		{args{"pattern": "hit", "word": true, "path": "g"}, "g\n2:hit\n\n1 matching line in 1 file."},
		{args{"pattern": "hit", "ignore_case": true, "word": true, "mode": "count"}, "f:3\ng:2\n\n5 matching lines in 2 files."},
		{args{"pattern": "[0-9]", "invert": true, "path": "f"}, "f\n3:hit\n--\n5:hit\n--\n10:hit\n\n3 matching lines in 1 file."},
		{args{"pattern": "4\\nhit", "multiline": true, "path": "f"}, "f\n4:4\n5:hit\n\n2 matching lines in 1 file."},
		{args{"pattern": "hit", "max_results": 2}, "f\n3:hit\n--\n5:hit\n\n5 matching lines in 2 files. Only the first 2 are shown: narrow the pattern, the path or the files."},
	} {
		got := w.ok("Grep", c.a)
		if strings.ReplaceAll(got, "--\n", "") != strings.ReplaceAll(c.want, "--\n", "") {
			t.Errorf("Grep %v:\n%s\nwant:\n%s", c.a, got, c.want)
		}
	}
	if got := w.ok("search", args{"pattern": "HIT", "ignoreCase": true, "glob": "g", "wordMatch": true, "cwd": "."}); got != "g\n1:Hit and hits\n2:hit\n\n2 matching lines in 1 file." {
		t.Errorf("search gives %q", got)
	}
	wants(t, w.ok("search", args{"pattern": "hit", "listFiles": true, "maxResults": 1}), "f\n", "Only the first 1")
}

// Words that share what is between them are all found, and only they are shown,
// counted and replaced.
func TestWordsSideBySide(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("w", "foo foo\nfoo,foo, xfoo foox\nслово слово Ж\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-ow", "foo"}, "w:foo\nw:foo\nw:foo\nw:foo"},
		{[]string{"--count-matches", "-w", "foo"}, "w:4"},
		{[]string{"-ow", "слово"}, "w:слово\nw:слово"},
		{[]string{"-Iw", "-r", "<$0>", "foo"}, "<foo> <foo>\n<foo>,<foo>, xfoo foox"},
		{[]string{"-Iw", "-r", "${b}$1", "(?P<a>f)(?P<b>oo)"}, "oof oof\noof,oof, xfoo foox"},
		{[]string{"-Iow", "-r", "$1", "f(oo)"}, "oo\noo\noo\noo"},
		{[]string{"-Iw", "--column", "foox"}, "2:15:foo,foo, xfoo foox"},
		{[]string{"-UIwn", "слово"}, "3:слово слово Ж"},
		{[]string{"-Iow", "x?foo"}, "foo\nfoo\nfoo\nfoo\nxfoo"},
	} {
		if got := w.ok("rg", args{"args": append(c.args, ".")}); got != c.want {
			t.Errorf("rg %q:\n%s\nwant:\n%s", c.args, got, c.want)
		}
	}
}

// RE2's classes are narrower than ripgrep's: an answer that may come of that says so.
func TestClassesAreASCII(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("w", "слово\n")
	wants(t, w.ok("rg", args{"args": []string{`\bслово\b`}}), "No matches.", `\b know ASCII alone`)
	wants(t, w.ok("Grep", args{"pattern": `\w+ово`}), "No matches.", `\p{L}`)
	for _, p := range []string{`\bword\b`, "нет"} {
		lacks(t, w.ok("Grep", args{"pattern": p}), "ASCII")
	}
	wants(t, w.ok("Grep", args{"pattern": `\p{L}+ово`}), "w\n1:слово")
	wants(t, w.ok("Grep", args{"pattern": "слово", "word": true}), "w\n1:слово")
}

func TestRGFlags(t *testing.T) {
	w := newWorkspace(t, Options{})
	w.put("a.go", "func main() {\n\tprintln(\"x\")\n}\n")
	w.put("sub/b.go", "func helper() {}\n")
	w.put("c.md", "# func\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-n", "-g", "*.go", "^func (\\w+)"}, "a.go:1:func main() {\nsub/b.go:1:func helper() {}"},
		{[]string{"func", "a.go"}, "func main() {"},
		{[]string{"-o", "-I", "func \\w+"}, "func main\nfunc helper"},
		{[]string{"-or", "$1!", "func (\\w+)", "--no-filename"}, "main!\nhelper!"},
		{[]string{"-c", "func"}, "a.go:1\nc.md:1\nsub/b.go:1"},
		{[]string{"-tgo", "-l", "func"}, "a.go\nsub/b.go"},
		{[]string{"-Tgo", "-l", "func"}, "c.md"},
		{[]string{"--files", "-g", "!*.md"}, "a.go\nsub/b.go"},
		{[]string{"--vimgrep", "main"}, "a.go:1:6:func main() {"},
		{[]string{"-A1", "main", "-m1", "--heading"}, "a.go\nfunc main() {\n\tprintln(\"x\")"},
		{[]string{"-e", "main", "-e", "helper", "-N", "--no-filename"}, "func main() {\nfunc helper() {}"},
		{[]string{"-S", "FUNC"}, "No matches."},
		{[]string{"-S", "func", "-l", "--max-depth=1"}, "a.go\nc.md"},
		{[]string{"--trim", "-INF", "println(\"x\")"}, "println(\"x\")"},
		{[]string{"-q", "func"}, "There are matches."},
		{[]string{"-M", "8", "-I", "func"}, "[Omitted long matching line]\n# func\n[Omitted long matching line]"},
		{[]string{"-M", "6", "-o", "-I", "func.*\\{", "a.go"}, "[Omitted long matching line]"},
		{[]string{"-M", "6", "--max-columns-preview", "func", "a.go"}, "func m [... omitted end of long line]"},
		{[]string{"-M", "6", "--vimgrep", "func", "a.go"}, "a.go:1:1:[Omitted long line with 1 matches]"},
		{[]string{"-M", "6", "-A1", "func", "a.go"}, "[Omitted long matching line]\n[Omitted long context line]"},
		{[]string{"-M", "0", "func", "a.go"}, "func main() {"},
		{[]string{"--sort", "path", "--color", "never", "-l", "--", "func"}, "a.go\nc.md\nsub/b.go"},
		{[]string{"--files-without-match", "main"}, "c.md\nsub/b.go"},
	} {
		if got := w.ok("rg", args{"args": c.args}); got != c.want {
			t.Errorf("rg %q:\n%s\nwant:\n%s", c.args, got, c.want)
		}
	}
	w.fails("rg", args{"args": []string{"--json", "x"}}, "--json is not done here")
	w.fails("rg", args{"args": []string{"--unicode", "x"}}, "--unicode is not done here", "ASCII")
	w.fails("rg", args{"args": []string{"-P", "x"}}, "-P is not done here", "RE2")
	w.fails("rg", args{"args": []string{"--nope", "x"}}, "Neither ripgrep nor this tool has a flag --nope")
	w.fails("rg", args{"args": []string{"--stats", "x"}}, "--stats is not done here", "--count")
	w.fails("rg", args{"args": []string{"-b", "x"}}, "-b is not done here", "--column")
	w.fails("rg", args{"args": []string{"-nV"}}, "-V is not done here")
	w.fails("rg", args{"args": []string{"x", "/etc"}}, "/etc does not exist, or is outside the workspace", "relative to it, or absolute inside it")
	w.fails("Grep", args{"pattern": "x", "path": "/etc"}, "outside the workspace")
	w.fails("rg", args{"args": []string{"x", "../y"}}, "../y is outside the workspace")
	w.fails("rg", args{"args": []string{"-n x a.go"}}, "one element a word")
	w.fails("Glob", args{"pattern": "*", "path": "/etc"}, "outside the workspace")
	w.fails("Glob", args{"pattern": "*", "path": "nosuch"}, "nosuch does not exist")
	w.fails("rg", args{"args": []string{"-A", "x"}}, "not a number")
	w.fails("rg", args{"args": []string{"-n"}}, "no pattern")
	w.fails("rg", args{"args": []string{"-t", "golang", "x"}}, "no file type", "go,")
	wants(t, w.ok("rg", args{"args": []string{"--type-list"}}), "go: *.go")
}

func TestLargeFilesAreSearchedInPieces(t *testing.T) {
	w := newWorkspace(t, Options{})
	var b strings.Builder
	for i := 1; b.Len() < wholeFile+3*chunk; i++ {
		fmt.Fprintf(&b, "line %d of a large file\n", i)
	}
	w.put("large", b.String())
	n := strings.Count(b.String(), "\n")
	wants(t, w.ok("Grep", args{"pattern": "^line .*[05]00000 of", "context": 1}),
		"499999-line 499999 of a large file\n500000:line 500000 of", "1000001-line 1000001")
	wants(t, w.ok("rg", args{"args": []string{"-c", "line"}}), fmt.Sprintf("large:%d", n))
	wants(t, w.ok("rg", args{"args": []string{"-cv", "line 1"}}), "large:")
	wants(t, w.ok("Grep", args{"pattern": fmt.Sprintf("line %d ", n)}), fmt.Sprintf("%d:line %d of", n, n))
}
