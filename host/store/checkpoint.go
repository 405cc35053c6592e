package store

import (
	"context"
	"database/sql"
	"os"
	"sync"
)

// Bounds of the write-ahead log.
const (
	checkpointEvery = 500      // writes
	maxLog          = 64 << 20 // bytes, after which writers wait for it to be brought home
)

// checkpoints brings the write-ahead log home into the file, beside the
// writers and on a connection of its own: what is slow in it, the sync, is not
// on the way of a commit. Closing the last connection does the rest.
type checkpoints struct {
	path string
	db   *sql.DB

	mu      sync.Mutex
	writes  int
	running bool
	closed  bool
	group   sync.WaitGroup
}

// note counts writes and starts a checkpoint when it is time.
func (c *checkpoints) note(writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writes += writes; c.writes < checkpointEvery || c.running || c.closed {
		return
	}
	c.writes, c.running = 0, true
	c.group.Go(func() {
		mode := "PASSIVE"
		if st, err := os.Stat(c.path + "-wal"); err == nil && st.Size() > maxLog {
			mode = "RESTART"
		}
		// One that fails leaves the log longer, and is tried again.
		_, _ = c.db.ExecContext(context.Background(), `PRAGMA wal_checkpoint(`+mode+`)`)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = false
	})
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
