package store

import (
	"context"
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
	err := w.store.queue.commit(ctx, func(t *tx) error {
		var steps []func() error
		if len(moves) > 0 {
			err := w.check(t)
			if err == nil {
				steps, err = plan(t, w, r.Seq, moves)
			}
			if err != nil {
				return err
			}
		}
		n, err := t.run(`UPDATE session SET seq = ?1, updated = ?2 WHERE n = ?3 AND fence = ?4 AND seq = ?1 - 1`,
			r.Seq, micros(r.Time), w.n, w.fence)
		if err != nil {
			return err
		}
		if n == 0 {
			return w.why(t, r.Seq)
		}
		if _, err := t.run(`INSERT INTO record VALUES (?,?,?,?)`, key(w.n, r.Seq), micros(r.Time), r.Kind, []byte(r.Body)); err != nil {
			return err
		}
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		if settles {
			_, err = t.run(`DELETE FROM draft WHERE session = ?`, w.n)
		}
		return err
	})
	return named(w.id, err)
}

// why tells what is wrong with a record that did not fit.
func (w *Writer) why(t *tx, seq int64) error {
	var fence, have int64
	if err := t.row(`SELECT fence, seq FROM session WHERE n = ?`, w.n).Scan(&fence, &have); err != nil {
		if e := named(w.id, err); errors.Is(e, ErrNotFound) { // deleted meanwhile
			return refuse(ErrNotFound)
		}
		return err
	}
	if fence != w.fence {
		return refuse(ErrFenced)
	}
	return refuse(fmt.Errorf("%w: number %d, and %d is due", ErrOrder, seq, have+1))
}

// Draft keeps a piece of what is being said, so that nothing which was shown
// is lost before its record comes. An empty piece drops what was kept.
func (w *Writer) Draft(ctx context.Context, piece string) error {
	return named(w.id, w.store.queue.commit(ctx, func(t *tx) error {
		if err := w.check(t); err != nil {
			return err
		}
		if piece == "" {
			_, err := t.run(`DELETE FROM draft WHERE session = ?`, w.n)
			return err
		}
		_, err := t.run(`INSERT INTO draft VALUES (?1, ?2) ON CONFLICT (session) DO UPDATE SET body = body || ?2`, w.n, piece)
		return err
	}))
}

// check refuses a writer that another one has replaced.
func (w *Writer) check(t *tx) error {
	var fence int64
	err := t.row(`SELECT fence FROM session WHERE n = ?`, w.n).Scan(&fence)
	switch {
	case errors.Is(named(w.id, err), ErrNotFound):
		return refuse(ErrNotFound)
	case err != nil:
		return err
	case fence != w.fence:
		return refuse(ErrFenced)
	}
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
