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
	maxLog          = 32 << 20 // bytes, after which this process's writers wait a moment so that it can begin anew
)

// checkpoints brings the write-ahead log home into the file, beside the
// writers and on a connection of its own: what is slow in it, the sync, is not
// on the way of a commit. Closing the last connection does the rest.
type checkpoints struct {
	path string
	db   *sql.DB
	// pause runs a function while nothing of this process is being committed.
	pause func(func())

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
		c.home()
		// The log begins anew when a checkpoint has caught up with the writers,
		// which under load never happens by itself. All but the last pages are
		// home by now, so that the pause is short.
		if st, err := os.Stat(c.path + "-wal"); err == nil && st.Size() > maxLog {
			c.home()
			c.pause(c.home)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.running = false
	})
}

// home brings the log home without being in anybody's way. A checkpoint that
// fails leaves the log longer, and is tried again.
func (c *checkpoints) home() {
	_, _ = c.db.ExecContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`)
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
