package engine

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"modernc.org/libc"
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

// What a connection that follows the log is told, and that it does no
// checkpoint of its own.
func TestFramesFollowTheLog(t *testing.T) {
	c, path := file(t)
	c.Follow()
	other := open(t, path)
	other.Follow()
	if n := c.Frames(); n != 0 {
		t.Errorf("%d frames before the first commit", n)
	}
	last := 0
	for range 50 {
		if err := c.Exec(`INSERT INTO t (body) VALUES (zeroblob(100000))`); err != nil {
			t.Fatal(err)
		}
		if n := c.Frames(); n < last+25 || n > last+35 {
			t.Fatalf("%d frames after %d", n, last)
		}
		last = c.Frames()
	}
	if err := other.Exec(`INSERT INTO t (body) VALUES (zeroblob(100000))`); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Exec(`BEGIN IMMEDIATE; ROLLBACK`), c.Exec(`SELECT * FROM t`)); err != nil || c.Frames() != last {
		t.Errorf("%d frames after %d, and nothing was written, %v", c.Frames(), last, err)
	}
	if err := c.Exec(`INSERT INTO t (body) VALUES (1)`); err != nil || c.Frames() < last+26 {
		t.Errorf("%d frames after %d and another connection's, %v", c.Frames(), last, err)
	}
	if _, _, err := other.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := c.Exec(`INSERT INTO t (body) VALUES (1)`); err != nil || c.Frames() > 3 {
		t.Errorf("%d frames in a log that began anew, %v", c.Frames(), err)
	}
}

// Sync reaches the file that the engine has open, and says what that says.
func TestSyncReachesTheDisk(t *testing.T) {
	c, _ := file(t)
	syncs, answer := 0, int32(lib.SQLITE_OK)
	watch(t, c, func() int32 { syncs++; return answer })
	if err := c.Sync(); err != nil || syncs != 1 {
		t.Errorf("%d syncs, %v", syncs, err)
	}
	// A checkpoint syncs the file when it has brought home all there is.
	if err := c.Exec(`INSERT INTO t (body) VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Checkpoint(); err != nil || syncs != 2 {
		t.Errorf("%d syncs, %v", syncs, err)
	}
	answer = lib.SQLITE_IOERR_FSYNC
	var e *Error
	if err := c.Sync(); !errors.As(err, &e) || e.Code != lib.SQLITE_IOERR_FSYNC || syncs != 3 {
		t.Errorf("%d syncs, %v", syncs, err)
	}
}

// watch puts a function in the place of a connection's sync of its file.
func watch(t *testing.T, c *Conn, f func() int32) {
	t.Helper()
	name, err := libc.CString("main")
	if err != nil {
		t.Fatal(err)
	}
	defer libc.Xfree(c.tls, name)
	if err := c.failed(lib.Xsqlite3_file_control(c.tls, c.db, name, lib.SQLITE_FCNTL_FILE_POINTER, c.out)); err != nil {
		t.Fatal(err)
	}
	file := at[lib.Tsqlite3_file](*at[uintptr](c.out))
	sync := func(*libc.TLS, uintptr, int32) int32 { return f() }
	before := file.FpMethods
	methods := *at[lib.Tsqlite3_io_methods](before)
	methods.FxSync = *(*uintptr)(unsafe.Pointer(&sync))
	p := libc.Xmalloc(c.tls, libc.Tsize_t(unsafe.Sizeof(methods)))
	*at[lib.Tsqlite3_io_methods](p) = methods
	file.FpMethods = p
	t.Cleanup(func() {
		file.FpMethods = before
		libc.Xfree(c.tls, p)
		runtime.KeepAlive(sync)
	})
}

func TestALogThatIsKept(t *testing.T) {
	c, path := file(t)
	if err := errors.Join(c.Exec(`INSERT INTO t (body) VALUES (42)`), c.KeepLog(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if log, err := os.Stat(path + "-wal"); err != nil || log.Size() == 0 {
		t.Errorf("the log is gone: %v", err)
	}
	var n int
	c = open(t, path)
	if one(t, prepare(t, c, `SELECT body FROM t`), nil, &n); n != 42 {
		t.Errorf("%d came back", n)
	}
}
