// Package engine speaks to SQLite through its C interface, for what
// database/sql costs too much for, or cannot ask: statements that are bound
// and run without an allocation, checkpoints, and the sync of a file.
package engine

import (
	"fmt"
	"time"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Conn is one connection. It is for one goroutine at a time.
type Conn struct {
	tls *libc.TLS
	db  uintptr
	out uintptr // what the engine answers in: two words, and one for Frames

	// What Patience was told, and what the engine calls while it waits.
	until     time.Time
	stop, end <-chan struct{}
	waits     func(tls *libc.TLS, arg uintptr, n int32) int32
}

// Error is what the engine says, with its extended code.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// word is the size of what the engine answers in.
const word = 8

// Open opens the database that a file: URI names, and makes none.
func Open(uri string) (*Conn, error) {
	c := &Conn{tls: libc.NewTLS()}
	if c.out = libc.Xcalloc(c.tls, 3, word); c.out == 0 {
		c.tls.Close()
		return nil, &Error{lib.SQLITE_NOMEM, "out of memory"}
	}
	name, err := libc.CString(uri)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	const flags = lib.SQLITE_OPEN_READWRITE | lib.SQLITE_OPEN_NOMUTEX | lib.SQLITE_OPEN_URI | lib.SQLITE_OPEN_EXRESCODE
	rc := lib.Xsqlite3_open_v2(c.tls, name, c.out, flags, 0)
	c.db = *at[uintptr](c.out)
	if err := c.failed(rc); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// at is what lies at an address of the engine's memory, which the garbage
// collector does not know.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

func (c *Conn) failed(rc int32) error {
	if rc == lib.SQLITE_OK {
		return nil
	}
	if c.db == 0 {
		return &Error{int(rc), "out of memory"}
	}
	return &Error{int(rc), libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db))}
}

// Patience is until when statements wait for other connections' locks, unless
// stop or end, which may be nil, is closed before. Without it none waits.
func (c *Conn) Patience(until time.Time, stop, end <-chan struct{}) {
	c.until, c.stop, c.end = until, stop, end
	if c.waits == nil {
		c.waits = c.wait // kept here: the engine's memory does not keep it
		f := struct {
			f func(tls *libc.TLS, arg uintptr, n int32) int32
		}{c.waits}
		_ = lib.Xsqlite3_busy_handler(c.tls, c.db, *(*uintptr)(unsafe.Pointer(&f)), 0) // cannot fail
	}
}

// pauses are how long is waited before a lock is tried again, and the last one
// from then on: what the engine does by itself.
var pauses = [...]time.Duration{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100}

// wait is called when a lock was not to be had for the n-th time in a row; 0
// gives up.
func (c *Conn) wait(_ *libc.TLS, _ uintptr, n int32) int32 {
	left := time.Until(c.until)
	if left <= 0 {
		return 0
	}
	t := time.NewTimer(min(left, pauses[min(int(n), len(pauses)-1)]*time.Millisecond))
	defer t.Stop()
	select {
	case <-t.C:
		return 1
	case <-c.stop:
	case <-c.end:
	}
	return 0
}

// Exec runs a text of statements, whose rows are dropped.
func (c *Conn) Exec(query string) error {
	text, err := libc.CString(query)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, text)
	return c.failed(lib.Xsqlite3_exec(c.tls, c.db, text, 0, 0, 0))
}

// Follow has the connection note how long the log is after each of its
// commits, for Frames. The engine has one hook for that and for checkpoints of
// its own, which it does not do any more.
func (c *Conn) Follow() {
	_ = lib.Xsqlite3_wal_hook(c.tls, c.db, committed, c.out+2*word)
}

// Frames is how many the log had after the last commit of this connection,
// those of others among them; 0 before the first one.
func (c *Conn) Frames() int { return int(*at[int32](c.out + 2*word)) }

// committed is told of each commit. For the engine, a function is the address
// of a Go function.
var committed = *(*uintptr)(unsafe.Pointer(&struct {
	f func(tls *libc.TLS, frames, db, name uintptr, n int32) int32
}{func(_ *libc.TLS, frames, _, _ uintptr, n int32) int32 {
	*at[int32](frames) = n
	return lib.SQLITE_OK
}}))

// Checkpoint copies what it can of the write-ahead log into the file, without
// waiting for anybody: PASSIVE. It returns the frames in use and those that
// are in the file now. Only when these are all of them is the file synced, and
// the log begins anew with the next write.
func (c *Conn) Checkpoint() (frames, done int, err error) {
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_PASSIVE, c.out, c.out+word)
	if err := c.failed(rc); err != nil {
		return 0, 0, err
	}
	return int(*at[int32](c.out)), int(*at[int32](c.out + word)), nil
}

// Sync brings what was written to the database's file to the disk, with no
// lock held, through the file that the engine has open: to close another one
// would lose the process its locks (fcntl(2)).
func (c *Conn) Sync() error {
	name, err := libc.CString("main")
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	if err := c.failed(lib.Xsqlite3_file_control(c.tls, c.db, name, lib.SQLITE_FCNTL_FILE_POINTER, c.out)); err != nil {
		return err
	}
	file := *at[uintptr](c.out)
	methods := at[lib.Tsqlite3_file](file).FpMethods
	if methods == 0 { // not open yet
		return nil
	}
	call := struct{ f uintptr }{at[lib.Tsqlite3_io_methods](methods).FxSync}
	sync := *(*func(*libc.TLS, uintptr, int32) int32)(unsafe.Pointer(&call))
	if rc := sync(c.tls, file, lib.SQLITE_SYNC_NORMAL); rc != lib.SQLITE_OK {
		return &Error{int(rc), "the file cannot be synced"}
	}
	return nil
}

// KeepLog leaves the log as it is when the last connection closes, instead of
// bringing it home: the next one to open the file reads all of it again.
func (c *Conn) KeepLog() error {
	const slot = 8 // of an argument, on all machines
	args := libc.Xmalloc(c.tls, 2*slot)
	if args == 0 {
		return &Error{lib.SQLITE_NOMEM, "out of memory"}
	}
	defer libc.Xfree(c.tls, args)
	return c.failed(lib.Xsqlite3_db_config(c.tls, c.db, lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(args, int32(1), uintptr(0))))
}

// Close closes the connection; its statements are closed before.
func (c *Conn) Close() error {
	if c.tls == nil {
		return nil
	}
	var err error
	if c.db != 0 {
		err = c.failed(lib.Xsqlite3_close_v2(c.tls, c.db))
	}
	libc.Xfree(c.tls, c.out)
	c.tls.Close()
	*c = Conn{}
	return err
}
