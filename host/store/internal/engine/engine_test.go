package engine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	lib "modernc.org/sqlite/lib"
)

func open(t *testing.T, path string) *Conn {
	t.Helper()
	c, err := Open("file:" + filepath.ToSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// file makes a database in write-ahead logging, without a checkpoint of its own.
func file(t *testing.T) (*Conn, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, path)
	if err := c.Exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (n INTEGER PRIMARY KEY, body ANY)`); err != nil {
		t.Fatal(err)
	}
	return c, path
}

func TestCheckpointBringsTheLogHome(t *testing.T) {
	c, path := file(t)
	other := open(t, path)
	if err := other.Exec(`PRAGMA user_version`); err != nil {
		t.Fatal(err)
	}
	if err := c.Exec(`INSERT INTO t (body) VALUES (zeroblob(100000))`); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(path)
	frames, done, err := other.Checkpoint()
	if err != nil || frames < 25 || done != frames {
		t.Fatalf("%d of %d frames, %v", done, frames, err)
	}
	if after, _ := os.Stat(path); after.Size() < before.Size()+100000 {
		t.Errorf("the file has %d bytes, before %d", after.Size(), before.Size())
	}
	if err := other.Sync(); err != nil {
		t.Error(err)
	}
	// The log begins anew.
	if err := c.Exec(`INSERT INTO t (body) VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	if frames, _, err := other.Checkpoint(); err != nil || frames > 3 {
		t.Errorf("%d frames after one more row, %v", frames, err)
	}
}

func TestErrorsHaveTheirCode(t *testing.T) {
	var e *Error
	if _, err := Open("file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "none.db"))); !errors.As(err, &e) || e.Code&0xff != lib.SQLITE_CANTOPEN {
		t.Errorf("a file that is not there: %v", err)
	}
	c, path := file(t)
	if err := c.Exec(`INSERT INTO nowhere VALUES (1)`); !errors.As(err, &e) || e.Code != lib.SQLITE_ERROR || e.Message != "no such table: nowhere" {
		t.Errorf("%v", err)
	}
	if err := c.Exec(`BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Exec(`INSERT INTO t VALUES (1, 1)`); !errors.As(err, &e) || e.Code&0xff != lib.SQLITE_BUSY {
		t.Errorf("a locked file: %v", err)
	}
}
