package store

import (
	"errors"
	"sync"

	"github.com/elfhost/elfhost/host/store/internal/engine"
	lib "modernc.org/sqlite/lib"
)

// bounds of the write-ahead log, in bytes.
type bounds struct {
	every int64 // written from one checkpoint to the next
	most  int64 // in use, after which this process's writers wait a moment so that it can begin anew
}

func usual() bounds { return bounds{every: 32 << 20, most: 64 << 20} }

const (
	pageSize  = 4096
	frameSize = pageSize + 24 // of a page in the log
)

// wal is what a checkpoint asks of its connection; see engine.Conn.
type wal interface {
	Checkpoint() (frames, done int, err error)
	Sync() error
	Close() error
}

// follow opens a connection for checkpoints.
func follow(source string) (wal, error) {
	db, err := engine.Open(source)
	if err != nil {
		return nil, err
	}
	// The log is found by the first statement that reads.
	if err := db.Exec(`PRAGMA synchronous = NORMAL; PRAGMA user_version`); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkpoints brings the write-ahead log home into the file, beside the
// writers and on a connection of its own: what is slow in it, the sync, is not
// on the way of a commit. Still it competes with them for the disk and the
// processor, which is why it is rare. Closing the last connection does the
// rest.
type checkpoints struct {
	bounds bounds
	open   func() (wal, error)
	db     wal // from the first checkpoint on
	// pause runs a function while nobody commits, see queue.
	pause func(func())

	mu      sync.Mutex
	length  int   // of the log, in frames, when it was told last
	due     int64 // bytes written since the last one
	pauses  int   // how often the writers had to wait
	running bool
	refused bool // the disk has not taken what was written
	closed  bool
	group   sync.WaitGroup
}

// note is told how many frames the log has, after each transaction, and starts
// a checkpoint when it is time.
func (c *checkpoints) note(frames int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	grown := frames - c.length
	if grown < 0 { // it has begun anew
		grown = frames
	}
	c.length = frames
	if c.due += int64(grown) * frameSize; c.due < c.bounds.every || c.running || c.refused || c.closed {
		return
	}
	c.due, c.running = 0, true
	c.group.Go(func() {
		paused := c.run()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = false
		if paused {
			c.pauses++
		}
	})
}

// run is one checkpoint, and reports whether the writers had to wait.
//
// The log begins anew when a checkpoint has caught up with the writers, which
// under load never happens by itself. How long the file is would not tell: it
// keeps its length when the log begins anew.
func (c *checkpoints) run() (paused bool) {
	used := c.home()
	if used <= c.bounds.most || !c.ahead(used) {
		return false
	}
	c.pause(func() { c.home() })
	return true
}

// ahead makes the pause short. Only the checkpoint that catches up syncs the
// file, and with it what all the others wrote there: done ahead, with the last
// pages copied once more, this leaves it little to do. Where the writers are so
// much faster that the log would grow on and on meanwhile, they have to wait
// for it. It reports whether the disk takes what is written.
func (c *checkpoints) ahead(used int64) bool {
	for range 2 {
		if used > 2*c.bounds.most {
			break
		}
		if c.failed(c.db.Sync()) {
			return false
		}
		if used = c.home(); used == 0 {
			return false
		}
	}
	return true
}

// home brings the log home without being in anybody's way, and returns how
// much of it was in use. A checkpoint that fails leaves the log longer, and is
// tried again.
func (c *checkpoints) home() (used int64) {
	if c.db == nil {
		db, err := c.open()
		if err != nil {
			return 0
		}
		c.db = db
	}
	frames, _, err := c.db.Checkpoint()
	if c.failed(err) {
		return 0
	}
	return int64(frames) * frameSize
}

// failed reports an error. What a disk refused once is believed to it never
// again, since the system says so only once, and takes the next sync for good:
// the log keeps everything from then on, and is read again by whoever opens
// the file next.
func (c *checkpoints) failed(err error) bool {
	var e *engine.Error
	if errors.As(err, &e) && (e.Code == lib.SQLITE_IOERR_FSYNC || e.Code == lib.SQLITE_IOERR_DIR_FSYNC) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.refused = true
	}
	return err != nil
}

// close waits for the one that runs, and reports whether the log has to stay
// as it is.
func (c *checkpoints) close() (kept bool, err error) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.group.Wait()
	if c.db != nil {
		err = c.db.Close()
	}
	return c.refused, err
}
