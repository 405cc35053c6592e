package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// queue gathers the writes of all goroutines into transactions: whoever comes
// while one is being committed waits, and the first of those who wait commits
// for all of them. A lone writer has no more to do than its own transaction.
type queue struct {
	tx    *tx
	wrote func(frames int) // told after every transaction how long the log is
	// patience is how long a write waits for another process.
	patience time.Duration
	ending   chan struct{} // closed when nobody waits any more
	// refused is what every write fails with; nil: they are done.
	refused error

	mu     sync.Mutex
	ops    []*op
	lead   chan struct{} // holds one token while somebody commits
	closed bool
}

// op is one write. do checks before it changes anything: a refusal must leave
// the transaction as it was, since others share it.
type op struct {
	do   func(t *tx) error
	done chan struct{}
	err  error
}

// refusal is an error of one op, with which the transaction goes on.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(err error) error { return refusal{err} }

// maxBody bounds what one op brings, in bytes. The engine has a bound, too, but
// what it refuses fails the transaction, and with it all who share it.
const maxBody = 256 << 20

var errTooLong = fmt.Errorf("more than %d MB cannot be kept at once", maxBody>>20)

// fits refuses a body that the engine would.
func fits(body []byte) error {
	switch {
	case len(body) == 0:
		return errors.New("there is no body to keep")
	case len(body) > maxBody:
		return errTooLong
	}
	return nil
}

// maxBatch bounds how many ops share a transaction.
const maxBatch = 256

var errClosed = errors.New("the store is closed")

// commit does f in a transaction and returns when it is durable. The end of ctx
// ends every waiting at once; once f is being done it comes too late, and the
// answer is what happened.
func (q *queue) commit(ctx context.Context, f func(t *tx) error) error {
	o := &op{do: f, done: make(chan struct{})}
	lead, err := q.push(o)
	if err != nil {
		return err
	}
	until := time.Now().Add(q.patience)
	for {
		select {
		case <-o.done:
			return o.err
		default:
		}
		select {
		case <-o.done:
			return o.err
		case lead <- struct{}{}:
			err := q.batch(until, ctx.Done())
			<-lead
			if err != nil && q.withdraw(o) {
				if busy(err) && ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				return err
			}
		case <-ctx.Done():
			if q.withdraw(o) {
				return context.Cause(ctx)
			}
			<-o.done
			return o.err
		}
	}
}

func (q *queue) push(o *op) (chan struct{}, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, errClosed
	}
	if q.refused != nil {
		return nil, q.refused
	}
	if q.lead == nil {
		q.lead = make(chan struct{}, 1)
	}
	q.ops = append(q.ops, o)
	return q.lead, nil
}

// pause runs f while nothing is being committed, by other processes neither:
// beside one that always writes, no checkpoint would ever catch up. Where the
// lock cannot be had, f runs without it. The queue must not be closed before
// pause returns.
func (q *queue) pause(f func()) {
	q.mu.Lock()
	if q.lead == nil {
		q.lead = make(chan struct{}, 1)
	}
	lead := q.lead
	q.mu.Unlock()
	lead <- struct{}{}
	defer func() { <-lead }()
	q.tx.conn.Patience(time.Now().Add(q.patience), nil, q.ending)
	if _, err := q.tx.run(`BEGIN IMMEDIATE`); err == nil {
		defer func() { _, _ = q.tx.run(`ROLLBACK`) }()
	}
	f()
}

func (q *queue) withdraw(o *op) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.ops, o)
	if i < 0 {
		return false
	}
	q.ops = slices.Delete(q.ops, i, i+1)
	return true
}

func (q *queue) take() []*op {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.ops), maxBatch)
	ops := slices.Clone(q.ops[:n])
	q.ops = slices.Delete(q.ops, 0, n)
	return ops
}

// batch commits what is waiting when the lock is had: until then everybody can
// still withdraw. An error says that it was not to be had, and nothing has
// happened. One of the transaction, and no refusal, is everybody's.
func (q *queue) batch(until time.Time, stop <-chan struct{}) error {
	q.tx.conn.Patience(until, stop, q.ending)
	if _, err := q.tx.run(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	ops := q.take()
	err := q.tx.end(func() error {
		if err := q.tx.begin(); err != nil {
			return err
		}
		for _, o := range ops {
			o.err = o.do(q.tx)
			if r, ok := o.err.(refusal); ok {
				o.err = r.error
				continue
			}
			if o.err != nil {
				return o.err
			}
		}
		return q.tx.flush()
	})
	if err != nil {
		q.tx.epoch++
	}
	q.wrote(q.tx.conn.Frames())
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
	return nil
}

// end ends what waits for another process, before the queue is closed.
func (q *queue) end() {
	if q.ending != nil {
		close(q.ending)
	}
}

// close refuses what comes later and waits for what runs.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	ops, lead := q.ops, q.lead
	q.ops = nil
	q.mu.Unlock()
	for _, o := range ops {
		o.err = errClosed
		close(o.done)
	}
	if lead != nil {
		lead <- struct{}{}
	}
}
