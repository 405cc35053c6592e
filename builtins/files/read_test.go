package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
)

func numberedLines(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\ntwo\nthree")
	for _, c := range []struct {
		a    args
		want string
	}{
		{args{"path": "a.txt"}, "     1→one\n     2→two\n     3→three"},
		{args{"path": "/ws/a.txt", "offset": 2, "limit": 1}, "     2→two\n\n(Lines 2-2 of 3. Continue with offset=3.)"},
		{args{"path": filepath.Join(b.dir, "a.txt"), "offset": 3}, "     3→three\n\n(Lines 3-3, the end of the file.)"},
		{args{"path": "file://" + filepath.Join(b.dir, "a.txt"), "limit": 9}, "     1→one\n     2→two\n     3→three"},
	} {
		if got := b.ok("Read", c.a); got != c.want {
			t.Errorf("Read %v:\n%s\nwant:\n%s", c.a, got, c.want)
		}
	}
}

func TestR05PastTheEnd(t *testing.T) {
	b := newBench(t)
	b.put("five.txt", numberedLines(5))
	b.put("empty.txt", "")
	b.fails("Read", args{"path": "five.txt", "offset": 100}, "offset 100 is past the end", "5 lines")
	b.fails("Edit", args{"path": "five.txt", "old_string": "1", "new_string": "x"}, "was not read")
	b.fails("Read", args{"path": "five.txt", "offset": 6}, "offset 6 is past the end", "5 lines")
	b.fails("ReadFile", args{"path": "five.txt", "line": 6}, "line 6 is past the end", "5 lines")
	b.fails("Read", args{"path": "five.txt", "offset": 1_000_000_000}, "past the end")
	wants(t, b.ok("Read", args{"path": "empty.txt"}), "empty.txt is empty")
	wants(t, b.ok("ReadFile", args{"path": "empty.txt"}), "empty.txt is empty")
	b.fails("Read", args{"path": "empty.txt", "offset": 2}, "empty")
}

func TestR06BadRanges(t *testing.T) {
	b := newBench(t)
	b.put("f.txt", "a\n")
	for _, n := range []int{0, -1, -1 << 40} {
		b.fails("Read", args{"path": "f.txt", "offset": n}, "offset", "1 or more")
		b.fails("Read", args{"path": "f.txt", "limit": n}, "limit", "1 or more")
		b.fails("ReadFile", args{"path": "f.txt", "line": n}, "line", "1 or more")
	}
	b.fails("Read", args{"path": "f.txt", "limit": json.Number("1e400")}, "the argument `limit` is 1e400, and no such value is taken")
	b.fails("Read", args{"path": "f.txt", "offset": json.Number("99999999999999999999")}, "the argument `offset` is 99999999999999999999")
}

func TestReadLimits(t *testing.T) {
	b := newBench(t)
	b.put("small.txt", numberedLines(5000)) // under 128 KB: whole
	if text := b.ok("Read", args{"path": "small.txt"}); !strings.Contains(text, "  5000→line 5000") {
		t.Error("a file under 128 KB is not shown whole")
	}
	b.put("long.txt", numberedLines(20_000))
	text := b.ok("Read", args{"path": "long.txt"})
	wants(t, text, "  2000→line 2000", "(Lines 1-2000 of 20000. Continue with offset=2001.)")
	wants(t, b.ok("Read", args{"path": "long.txt", "limit": 3000}), "  3000→line 3000", "of 20000")
	b.put("wide.txt", strings.Repeat(strings.Repeat("x", 1500)+"\n", 400))
	text = b.ok("Read", args{"path": "wide.txt"})
	wants(t, text, "(Lines 1-87 of 400. Continue with offset=88.)")
	if len(text) > 140<<10 {
		t.Errorf("answer of %d bytes is over the clip", len(text))
	}
	b.put("line.txt", "a\n"+strings.Repeat("é", 70_000)+"\nb\n")
	text = b.ok("Read", args{"path": "line.txt"})
	wants(t, text, "line cut: 136.7 KB", "offset=2, limit=1", "     3→b")
	if n := strings.Count(text, "é"); n != 2000 {
		t.Errorf("%d characters of the long line are shown, want 2000", n)
	}
	if n := strings.Count(b.ok("Read", args{"path": "line.txt", "offset": 2, "limit": 1}), "é"); n != 128<<10/2 {
		t.Errorf("%d characters of the line read alone are shown", n)
	}
}

func TestReadLargeFiles(t *testing.T) {
	b := newBench(t)
	b.put("big.txt", strings.Repeat("0123456789abcde\n", 11<<20/16))
	b.fails("Read", args{"path": "big.txt"}, "11.0 MB", "needs offset or limit")
	wants(t, b.ok("Read", args{"path": "big.txt", "offset": 700_000, "limit": 2}), "700000→0123456789abcde", "Continue with offset=700002")
	b.fails("ReadFile", args{"path": "big.txt"}, "file_outline first", "line and limit", "force=true")
	if got := b.ok("ReadFile", args{"path": "big.txt", "line": 700_000, "limit": 1}); got != "0123456789abcde\n" {
		t.Errorf("ReadFile gives %q", got)
	}
	if got := b.ok("ReadFile", args{"path": "big.txt", "force": true}); len(got) != 11<<20 {
		t.Errorf("force gives %d bytes", len(got))
	}
}

func TestReadFileIsRaw(t *testing.T) {
	b := newBench(t)
	b.put("sub/f.txt", "a\r\n\tb\nc")
	for _, a := range []args{
		{"path": "sub/f.txt"}, {"path": "f.txt", "cwd": "sub"}, {"path": "f.txt", "cwd": filepath.Join(b.dir, "sub")},
		{"path": "sub/f.txt", "line": 1, "limit": 10},
	} {
		if got := b.ok("ReadFile", a); got != "a\r\n\tb\nc" {
			t.Errorf("ReadFile %v gives %q", a, got)
		}
	}
	if got := b.ok("ReadFile", args{"path": "sub/f.txt", "line": 2, "limit": 1}); got != "\tb\n" {
		t.Errorf("ReadFile gives %q", got)
	}
}

func TestFS24HugeFileCostsNoMemory(t *testing.T) {
	b := newBench(t)
	name := filepath.Join(b.dir, "huge")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString(numberedLines(100_000))
	if err := f.Truncate(1 << 40); err != nil {
		t.Skip(err)
	}
	f.Close()
	before := heap()
	b.fails("Read", args{"path": "huge"}, "needs offset or limit")
	b.fails("ReadFile", args{"path": "huge"}, "over the 100 KB")
	b.fails("ReadFile", args{"path": "huge", "force": true}, "more than fits")
	wants(t, b.ok("Read", args{"path": "huge", "offset": 50_000, "limit": 1}), "line 50000")
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("memory grew by %d MB", grown>>20)
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

func TestR01R03Encodings(t *testing.T) {
	text := "<p>Hello</p>\r\n混合 Latin 一二三\r\n"
	for _, v := range []textfile.Verdict{
		{Encoding: textfile.UTF16LE, BOM: true}, {Encoding: textfile.UTF16BE, BOM: true},
		{Encoding: textfile.UTF16LE}, {Encoding: textfile.UTF16BE}, {Encoding: textfile.UTF8, BOM: true},
	} {
		b := newBench(t)
		b.put("f.txt", string(textfile.Encode([]byte(text), v)))
		got := b.ok("Read", args{"path": "f.txt"})
		wants(t, got, "     1→<p>Hello</p>\n     2→混合 Latin 一二三\n", textfile.Sniff([]byte(b.get("f.txt")), true).Name)
		b.ok("Edit", args{"path": "f.txt", "old_string": "<p>Hello", "new_string": "<p>Bye"})
		b.holds("f.txt", string(textfile.Encode([]byte(strings.Replace(text, "Hello", "Bye", 1)), v)))
	}
}

func TestReadRefusesWhatIsNotText(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct{ content, word string }{
		"a.pdf":  {"%PDF-1.7\n\x00", "PDF document"},
		"a.out":  {"\x7fELF\x02\x01\x01", "ELF executable"},
		"a.bin":  {"\x00\x01\x02a\x00b\x00\x00", "binary data"},
		"ru.txt": {"\xd4\xe5\xe4\xe5\xf0\xe0\xeb\xfc\xed\xfb\xe9 \xe7\xe0\xea\xee\xed \xee \xf1\xe2\xff\xe7\xe8", "windows-1251"},
		"de.txt": {"Gr\xfc\xdfe aus K\xf6ln", "ISO-8859-1 or windows-1252"},
		"jp.txt": {"\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x83\x65\x83\x4c\x83\x58\x83\x67\x82\xc5\x82\xb7\x81\x42", "Shift_JIS"},
	} {
		b.put(name, c.content)
		b.fails("Read", args{"path": name}, c.word)
		b.fails("ReadFile", args{"path": name}, c.word)
	}
	b.put("dir/x", "")
	b.fails("Read", args{"path": "dir"}, "folder", "ListDir")
}

func TestReadShowsImages(t *testing.T) {
	b := newBench(t)
	png := "\x89PNG\r\n\x1a\n\x00\x00rest"
	b.put("p.txt", png) // the bytes decide, not the name
	res := b.call("Read", args{"path": "p.txt"})
	if res.IsError || len(res.Content) != 2 || res.Content[1].Type != abi.TypeImage || res.Content[1].MIMEType != "image/png" || string(res.Content[1].Data) != png {
		t.Errorf("answer is %+v", res)
	}
}

func TestReadSuggestsNames(t *testing.T) {
	b := newBench(t)
	b.put("src/handler.go", "x")
	b.put("src/handler_test.go", "x")
	b.fails("Read", args{"path": "src/handlr.go"}, "does not exist", "Did you mean src/handler.go")
	b.fails("Read", args{"path": "src/Handler.ts"}, "Did you mean src/handler.go")
	b.fails("Read", args{"path": "lib/x/y.go"}, "folder does not exist")
	b.fails("Read", args{"path": "/etc/passwd"}, "outside the workspace")
	b.fails("Read", args{"path": "../ws-evil/f"}, "outside the workspace")
	b.fails("Read", args{"path": "a\x00b"}, "NUL")
}

func TestFS18LongNames(t *testing.T) {
	b := newBench(t)
	b.fails("Read", args{"path": strings.Repeat("x", 5000)})
	b.fails("Read", args{"path": strings.Repeat("a/", 10_000) + "b"})
	b.fails("Write", args{"path": strings.Repeat("x", 5000), "content": ""})
}

func TestListDir(t *testing.T) {
	b := newBench(t)
	b.put("b.txt", "12345")
	b.put("a/x", "")
	b.put(".env", "")
	if err := os.Symlink("b.txt", filepath.Join(b.dir, "link")); err != nil {
		t.Skip(err)
	}
	got := b.ok("ListDir", args{"path": "."})
	if want := ".:\na/\n.env (0 bytes)\nb.txt (5 bytes)\nlink -> b.txt"; got != want {
		t.Errorf("ListDir gives:\n%s\nwant:\n%s", got, want)
	}
	b.fails("ListDir", args{"path": "b.txt"}, "file", "Read")
	b.fails("ListDir", args{"path": "nope"}, "does not exist")
	os.Mkdir(filepath.Join(b.dir, "none"), 0o755)
	wants(t, b.ok("ListDir", args{"path": "none"}), "none is empty")
}

func TestMemoryRoundTrips(t *testing.T) {
	m := new(Memory)
	m.Saw("/ws/a", Stamp{Size: 1, ModTime: time.Now(), Sum: "x"})
	raw, err := m.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	other := new(Memory)
	if err := other.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	if s, ok := other.Seen("/ws/a"); !ok || s.Sum != "x" {
		t.Errorf("got %+v, %v", s, ok)
	}
}
