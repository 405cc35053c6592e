package store

import (
	"errors"
	"sync"

	"github.com/elfhost/elfhost/host/store/internal/engine"
)

// bounds of the write-ahead log, in bytes.
type bounds struct {
	every int64 // written from one checkpoint to the next, about
	most  int64 // in use, after which this process's writers wait a moment so that it can begin anew
}

func usual() bounds { return bounds{every: 32 << 20, most: 64 << 20} }

// What a write costs in the log: whole pages, of which a record changes two as
// a rule, and its frame around each.
const (
	pageSize  = 4096
	writeCost = 2 * (pageSize + 24)
)

// checkpoints brings the write-ahead log home into the file, beside the
// writers and on a connection of its own: what is slow in it, the sync, is not
// on the way of a commit. Still it competes with them for the disk and the
// processor, which is why it is rare. Closing the last connection does the
// rest.
type checkpoints struct {
	bounds bounds
	open   func() (*engine.Conn, error)
	db     *engine.Conn // from the first checkpoint on
	// pause runs a function while nothing of this process is being committed.
	pause func(func())

	mu      sync.Mutex
	due     int64 // bytes written since the last one, about
	pauses  int   // how often the writers had to wait
	running bool
	closed  bool
	group   sync.WaitGroup
}

// note counts writes, and the bytes of what they hold, and starts a checkpoint
// when it is time.
func (c *checkpoints) note(writes int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.due += int64(writes)*writeCost + bytes; c.due < c.bounds.every || c.running || c.closed {
		return
	}
	c.due, c.running = 0, true
	c.group.Go(func() {
		paused := false
		// The log begins anew when a checkpoint has caught up with the writers,
		// which under load never happens by itself.
		//
		// How long the file is would not tell: it keeps its length when the log
		// begins anew.
		if used := c.home(); used > c.bounds.most && c.ahead(used) {
			c.pause(func() { c.home() })
			paused = true
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = false
		if paused {
			c.pauses++
		}
	})
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
		if !c.sync() {
			return false
		}
		used = c.home()
	}
	return true
}

// home brings the log home without being in anybody's way, and returns how
// much of it was in use. A checkpoint that fails leaves the log longer, and is
// tried again.
func (c *checkpoints) home() (used int64) {
	if c.db == nil {
		db, err := c.connect()
		if err != nil {
			return 0
		}
		c.db = db
	}
	frames, _, err := c.db.Checkpoint()
	if err != nil {
		return 0
	}
	return int64(frames) * (pageSize + 24)
}

func (c *checkpoints) connect() (*engine.Conn, error) {
	db, err := c.open()
	if err != nil {
		return nil, err
	}
	// The log is found by the first statement that reads.
	if err := db.Exec(`PRAGMA synchronous = NORMAL; PRAGMA user_version`); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// sync brings to the disk what checkpoints wrote. What a disk refused once is
// believed to it never again, since the system says so only once: the log keeps
// everything from then on.
func (c *checkpoints) sync() bool {
	if c.db == nil {
		return false
	}
	err := c.db.Sync()
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.closed = true
	}
	return err == nil
}

// close waits for the one that runs.
func (c *checkpoints) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.group.Wait()
	if c.db == nil {
		return nil
	}
	return c.db.Close()
}
