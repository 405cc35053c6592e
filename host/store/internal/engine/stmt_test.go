package engine

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	lib "modernc.org/sqlite/lib"
)

func prepare(t *testing.T, c *Conn, query string) *Stmt {
	t.Helper()
	s, err := c.Prepare(query)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// one runs a statement that has one row.
func one(t *testing.T, s *Stmt, args []any, dest ...any) {
	t.Helper()
	defer s.Reset()
	if err := s.Bind(args...); err != nil {
		t.Fatal(err)
	}
	if more, err := s.Step(); err != nil || !more {
		t.Fatal(more, err)
	}
	if err := s.Scan(dest...); err != nil {
		t.Fatal(err)
	}
}

// What is bound comes back, whatever was bound before and however much it is:
// what is kept for the next run, what does not fit, what is too much to keep.
func TestValuesComeBack(t *testing.T) {
	c, _ := file(t)
	s := prepare(t, c, `SELECT typeof(?1), ?1, length(?1), typeof(?2), hex(?2)`)
	huge := strings.Repeat("ä", mostKept)
	for range 3 {
		for _, text := range []string{"", "a", "a\x00b", strings.Repeat("x", 5000), huge, "'; DROP TABLE t; --"} {
			for blob, want := range map[string]string{"": "", "\x00\xff": "00FF", strings.Repeat("z", 700): strings.Repeat("7A", 700)} {
				var kind, got, blobKind, hex string
				var n int
				one(t, s, []any{text, []byte(blob)}, &kind, &got, &n, &blobKind, &hex)
				if kind != "text" || got != text || blobKind != "blob" || hex != want {
					t.Fatalf("%.20q and %.20q came back as %s %.20q, %s %.20q", text, blob, kind, got, blobKind, hex)
				}
			}
		}
	}
	if s.size > 2*mostKept {
		t.Errorf("%d bytes are kept", s.size)
	}
	var kind, blobKind, rest string
	var n int64
	one(t, s, []any{int64(-1 << 63), []byte(nil)}, &kind, &n, &rest, &blobKind, &rest)
	if kind != "integer" || n != -1<<63 || blobKind != "null" {
		t.Error(kind, n, blobKind)
	}
	one(t, s, []any{true, false}, &kind, &n, &rest, &blobKind, &rest)
	if kind != "integer" || n != 1 || blobKind != "integer" || rest != "30" {
		t.Error(kind, n, blobKind, rest)
	}
}

func TestWhatCannotBeBound(t *testing.T) {
	c, _ := file(t)
	s := prepare(t, c, `SELECT ?`)
	if s.Bind() == nil || s.Bind(int64(1), int64(2)) == nil || s.Bind(1.5) == nil || s.Bind(nil) == nil {
		t.Error("no error")
	}
	var e *Error
	if err := s.Int(2, 1); !errors.As(err, &e) || e.Code != lib.SQLITE_RANGE {
		t.Errorf("a parameter that is not there: %v", err)
	}
	if _, err := c.Prepare(`SELECT`); !errors.As(err, &e) {
		t.Errorf("half a statement: %v", err)
	}
}

// A statement that failed can be used again.
func TestAStatementGoesOnAfterAnError(t *testing.T) {
	c, _ := file(t)
	s := prepare(t, c, `INSERT INTO t VALUES (?, ?)`)
	run := func(n int64) error {
		defer s.Reset()
		if err := s.Bind(n, "x"); err != nil {
			return err
		}
		_, err := s.Step()
		return err
	}
	var e *Error
	if err := errors.Join(run(1), run(2)); err != nil {
		t.Fatal(err)
	}
	if err := run(2); !errors.As(err, &e) || e.Code != lib.SQLITE_CONSTRAINT_PRIMARYKEY {
		t.Errorf("the same key twice: %v", err)
	}
	if err := run(3); err != nil || c.Changed() != 1 {
		t.Error(err, c.Changed())
	}
}

// Nothing is allocated where the collector would have to take it away: what it
// does meanwhile is on the way of a commit.
func TestARunAllocatesNothing(t *testing.T) {
	c, _ := file(t)
	s := prepare(t, c, `INSERT INTO t VALUES (?, ?)`)
	n, body := int64(0), []byte(strings.Repeat("x", 500))
	if got := testing.AllocsPerRun(200, func() {
		n++
		err := errors.Join(s.Int(1, n), s.Blob(2, body))
		if _, stepped := s.Step(); err != nil || stepped != nil {
			t.Fatal(err, stepped)
		}
		if n > 1 && len(s.others) > 0 {
			t.Fatal("what was kept of the run before is not used again")
		}
		s.Reset()
	}); got > 0 {
		t.Errorf("%v allocations a run", got)
	}
}

// What was too much to keep is given back, and so is what a statement kept.
func TestMemoryIsGivenBack(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is asked of Linux only")
	}
	c, _ := file(t)
	much, some := make([]byte, 1<<20), make([]byte, mostKept/2)
	run := func(n int) {
		for range n {
			s, err := c.Prepare(`SELECT length(?) + length(?)`)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range [][]byte{much, some, some} {
				if err := errors.Join(s.Blob(1, v), s.Blob(2, v)); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Step(); err != nil {
					t.Fatal(err)
				}
				s.Reset()
			}
			if err := s.Blob(1, some[:1000]); err != nil { // and is never run
				t.Fatal(err)
			}
			s.Close()
		}
	}
	run(10)
	before := resident(t)
	run(300)
	if grown := resident(t) - before; grown > 32<<20 {
		t.Errorf("300 statements took %d MB", grown>>20)
	}
}

// resident is the memory of this process.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

// A statement that is closed in the middle of its rows holds nothing: its
// connection is the last one, and takes the log with it.
func TestAClosedStatementHoldsNothing(t *testing.T) {
	c, path := file(t)
	if err := c.Exec(`INSERT INTO t VALUES (1, 'a'), (2, 'b')`); err != nil {
		t.Fatal(err)
	}
	s, err := c.Prepare(`SELECT n FROM t`)
	if err != nil {
		t.Fatal(err)
	}
	if more, err := s.Step(); err != nil || !more {
		t.Fatal(more, err)
	}
	s.Close()
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log is still there: %v", err)
	}
}
