package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
)

var testKey = bytes.Repeat([]byte{7}, 32)

func opened(t testing.TB, dir string, opt Options) *Log {
	t.Helper()
	if opt.Key == nil {
		opt.Key = testKey
	}
	l, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func fill(t testing.TB, l *Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(Record{Event: EventVerdict, Session: "s", Tool: "Read", Args: fmt.Sprintf(`{"path":"f%d"}`, i), Outcome: Allowed, By: "safe"}); err != nil {
			t.Fatal(err)
		}
	}
}

func verified(t testing.TB, dir string) Report {
	t.Helper()
	rep, err := Verify(dir, testKey, "")
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func read(t testing.TB, dir string, f Filter) []Record {
	t.Helper()
	var out []Record
	for r, err := range Records(dir, f) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestAppendAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := opened(t, dir, Options{})
	fill(t, l, 3)
	if err := l.Append(Record{Event: EventUse, Tool: "fetch", Cap: "net.http", Outcome: Denied, Receipt: &abi.Receipt{Fuel: 3}}); err != nil {
		t.Fatal(err)
	}
	all := read(t, dir, Filter{})
	if len(all) != 4 || all[3].Seq != 4 || all[0].Prev != "" || all[3].Receipt.Fuel != 3 {
		t.Fatalf("records = %+v", all)
	}
	if got := read(t, dir, Filter{Outcome: Denied}); len(got) != 1 || got[0].Tool != "fetch" {
		t.Errorf("denied = %+v", got)
	}
	if got := read(t, dir, Filter{Since: time.Now().Add(time.Hour)}); len(got) != 0 {
		t.Errorf("since an hour from now = %+v", got)
	}
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 4 || rep.Files != 1 {
		t.Errorf("report = %+v", rep)
	}
	for _, name := range []string{"lock", "head", fileName(1)} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
}

func TestReopenGoesOn(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		l := opened(t, dir, Options{})
		fill(t, l, 2)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 6 {
		t.Errorf("report = %+v", rep)
	}
}

func TestRotationKeepsTheChain(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{MaxSize: 1000})
	fill(t, l, 40)
	rep := verified(t, dir)
	if rep.Bad != nil || rep.Records != 40 || rep.Files < 5 {
		t.Fatalf("report = %+v", rep)
	}
	if got := read(t, dir, Filter{}); len(got) != 40 || got[39].Seq != 40 {
		t.Errorf("%d records", len(got))
	}
	if err := os.Remove(filepath.Join(dir, fileName(2))); err != nil {
		t.Fatal(err)
	}
	if rep := verified(t, dir); rep.Bad == nil || rep.Bad.File != fileName(2) {
		t.Errorf("a file was removed: %+v", rep.Bad)
	}
}

// TestSES05TamperAudit: whatever is done to the log, Verify names the first
// record that is not as it was written.
func TestSES05TamperAudit(t *testing.T) {
	lines := func(b []byte) [][]byte { return bytes.SplitAfter(b, []byte("\n")) }
	for _, c := range []struct {
		name string
		do   func(t *testing.T, dir string, log []byte) []byte
		file string
		line int
	}{
		{"a record is changed", func(_ *testing.T, _ string, b []byte) []byte {
			return bytes.Replace(b, []byte(`f4\"`), []byte(`fX\"`), 1)
		}, fileName(1), 5},
		{"an outcome is turned", func(_ *testing.T, _ string, b []byte) []byte {
			ls := lines(b)
			ls[2] = bytes.Replace(ls[2], []byte(`"allowed"`), []byte(`"denied"`), 1)
			return bytes.Join(ls, nil)
		}, fileName(1), 3},
		{"a record is deleted", func(_ *testing.T, _ string, b []byte) []byte {
			ls := lines(b)
			return bytes.Join(slices.Delete(ls, 4, 5), nil)
		}, fileName(1), 5},
		{"the first record is deleted", func(_ *testing.T, _ string, b []byte) []byte {
			return bytes.Join(lines(b)[1:], nil)
		}, fileName(1), 1},
		{"two records are swapped", func(_ *testing.T, _ string, b []byte) []byte {
			ls := lines(b)
			ls[3], ls[4] = ls[4], ls[3]
			return bytes.Join(ls, nil)
		}, fileName(1), 4},
		{"a record is repeated", func(_ *testing.T, _ string, b []byte) []byte {
			ls := lines(b)
			return bytes.Join(slices.Insert(ls, 3, ls[2]), nil)
		}, fileName(1), 4},
		{"a record is written with another key", func(_ *testing.T, _ string, b []byte) []byte {
			ls := lines(b)
			i := bytes.LastIndex(ls[2], []byte(hashKey))
			body := append(bytes.Clone(ls[2][:i]), '}')
			sum := newSeal([]byte("other")).sum(body)
			ls[2] = []byte(string(ls[2][:i]) + hashKey + sum + "\"}\n")
			return bytes.Join(ls, nil)
		}, fileName(1), 3},
		{"the last records are cut off", func(_ *testing.T, _ string, b []byte) []byte {
			return bytes.Join(lines(b)[:7], nil)
		}, "head", 0},
		{"the last line is cut in the middle", func(_ *testing.T, _ string, b []byte) []byte {
			return b[:len(b)-20]
		}, fileName(1), 10},
		{"everything is emptied", func(*testing.T, string, []byte) []byte { return nil }, "head", 0},
		{"the head goes with the end", func(t *testing.T, dir string, b []byte) []byte {
			if err := os.Remove(filepath.Join(dir, "head")); err != nil {
				t.Fatal(err)
			}
			return bytes.Join(lines(b)[:7], nil)
		}, "head", 0},
		{"the head is turned back by hand", func(t *testing.T, dir string, b []byte) []byte {
			cut := bytes.Join(lines(b)[:7], nil)
			forged := fmt.Sprintf("v1 1 %d 7 %s %s\n", len(cut), strings.Repeat("a", 64), strings.Repeat("b", 64))
			if err := os.WriteFile(filepath.Join(dir, "head"), []byte(forged), 0o600); err != nil {
				t.Fatal(err)
			}
			return cut
		}, "head", 0},
		{"something is added", func(_ *testing.T, _ string, b []byte) []byte {
			return append(b, []byte("{\"seq\":11}\n")...)
		}, fileName(1), 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			l := opened(t, dir, Options{})
			fill(t, l, 10)
			path := filepath.Join(dir, fileName(1))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.do(t, dir, b), 0o600); err != nil {
				t.Fatal(err)
			}
			bad := verified(t, dir).Bad
			if bad == nil {
				t.Fatal("not noticed")
			}
			if bad.File != c.file || bad.Line != c.line {
				t.Errorf("found %v, want %s:%d", bad, c.file, c.line)
			}
		})
	}
}

// TestOldCopy: log and head put back together are an intact, older log; a
// noted head tells.
func TestOldCopy(t *testing.T) {
	dir, old := t.TempDir(), t.TempDir()
	l := opened(t, dir, Options{})
	fill(t, l, 5)
	if err := os.CopyFS(filepath.Join(old, "x"), os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 5)
	noted := verified(t, dir).Head
	fill(t, l, 1)
	if rep, err := Verify(dir, testKey, noted); err != nil || rep.Bad != nil {
		t.Errorf("the log that went on: %+v, %v", rep, err)
	}
	if rep, err := Verify(filepath.Join(old, "x"), testKey, noted); err != nil || rep.Bad == nil {
		t.Errorf("the old copy passes: %+v, %v", rep, err)
	}
}

func TestAppendRefusesACutLog(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	fill(t, l, 5)
	if err := os.Truncate(filepath.Join(dir, fileName(1)), 100); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Record{Event: EventNote}); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("err = %v", err)
	}
	if _, err := Open(dir, Options{Key: testKey}); err == nil {
		t.Error("a cut log is opened")
	}
}

// TestTornEnd: what a process that died left at the end does not stop the
// next one, and is not lost where it was whole.
func TestTornEnd(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	fill(t, l, 3)
	before, err := os.ReadFile(filepath.Join(dir, "head"))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1) // its head is lost below
	if err := os.WriteFile(filepath.Join(dir, "head"), before, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileName(1)), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"seq":5,"time":"20`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 4 || rep.Behind != 1 {
		t.Errorf("report = %+v", rep)
	}
	fill(t, opened(t, dir, Options{}), 2)
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 6 || rep.Behind != 0 {
		t.Errorf("report = %+v, %v", rep, rep.Bad)
	}
}

func TestManyWriters(t *testing.T) {
	if dir := os.Getenv("AUDIT_TEST_DIR"); dir != "" {
		fill(t, opened(t, dir, Options{MaxSize: 4000}), 50)
		return
	}
	dir := t.TempDir()
	var procs []*exec.Cmd
	for range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestManyWriters$")
		cmd.Env = append(os.Environ(), "AUDIT_TEST_DIR="+dir)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		procs = append(procs, cmd)
	}
	l := opened(t, dir, Options{MaxSize: 4000})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if err := l.Append(Record{Event: EventNote}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, p := range procs {
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 250 {
		t.Errorf("report = %+v, %v", rep, rep.Bad)
	}
}

func TestKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.key")
	a, err := Key(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Key(path)
	if err != nil || !bytes.Equal(a, b) || len(a) != 32 {
		t.Errorf("%x, %x, %v", a, b, err)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(path); err == nil {
		t.Error("a short key is taken")
	}
}

func TestLinkIsRefused(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "x")
	if err := os.Symlink(other, filepath.Join(dir, "head")); err != nil {
		t.Skip("no links here")
	}
	if _, err := Open(dir, Options{Key: testKey}); err == nil {
		t.Error("a head that is a link is opened")
	}
}

func FuzzVerify(f *testing.F) {
	dir := f.TempDir()
	l := opened(f, dir, Options{})
	fill(f, l, 3)
	log, err := os.ReadFile(filepath.Join(dir, fileName(1)))
	if err != nil {
		f.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(dir, "head"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(log, head)
	f.Add([]byte("{}\n"), []byte("v1 1 2 3 a b\n"))
	f.Fuzz(func(t *testing.T, l, h []byte) {
		dir := t.TempDir()
		if os.WriteFile(filepath.Join(dir, fileName(1)), l, 0o600) != nil || os.WriteFile(filepath.Join(dir, "head"), h, 0o600) != nil {
			t.Skip()
		}
		rep, err := Verify(dir, testKey, "")
		if err != nil {
			t.Fatal(err)
		}
		if int(rep.Records) > bytes.Count(l, []byte("\n")) {
			t.Fatalf("%d records in %q", rep.Records, l)
		}
		if opened, err := Open(dir, Options{Key: testKey}); err == nil {
			_ = opened.Close()
		}
		for range Records(dir, Filter{}) {
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	l := opened(b, b.TempDir(), Options{})
	r := Record{Event: EventVerdict, Session: "s", Call: "c", Tool: "Read", Source: "builtin", Args: `{"path":"README.md","limit":3}`, Outcome: Allowed, By: "safe"}
	for b.Loop() {
		if err := l.Append(r); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLongRecordsStayLines(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	files := slices.Repeat([]string{strings.Repeat("ab ", 300)}, 3000)
	if err := l.Append(Record{Event: EventReceipt, Args: strings.Repeat("x\n", 1<<20), Receipt: &abi.Receipt{Files: files}}); err != nil {
		t.Fatal(err)
	}
	if rep := verified(t, dir); rep.Bad != nil || rep.Records != 1 {
		t.Errorf("report = %+v", rep)
	}
	if r := read(t, dir, Filter{})[0]; len(r.Args) > maxArgs+10 || r.Receipt != nil || !json.Valid([]byte(`"`+strings.ReplaceAll(r.Reason, `"`, "")+`"`)) {
		t.Errorf("args of %d bytes, reason %q", len(r.Args), r.Reason)
	}
}

func TestSoon(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	soon := func(call string) {
		t.Helper()
		if err := l.Soon(Record{Event: EventReceipt, Call: call}); err != nil {
			t.Fatal(err)
		}
	}
	soon("a")
	soon("b")
	fill(t, l, 1)
	all := read(t, dir, Filter{})
	if len(all) != 3 || all[0].Call != "a" || all[1].Call != "b" || all[2].Event != EventVerdict {
		t.Fatalf("not before the next record, in order: %+v", all)
	}
	soon("c")
	for end := time.Now().Add(time.Minute); len(read(t, dir, Filter{})) < 4; time.Sleep(delay) {
		if time.Now().After(end) {
			t.Fatal("not written by itself")
		}
	}
	for range maxLater + 1 {
		soon("many")
	}
	soon("last")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(read(t, dir, Filter{})); n != 4+maxLater+2 {
		t.Errorf("%d records", n)
	}
	if rep := verified(t, dir); rep.Bad != nil {
		t.Errorf("report = %+v", rep)
	}
	if err := l.Soon(Record{}); err == nil {
		t.Error("a closed log takes records")
	}
}

// What cannot be written is told by the next record, and is not lost.
func TestSoonFails(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Options{})
	fill(t, l, 1)
	whole, err := os.ReadFile(filepath.Join(dir, fileName(1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, fileName(1)), 10); err != nil {
		t.Fatal(err)
	}
	if err := l.Soon(Record{Event: EventReceipt, Call: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(Record{Event: EventVerdict}); err == nil {
		t.Fatal("appended to a log that was cut")
	}
	if err := os.WriteFile(filepath.Join(dir, fileName(1)), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, l, 1)
	if got := read(t, dir, Filter{Call: "kept"}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}
