// Over 500 lines: every behaviour of the store is held against one fixture of sessions and calls.

package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func openTest(t testing.TB) *Store {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "a store?#%.db"))
}

func openAt(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func create(t testing.TB, s *Store, m Session) *Writer {
	t.Helper()
	if m.ID == "" {
		m.ID = NewID()
	}
	w, err := s.Create(context.Background(), m)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func record(seq int64) Record {
	return Record{Seq: seq, Time: time.UnixMicro(1e15 + seq).UTC(), Kind: "message", Body: json.RawMessage(fmt.Sprintf(`{"n":%d}`, seq))}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wants(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func all(t testing.TB, s *Store, id string) []Record {
	t.Helper()
	var out []Record
	for r, err := range s.Records(context.Background(), id, 0) {
		must(t, err)
		r.Body = bytes.Clone(r.Body)
		out = append(out, r)
	}
	return out
}

func TestRecordsComeBackInOrder(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	a, b := create(t, s, Session{Origin: "o", Title: "first"}), create(t, s, Session{Origin: "o"})
	for i := int64(1); i <= 20; i++ {
		must(t, a.Append(ctx, record(i), false))
		must(t, b.Append(ctx, record(i), false))
	}
	got := all(t, s, a.ID())
	if len(got) != 20 {
		t.Fatalf("%d records", len(got))
	}
	for i, r := range got {
		want := record(int64(i + 1))
		if r.Seq != want.Seq || !r.Time.Equal(want.Time) || r.Kind != want.Kind || string(r.Body) != string(want.Body) {
			t.Errorf("record %d is %+v", i, r)
		}
	}
	wants(t, a.Append(ctx, record(20), false), ErrOrder)
	wants(t, a.Append(ctx, record(22), false), ErrOrder)
	wants(t, a.Append(ctx, record(0), false), ErrOrder)
	wants(t, a.Append(ctx, record(1<<32), false), ErrOrder)
	m, err := s.Session(ctx, a.ID())
	if err != nil || m.Records != 20 || m.Title != "first" || !m.Busy || !m.Updated.Equal(record(20).Time) {
		t.Errorf("%+v, %v", m, err)
	}
}

// SES-01: identifiers are checked at every door.
func TestSES01IdentifiersAreChecked(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	create(t, s, Session{ID: "etc"})
	for _, id := range []string{"../../etc/passwd", "a/b", "", strings.Repeat("a", 300), "a\x00b", ".", "..", "-a", "ä", "a b", "a'b", "%", "a\n"} {
		_, err := s.Create(ctx, Session{ID: id})
		wants(t, err, ErrBadID)
		_, err = s.Claim(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Seize(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Session(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Calls(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Notes(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Drafted(ctx, id)
		wants(t, err, ErrBadID)
		_, err = s.Fork(ctx, id, Session{ID: "x"})
		wants(t, err, ErrBadID)
		wants(t, s.AddNote(ctx, id, Note{Body: json.RawMessage(`{}`)}), ErrBadID)
		_, err = s.Delete(ctx, id)
		wants(t, err, ErrBadID)
		wants(t, s.Sees(ctx, "etc", id), ErrBadID)
		wants(t, s.Sees(ctx, id, "etc"), ErrBadID)
		for _, err := range s.Records(ctx, id, 0) {
			wants(t, err, ErrBadID)
		}
	}
	must(t, CheckID(NewID()))
}

func TestOneWriterAndItsFence(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path) // as two processes
	w := create(t, s, Session{ID: "x"})
	must(t, w.Append(ctx, record(1), false))
	_, err := s.Create(ctx, Session{ID: "x"})
	wants(t, err, ErrExists)
	_, err = s.Claim(ctx, "x")
	wants(t, err, ErrBusy)
	_, err = other.Claim(ctx, "x")
	wants(t, err, ErrBusy)
	_, err = other.Delete(ctx, "x")
	wants(t, err, ErrBusy)

	taken, err := other.Seize(ctx, "x")
	must(t, err)
	wants(t, w.Append(ctx, record(2), false), ErrFenced)
	wants(t, w.Draft(ctx, Piece{"text", "late"}), ErrFenced)
	must(t, taken.Append(ctx, record(2), false))
	must(t, w.Close(ctx)) // does not give back what is no longer its own
	_, err = s.Claim(ctx, "x")
	wants(t, err, ErrBusy)
	must(t, taken.Close(ctx))
	again, err := s.Claim(ctx, "x")
	must(t, err)
	if again.Fence() != 3 {
		t.Errorf("fence %d", again.Fence())
	}
	must(t, again.Append(ctx, record(3), false))
	must(t, again.Close(ctx))
	_, err = s.Delete(ctx, "x")
	must(t, err)
	wants(t, again.Append(ctx, record(4), false), ErrNotFound)
	_, err = s.Session(ctx, "x")
	wants(t, err, ErrNotFound)
}

func TestAWriterThatDiedIsNotBusy(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	dead, s := openAt(t, path), openAt(t, path)
	create(t, dead, Session{ID: "x"})
	_, err := s.Claim(ctx, "x")
	wants(t, err, ErrBusy)
	must(t, dead.owner.file.Close()) // what the system does when it dies
	dead.owner.file = nil
	w, err := s.Claim(ctx, "x")
	must(t, err)
	must(t, w.Close(ctx))
	if left, _ := os.ReadDir(path + ".owners"); len(left) != 1 {
		t.Errorf("%d signs of life are left, want that of the living one", len(left))
	}
}

func TestStatesOfACall(t *testing.T) {
	ctx := context.Background()
	ends := []State{Done, Failed, Unknown}
	legal := map[[2]State]bool{{Pending, Running}: true}
	for _, e := range ends {
		legal[[2]State{Pending, e}], legal[[2]State{Running, e}], legal[[2]State{e, e}] = true, true, true
	}
	for _, from := range []State{Pending, Running, Done, Failed, Unknown} {
		for _, to := range []State{Running, Done, Failed, Unknown} {
			t.Run(string(from)+"-"+string(to), func(t *testing.T) {
				s := openTest(t)
				w := create(t, s, Session{})
				must(t, w.Append(ctx, record(1), false, Move{Call: "c", Tool: "Bash", To: Pending}))
				seq := int64(2)
				if from != Pending {
					must(t, w.Append(ctx, record(2), false, Move{Call: "c", To: from}))
					seq++
				}
				err := w.Append(ctx, record(seq), false, Move{Call: "c", To: to})
				calls, cerr := s.Calls(ctx, w.ID())
				must(t, cerr)
				if legal[[2]State{from, to}] {
					must(t, err)
					if calls[0].State != to || calls[0].Tool != "Bash" || calls[0].Fence != 1 {
						t.Errorf("%+v", calls[0])
					}
					return
				}
				wants(t, err, ErrState)
				if calls[0].State != from || len(all(t, s, w.ID())) != int(seq-1) {
					t.Errorf("a refused move left something behind: %+v", calls)
				}
			})
		}
	}
	s := openTest(t)
	w := create(t, s, Session{})
	wants(t, w.Append(ctx, record(1), false, Move{Call: "never", To: Done}), ErrState)
}

// A name that a model uses again is a new call.
func TestNamesOfCallsComeAgain(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{})
	for i := int64(0); i < 3; i++ {
		must(t, w.Append(ctx, record(3*i+1), false, Move{Call: "call_0", Tool: "Read", To: Pending}))
		must(t, w.Append(ctx, record(3*i+2), false, Move{Call: "call_0", To: Running}))
		must(t, w.Append(ctx, record(3*i+3), false, Move{Call: "call_0", To: Done}))
	}
	calls, err := s.Calls(ctx, w.ID(), Done, Failed)
	if must(t, err); len(calls) != 3 || calls[2].Seq != 7 {
		t.Errorf("%+v", calls)
	}
}

func TestClaimSettlesWhatWasRunning(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path)
	w := create(t, s, Session{ID: "x"})
	must(t, w.Append(ctx, record(1), false, Move{Call: "w", Tool: "Bash", To: Pending}, Move{Call: "r", Tool: "Read", To: Pending}, Move{Call: "p", Tool: "Bash", To: Pending}))
	must(t, w.Append(ctx, record(2), false, Move{Call: "w", To: Running}))
	must(t, w.Append(ctx, record(3), false, Move{Call: "r", To: Running, Repeatable: true}))
	n, err := other.Seize(ctx, "x")
	must(t, err)
	wants(t, w.Append(ctx, record(4), false, Move{Call: "w", To: Done}), ErrFenced)
	calls, err := s.Calls(ctx, "x")
	must(t, err)
	got := map[string]State{}
	for _, c := range calls {
		got[c.ID] = c.State
	}
	if got["w"] != Unknown || got["r"] != Failed || got["p"] != Pending {
		t.Errorf("%v", got)
	}
	must(t, n.Append(ctx, record(4), false, Move{Call: "w", To: Unknown}, Move{Call: "p", To: Failed}))
	wants(t, n.Append(ctx, record(5), false, Move{Call: "w", To: Done}), ErrState)
}

func TestDrafts(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "x"})
	drafted := func(want string) {
		t.Helper()
		got, err := s.Drafted(ctx, "x")
		if must(t, err); fmt.Sprint(got) != want {
			t.Errorf("drafted %v, want %v", got, want)
		}
	}
	drafted("[]")
	must(t, w.Draft(ctx, Piece{"thinking", "hm"}))
	must(t, w.Draft(ctx, Piece{"text", "Hello "}))
	must(t, w.Draft(ctx, Piece{"text", "wörld"}))
	drafted("[{thinking hm} {text Hello wörld}]")
	must(t, w.Append(ctx, record(1), false))
	drafted("[{thinking hm} {text Hello wörld}]")
	must(t, w.Append(ctx, record(2), true))
	drafted("[]")
	must(t, w.Draft(ctx, Piece{"text", "void"}))
	must(t, w.Draft(ctx, Piece{}))
	drafted("[]")
	// Another writer goes on behind the pieces of the one before.
	must(t, w.Draft(ctx, Piece{"text", "a"}))
	must(t, w.Close(ctx))
	w, err := s.Claim(ctx, "x")
	must(t, err)
	must(t, w.Draft(ctx, Piece{"text", "b"}))
	drafted("[{text ab}]")
}

// A file of the first version is read, and what it holds stays.
func TestAnOlderFileIsMigrated(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	old, err := sql.Open("sqlite", source(path, ""))
	must(t, err)
	for _, query := range []string{
		migrations[0], `PRAGMA user_version = 1`,
		`INSERT INTO session VALUES (7, 'x', 'o', '', 'title', '', 'm', 1, 1, '')`,
		fmt.Sprintf(`INSERT INTO record VALUES (%d, 5, 'message', CAST('{"n":1}' AS BLOB))`, key(7, 1)),
		`INSERT INTO draft VALUES (7, 'half a word')`,
	} {
		_, err := old.Exec(query)
		must(t, err)
	}
	must(t, old.Close())
	s := openAt(t, path)
	pieces, err := s.Drafted(ctx, "x")
	if must(t, err); fmt.Sprint(pieces) != "[{text half a word}]" {
		t.Errorf("drafted %v", pieces)
	}
	w, err := s.Claim(ctx, "x")
	must(t, err)
	must(t, w.Append(ctx, record(2), true))
	if got := all(t, s, "x"); len(got) != 2 || string(got[0].Body) != `{"n":1}` {
		t.Errorf("%v", got)
	}
}

// The log is brought home under load: it does not grow without end while
// somebody always writes, and the writers wait for that no oftener than the log
// has filled.
func TestTheLogBeginsAnew(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	s.log.mu.Lock()
	s.log.bounds = bounds{every: 1 << 20, most: 4 << 20}
	s.log.mu.Unlock()
	pauses := func() int {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		return s.log.pauses
	}
	big := json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)
	var wg sync.WaitGroup
	for range 4 {
		w := create(t, s, Session{})
		wg.Go(func() {
			// A busy machine brings the log home slowly, and it grows meanwhile.
			for k := int64(0); k < 1000 || pauses() < 12 && k < 15000; k++ {
				time.Sleep(200 * time.Microsecond)
				r := record(k + 1)
				r.Body = big
				if err := w.Append(ctx, r, false); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	_, err := s.log.close()
	must(t, err)
	log, err := os.Stat(s.path + "-wal")
	must(t, err)
	home, err := os.Stat(s.path)
	must(t, err)
	// A record costs the file three pages, and the log one or two more: one that
	// never began anew would be longer than the file.
	if log.Size() > home.Size() {
		t.Errorf("the log is %d MB long, the file %d", log.Size()>>20, home.Size()>>20)
	}
	if most := int(2*home.Size()/s.log.bounds.most) + 1; s.log.pauses < 12 || s.log.pauses > most {
		t.Errorf("writing %d MB made the writers wait %d times, want 12 to %d", home.Size()>>20, s.log.pauses, most)
	}
}

func TestFacts(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "a"})
	create(t, s, Session{ID: "b"})
	for _, body := range []string{`1`, `2`} {
		must(t, s.SetFact(ctx, "a", "plan", json.RawMessage(body)))
	}
	must(t, s.SetFact(ctx, "a", "file:/ws/x", json.RawMessage(`{}`)))
	wants(t, s.SetFact(ctx, "nothing", "plan", json.RawMessage(`1`)), ErrNotFound)
	wants(t, s.SetFact(ctx, "../a", "plan", json.RawMessage(`1`)), ErrBadID)
	must(t, w.Close(ctx))
	got, err := s.Facts(ctx, "a")
	if must(t, err); len(got) != 2 || string(got["plan"]) != "2" {
		t.Errorf("%s", got)
	}
	if got, err := s.Facts(ctx, "b"); err != nil || len(got) != 0 {
		t.Errorf("b has facts of a: %s %v", got, err)
	}
	_, err = s.Fork(ctx, "a", Session{ID: "c"})
	must(t, err)
	if got, err := s.Facts(ctx, "c"); err != nil || len(got) != 2 {
		t.Errorf("the copy has %s %v", got, err)
	}
}

func TestForkAndDelete(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "a", Origin: "o"})
	must(t, w.Append(ctx, record(1), false, Move{Call: "c", Tool: "Bash", To: Pending}))
	must(t, w.Append(ctx, record(2), false, Move{Call: "c", To: Running}))
	must(t, w.Draft(ctx, Piece{"text", "being said"}))
	must(t, s.AddNote(ctx, "a", Note{Kind: "approval", Call: "c", Body: json.RawMessage(`{"allowed":true}`)}))
	f, err := s.Fork(ctx, "a", Session{ID: "b", Origin: "o"})
	must(t, err)
	if got, err := s.Drafted(ctx, "b"); err != nil || len(got) != 1 {
		t.Errorf("the copy lacks the draft: %v %v", got, err)
	}
	if got, err := s.Notes(ctx, "b"); err != nil || len(got) != 1 || got[0].Call != "c" || string(got[0].Body) != `{"allowed":true}` {
		t.Errorf("the copy lacks what was approved: %v %v", got, err)
	}
	if got := all(t, s, "b"); len(got) != 2 || string(got[1].Body) != `{"n":2}` {
		t.Errorf("%v", got)
	}
	must(t, f.Append(ctx, record(3), false, Move{Call: "c", To: Unknown}))
	must(t, w.Append(ctx, record(3), false, Move{Call: "c", To: Done}))
	_, err = s.Fork(ctx, "nothing", Session{ID: "c"})
	wants(t, err, ErrNotFound)
	_, err = s.Session(ctx, "c")
	wants(t, err, ErrNotFound)

	child := create(t, s, Session{ID: "child", Parent: "a"})
	must(t, w.Close(ctx))
	_, err = s.Delete(ctx, "a") // the child is at work
	wants(t, err, ErrBusy)
	must(t, child.Close(ctx))
	must(t, s.SetFact(ctx, "child", "plan", json.RawMessage(`{}`)))
	must(t, s.AddNote(ctx, "child", Note{Kind: "approval", Body: json.RawMessage(`{}`)}))
	gone, err := s.Delete(ctx, "a")
	if must(t, err); fmt.Sprint(gone) != "[a child]" {
		t.Errorf("removed %v", gone)
	}
	for _, table := range []string{"record", "call", "note", "piece", "fact", "session"} {
		var n int
		must(t, s.read.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&n))
		if want := map[string]int{"record": 3, "call": 1, "note": 1, "piece": 1, "session": 1}[table]; n != want {
			t.Errorf("%d rows in %s, want %d: those of b", n, table, want)
		}
	}
}

func TestWhatASessionSees(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	for _, m := range []Session{
		{ID: "main", Origin: "p1"}, {ID: "older", Origin: "p1"}, {ID: "alien", Origin: "p2"},
		{ID: "child", Origin: "p1", Parent: "main"}, {ID: "grand", Origin: "p1", Parent: "child"},
		{ID: "cousin", Origin: "p1", Parent: "older"},
	} {
		create(t, s, m)
	}
	for viewer, want := range map[string]string{
		"main": "child cousin grand main older", "child": "child grand", "grand": "grand", "cousin": "cousin",
		"alien": "alien", "nobody": "",
	} {
		got, err := s.List(ctx, Query{Viewer: viewer})
		must(t, err)
		seen := map[string]bool{}
		for _, m := range got {
			seen[m.ID] = true
		}
		for _, id := range []string{"main", "older", "alien", "child", "grand", "cousin"} {
			in := strings.Contains(" "+want+" ", " "+id+" ")
			if seen[id] != in {
				t.Errorf("%s sees %s in the list: %v", viewer, id, seen[id])
			}
			if err := s.Sees(ctx, viewer, id); (err == nil) != in || err != nil && !errors.Is(err, ErrNotFound) {
				t.Errorf("%s sees %s: %v", viewer, id, err)
			}
		}
	}
	if got, err := s.List(ctx, Query{Origin: "p1", Top: true}); err != nil || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.List(ctx, Query{Prefix: "c"}); err != nil || len(got) != 2 {
		t.Errorf("%v %v", got, err)
	}
	if got, err := s.List(ctx, Query{Limit: 2, Offset: 1}); err != nil || len(got) != 2 || got[0].ID != "grand" {
		t.Errorf("%v %v", got, err)
	}
	// A session that names itself as its parent must not make the tree endless.
	create(t, s, Session{ID: "loop", Parent: "loop"})
	if got, err := s.List(ctx, Query{Viewer: "loop"}); err != nil || len(got) != 1 {
		t.Errorf("%v %v", got, err)
	}
}

// 200 sessions at once, from two stores on one file, as two processes would.
func TestManySessionsNoLockErrors(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	stores := []*Store{openAt(t, path), openAt(t, path)}
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			s := stores[i%2]
			id := NewID()
			w, err := s.Create(ctx, Session{ID: id, Origin: "o"})
			if err != nil {
				t.Error(err)
				return
			}
			for k := int64(1); k <= 10; k++ {
				if err := w.Append(ctx, record(k), false, Move{Call: fmt.Sprint(k), Tool: "T", To: Pending}); err != nil {
					t.Error(err)
					return
				}
			}
			n := 0
			for _, err := range stores[(i+1)%2].Records(ctx, id, 0) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if n != 10 {
				t.Errorf("%d records", n)
			}
		})
	}
	wg.Wait()
}

func TestAWriteThatIsNotWanted(t *testing.T) {
	s := openTest(t)
	w := create(t, s, Session{ID: "x"})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	// Somebody else commits: what has not been begun can be withdrawn.
	s.queue.lead <- struct{}{}
	wants(t, w.Append(gone, record(1), false), context.Canceled)
	<-s.queue.lead
	must(t, w.Append(context.Background(), record(1), false))
	if n := len(all(t, s, "x")); n != 1 {
		t.Errorf("%d records", n)
	}
	must(t, s.Close())
	if err := w.Append(context.Background(), record(2), false); err == nil {
		t.Error("a closed store took a record")
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are a matter of Unix")
	}
	s := openTest(t)
	create(t, s, Session{})
	for _, suffix := range []string{"", "-wal", "-shm"} {
		st, err := os.Stat(s.path + suffix)
		if must(t, err); st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", suffix, st.Mode())
		}
	}
}

func TestOpeningWhatIsNoStore(t *testing.T) {
	dir := t.TempDir()
	junk := filepath.Join(dir, "junk.db")
	must(t, os.WriteFile(junk, []byte(strings.Repeat("this is no database ", 500)), 0o600))
	if _, err := Open(context.Background(), junk); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "junk.db") {
		t.Errorf("got %v", err)
	}
	newer := filepath.Join(dir, "newer.db")
	s := openAt(t, newer)
	must(t, s.queue.tx.conn.Exec(`PRAGMA user_version = 999`))
	must(t, s.Close())
	_, err := Open(context.Background(), newer)
	wants(t, err, ErrNewer)
}

func TestManyOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "s.db")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			s, err := Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
