package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Writer is the right to write one session. It is safe for concurrent use,
// and ends with Close, with Seize by somebody else, or with the process.
type Writer struct {
	store *Store
	id    string
	n     int64
	fence int64

	// Used by whoever leads the queue only.
	epoch  int64            // of the transaction in which the rest was read
	last   int64            // number of the newest record
	pieces int64            // number of the newest piece of a draft
	used   time.Time        // when the session was made the last used one
	calls  map[string]place // some of those that have not ended

	mu     sync.Mutex
	closed bool
}

// Record is one entry of a session. Body is JSON.
type Record struct {
	Seq  int64 // from 1, without gaps
	Time time.Time
	Kind string
	Body json.RawMessage
}

// ID is the session's name.
func (w *Writer) ID() string { return w.id }

// Fence grows with each writer of a session.
func (w *Writer) Fence() int64 { return w.fence }

// Append adds the record that is due and moves calls, both or neither, and
// returns when that is durable. What Draft kept is dropped when the record
// takes its place (settles).
func (w *Writer) Append(ctx context.Context, r Record, settles bool, moves ...Move) error {
	if r.Seq < 1 || r.Seq > maxSeq {
		return named(w.id, fmt.Errorf("%w: number %d", ErrOrder, r.Seq))
	}
	if err := fits(r.Body); err != nil {
		return named(w.id, err)
	}
	err := w.store.queue.commit(ctx, func(t *tx) error {
		if err := w.check(t); err != nil {
			return err
		}
		if r.Seq != w.last+1 {
			return refuse(fmt.Errorf("%w: number %d, and %d is due", ErrOrder, r.Seq, w.last+1))
		}
		steps, err := plan(t, w, r.Seq, moves)
		if err != nil {
			return err
		}
		w.last++
		t.insert(w.n, r)
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		if settles {
			if err := w.settle(t); err != nil {
				return err
			}
		}
		return w.use(t)
	})
	return named(w.id, err)
}

// Piece is a part of what is being said. Kind tells text from thinking, say;
// the store does not look into it.
type Piece struct{ Kind, Text string }

// Draft keeps a piece of what is being said, so that nothing which was shown
// is lost before its record comes. A piece without text drops what was kept.
func (w *Writer) Draft(ctx context.Context, p Piece) error {
	if len(p.Text) > maxBody {
		return named(w.id, errTooLong)
	}
	return named(w.id, w.store.queue.commit(ctx, func(t *tx) error {
		if err := w.check(t); err != nil {
			return err
		}
		if p.Text == "" {
			return w.settle(t)
		}
		w.pieces++
		_, err := t.run(`INSERT INTO piece VALUES (?,?,?)`, key(w.n, w.pieces), p.Kind, p.Text)
		return err
	}))
}

const dropPieces = `DELETE FROM piece WHERE key BETWEEN ? AND ?`

// settle drops what Draft kept.
func (w *Writer) settle(t *tx) error {
	if w.pieces == 0 {
		return nil
	}
	w.pieces = 0
	_, err := t.run(dropPieces, key(w.n, 0), key(w.n, maxSeq))
	return err
}

// useEvery is how often a session at work is made the last used one: not with
// each record, since many sessions at once would do little else.
const useEvery = time.Second

// use makes the session the last used one, which it mostly is already.
func (w *Writer) use(t *tx) error {
	if !w.used.IsZero() && time.Since(w.used) < useEvery { // of the monotonic clock
		return nil
	}
	w.used = time.Now()
	_, err := t.run(`UPDATE session SET used = `+nextUse+` WHERE n = ? AND used < (SELECT max(used) FROM session)`, w.n)
	return err
}

// check refuses a writer that another one has replaced. What it reads holds
// until the epoch changes.
func (w *Writer) check(t *tx) error {
	if w.epoch == t.epoch {
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	clear(w.calls)
	var fence int64
	err := t.row(`SELECT fence, coalesce((SELECT max(key) FROM record WHERE key BETWEEN ?1 AND ?2), 0) & 4294967295,
		coalesce((SELECT max(key) FROM piece WHERE key BETWEEN ?1 AND ?2), 0) & 4294967295 FROM session WHERE n = ?3`,
		key(w.n, 0), key(w.n, maxSeq), w.n).Scan(&fence, &w.last, &w.pieces)
	switch {
	case errors.Is(err, sql.ErrNoRows): // deleted meanwhile
		return refuse(ErrNotFound)
	case err != nil:
		return err
	case fence != w.fence:
		return refuse(ErrFenced)
	}
	w.epoch = t.epoch
	return nil
}

// Describe changes the title and the model that are shown of the session; an
// empty one stays as it is.
func (w *Writer) Describe(ctx context.Context, title, model string) error {
	return named(w.id, w.store.queue.commit(ctx, func(t *tx) error {
		if err := w.check(t); err != nil {
			return err
		}
		_, err := t.run(`UPDATE session SET title = iif(?1 = '', title, ?1), model = iif(?2 = '', model, ?2) WHERE n = ?3`, title, model, w.n)
		return err
	}))
}

// Close gives the session back.
func (w *Writer) Close(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	err := w.store.queue.commit(ctx, func(t *tx) error {
		_, err := t.run(`UPDATE session SET owner = '' WHERE n = ? AND fence = ?`, w.n, w.fence)
		return err
	})
	if err != nil {
		return named(w.id, err)
	}
	w.closed = true
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.mine, w.n)
	return nil
}
