package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/store/internal/engine"
	lib "modernc.org/sqlite/lib"
)

// What has no room is told as such, changes nothing, and goes on when there is
// room again.
func TestAFullDisk(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "x"})
	must(t, w.Append(ctx, record(1), false, Move{Call: "c", Tool: "T", To: Pending}))
	var pages int
	must(t, s.queue.tx.row(`PRAGMA page_count`).Scan(&pages))
	must(t, s.queue.tx.conn.Exec(fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)))
	big := record(2)
	big.Body = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	wants(t, w.Append(ctx, big, false, Move{Call: "c", To: Running}), ErrFull)
	if calls, err := s.Calls(ctx, "x"); err != nil || calls[0].State != Pending || len(all(t, s, "x")) != 1 {
		t.Errorf("a write without room left something behind: %v %v", calls, err)
	}
	must(t, s.queue.tx.conn.Exec(`PRAGMA max_page_count = 1000000`))
	must(t, w.Append(ctx, big, false, Move{Call: "c", To: Running}))
	if n := len(all(t, s, "x")); n != 2 {
		t.Errorf("%d records", n)
	}
}

// A transaction that fails halfway is gone, and with it its lock.
func TestATransactionThatFails(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path)
	w := create(t, s, Session{ID: "x"})
	other.queue.patience = time.Millisecond
	oops := errors.New("oops")
	for range 2 {
		wants(t, s.queue.commit(ctx, func(tx *tx) error {
			if _, err := tx.run(`UPDATE session SET title = 'half'`); err != nil {
				return err
			}
			tx.insert(w.n, record(1))
			return oops
		}), oops)
		must(t, create(t, other, Session{}).Close(ctx))
	}
	must(t, w.Append(ctx, record(1), false))
	m, err := s.Session(ctx, "x")
	if must(t, err); m.Title != "" || m.Records != 1 {
		t.Errorf("half a transaction was kept: %+v", m)
	}
}

// What could not be kept is refused before it shares a transaction with others.
func TestABodyThatDoesNotFit(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "x"})
	huge := make([]byte, maxBody+1)
	for _, body := range []json.RawMessage{nil, {}, huge} {
		r := record(1)
		r.Body = body
		for _, err := range []error{w.Append(ctx, r, false), s.AddNote(ctx, "x", Note{Body: body}), s.SetFact(ctx, "x", "a", body)} {
			if err == nil || code(err) != 0 {
				t.Errorf("%d bytes: %v", len(body), err)
			}
		}
	}
	wants(t, w.Draft(ctx, Piece{Text: string(huge)}), errTooLong)
	must(t, w.Append(ctx, record(1), false))
}

func TestALockThatDoesNotEnd(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path)
	w := create(t, s, Session{ID: "x"})
	s.queue.patience = 20 * time.Millisecond
	must(t, other.queue.tx.conn.Exec(`BEGIN IMMEDIATE`))
	wants(t, w.Append(ctx, record(1), false), ErrLocked)
	must(t, other.queue.tx.conn.Exec(`ROLLBACK`))
	must(t, w.Append(ctx, record(1), false))
}

// The end of a context ends the waiting for another process at once, be it for
// the one who tries the lock or for those behind; the others wait on, and what
// is written with a context of its own is not lost.
func TestACancelledWriteWaitsForNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s, other := openAt(t, path), openAt(t, path)
	w := create(t, s, Session{ID: "x"})
	s.queue.patience = time.Hour
	must(t, other.queue.tx.conn.Exec(`BEGIN IMMEDIATE`))
	kept := make(chan error, 1)
	go func() { kept <- s.SetFact(context.Background(), "x", "a", json.RawMessage(`1`)) }()
	for range 3 {
		ctx, cancel := context.WithCancelCause(context.Background())
		gone := errors.New("Ctrl-C")
		failed := make(chan error, 2)
		for range cap(failed) {
			go func() { failed <- w.Append(ctx, record(1), false) }()
		}
		cancel(gone)
		wants(t, <-failed, gone)
		wants(t, <-failed, gone)
	}
	must(t, other.queue.tx.conn.Exec(`ROLLBACK`))
	must(t, <-kept)
	must(t, w.Append(context.Background(), record(1), false))
	// Whoever closes the store waits for nobody either.
	must(t, other.queue.tx.conn.Exec(`BEGIN IMMEDIATE`))
	go func() { kept <- w.Append(context.Background(), record(2), false) }()
	must(t, s.Close())
	if err := <-kept; err == nil {
		t.Error("it was written past a lock")
	}
}

// Opening a store of an earlier version waits for whoever has it, not longer
// than it is wanted.
func TestACancelledOpeningWaitsForNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	other := openAt(t, path)
	must(t, other.queue.tx.conn.Exec(`PRAGMA user_version = 3; BEGIN IMMEDIATE`))
	ctx, cancel := context.WithCancel(context.Background())
	opened := make(chan error, 1)
	go func() {
		_, err := Open(ctx, path)
		opened <- err
	}()
	cancel()
	wants(t, <-opened, context.Canceled)
	must(t, other.queue.tx.conn.Exec(`ROLLBACK`))
}

// Damage in the middle of the file, which opening does not meet.
func TestDamageInTheMiddle(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	s := openAt(t, path)
	w := create(t, s, Session{ID: "x"})
	for i := int64(1); i <= 500; i++ {
		r := record(i)
		r.Body = json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)
		must(t, w.Append(ctx, r, false))
	}
	must(t, w.Close(ctx))
	must(t, s.Close())
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(strings.Repeat("damage! ", 60<<10)), 4*pageSize)
	must(t, err)
	must(t, f.Close())

	s = openAt(t, path)
	_, err = s.List(ctx, Query{})
	wants(t, err, ErrDamaged)
	err = nil
	for _, e := range s.Records(ctx, "x", 0) {
		err = errors.Join(err, e)
	}
	wants(t, err, ErrDamaged)
}

func TestPlaceOfAStoreThatIsNoPlace(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(context.Background(), dir)
	wants(t, err, ErrFile)
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(context.Background(), filepath.Join(file, "s.db"))
	wants(t, err, ErrFile)
	path := filepath.Join(dir, "s.db")
	must(t, os.WriteFile(path+".owners", nil, 0o600))
	s := openAt(t, path)
	_, err = s.Create(context.Background(), Session{ID: "x"})
	wants(t, err, ErrFile)
}

func TestPlain(t *testing.T) {
	for _, c := range []struct{ err, want error }{
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ErrFull},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}, ErrFile},
		{fmt.Errorf("more: %w", ErrFenced), ErrFenced},
		{&engine.Error{Code: lib.SQLITE_BUSY_SNAPSHOT}, ErrLocked},
		{&engine.Error{Code: lib.SQLITE_IOERR_SHMSIZE}, ErrFull},
		{&engine.Error{Code: lib.SQLITE_IOERR_READ}, ErrFile},
		{&engine.Error{Code: lib.SQLITE_PROTOCOL}, ErrLocked},
		{&engine.Error{Code: lib.SQLITE_IOERR_FSYNC}, ErrFile},
		{&engine.Error{Code: lib.SQLITE_READONLY_DBMOVED}, ErrFile},
		{&engine.Error{Code: lib.SQLITE_CORRUPT_INDEX}, ErrDamaged},
		{context.Canceled, context.Canceled},
	} {
		got := plain(c.err)
		if !errors.Is(got, c.want) || !errors.Is(got, c.err) {
			t.Errorf("%v became %v", c.err, got)
		}
		if again := plain(got); again.Error() != got.Error() {
			t.Errorf("told twice: %v", again)
		}
	}
	if plain(nil) != nil {
		t.Error("an error from nothing")
	}
}

// A clock that goes back changes neither the order of records nor what comes
// next.
func TestAClockThatGoesBack(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	w := create(t, s, Session{ID: "x"})
	for i := int64(1); i <= 3; i++ {
		r := record(i)
		r.Time = time.Unix(2e9-i*3600, 0)
		must(t, w.Append(ctx, r, false))
	}
	got := all(t, s, "x")
	if len(got) != 3 || got[0].Seq != 1 || got[2].Seq != 3 || !got[2].Time.Before(got[0].Time) {
		t.Errorf("%v", got)
	}
}
