// Package pool keeps instances of one plugin ready for the next call.
//
// It guarantees: an instance serves one call at a time, and is clean when it
// is handed out: new, or brought back to its beginning after the last call. An
// instance that failed is closed, never used again. At most Max instances lie
// idle; those that nobody wanted for a while are given back. Cleaning and
// refilling happen beside the calls, so that a call waits for neither.
package pool

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Instance is what a pool keeps.
type Instance interface {
	// Reset brings the instance back to its beginning. After an error it is closed.
	Reset(ctx context.Context) error
	Close(ctx context.Context) error
}

// ErrClosed is the error of Get after Close.
var ErrClosed = errors.New("the pool is closed")

// Pool holds instances. Set the fields before its first use; it is then safe
// for concurrent use and must not be copied.
type Pool[T Instance] struct {
	New  func(context.Context) (T, error)
	Max  int           // idle instances, clean or not; 0: 4
	Idle time.Duration // after which an idle instance is closed; 0: 30 s

	mu     sync.Mutex
	clean  []rest[T] // the freshest last
	dirty  []T
	spare  bool // the worker is to make one
	busy   bool // the worker runs, or will
	soon   *time.Timer
	pause  time.Duration // before the worker's last run
	closed bool
	timer  *time.Timer
	work   sync.WaitGroup
}

// rest is an idle instance and since when it is one.
type rest[T any] struct {
	in    T
	since time.Time
}

func (p *Pool[T]) max() int {
	if p.Max > 0 {
		return p.Max
	}
	return 4
}

func (p *Pool[T]) idle() time.Duration {
	if p.Idle > 0 {
		return p.Idle
	}
	return 30 * time.Second
}

// Get hands out a clean instance: a ready one, else one that is cleaned now,
// else a new one. Give it back with Put.
func (p *Pool[T]) Get(ctx context.Context) (T, error) {
	var none T
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return none, ErrClosed
		}
		if n := len(p.clean); n > 0 {
			in := p.clean[n-1].in
			p.clean = p.clean[:n-1]
			p.mu.Unlock()
			return in, nil
		}
		n := len(p.dirty)
		if n == 0 {
			p.mu.Unlock()
			return p.New(ctx)
		}
		in := p.dirty[n-1]
		p.dirty = p.dirty[:n-1]
		p.mu.Unlock()
		if in.Reset(ctx) == nil {
			return in, nil
		}
		in.Close(ctx)
	}
}

// Put takes an instance back after its call. A failed one is closed, and
// another is made in its place.
func (p *Pool[T]) Put(ctx context.Context, in T, failed bool) {
	p.mu.Lock()
	keep := !failed && !p.closed && len(p.clean)+len(p.dirty) < p.max()
	if keep {
		p.dirty = append(p.dirty, in)
	} else if failed && !p.closed && len(p.clean)+len(p.dirty) == 0 {
		p.spare = true
	}
	p.kick()
	p.mu.Unlock()
	if !keep {
		in.Close(ctx)
	}
}

// PutClean takes an instance back that did not fail, and cleans it at once: for
// callers that nobody waits for.
func (p *Pool[T]) PutClean(ctx context.Context, in T) {
	p.mu.Lock()
	keep := !p.closed && len(p.clean)+len(p.dirty) < p.max()
	p.mu.Unlock()
	if keep {
		p.add(ctx, in, in.Reset(ctx))
	} else {
		in.Close(ctx)
	}
}

// An instance lies for a while before the worker cleans it: a caller that comes
// back at once cleans it itself, without waiting for another thread. As long as
// callers do, the worker, whose timer wakes a thread too, comes ever less often.
const (
	pause    = time.Millisecond
	maxPause = 64 * time.Millisecond
)

// kick starts the worker where there is work. mu is held.
func (p *Pool[T]) kick() {
	if p.busy || p.closed || len(p.dirty) == 0 && !p.spare {
		return
	}
	p.busy = true
	p.work.Add(1)
	if p.pause = min(max(2*p.pause, pause), maxPause); p.spare {
		p.pause = pause
	}
	p.soon = time.AfterFunc(p.pause, p.run)
}

// run cleans and refills until there is nothing left to do.
func (p *Pool[T]) run() {
	defer p.work.Done()
	ctx := context.Background() // a worker has no caller; each step is short
	for {
		p.mu.Lock()
		n := len(p.dirty)
		switch {
		case p.closed || n == 0 && !p.spare:
			p.busy = false
			p.mu.Unlock()
			return
		case n > 0:
			in := p.dirty[n-1]
			p.dirty = p.dirty[:n-1]
			p.pause = 0
			p.mu.Unlock()
			p.add(ctx, in, in.Reset(ctx))
		default:
			p.spare = false
			p.mu.Unlock()
			if in, err := p.New(ctx); err == nil {
				p.add(ctx, in, nil)
			}
		}
	}
}

// add makes a clean instance available; err says that it is not clean.
func (p *Pool[T]) add(ctx context.Context, in T, err error) {
	p.mu.Lock()
	keep := err == nil && !p.closed && len(p.clean) < p.max()
	if keep {
		p.clean = append(p.clean, rest[T]{in, time.Now()})
		if p.timer == nil {
			p.timer = time.AfterFunc(p.idle(), p.expire)
		}
	}
	p.mu.Unlock()
	if !keep {
		in.Close(ctx)
	}
}

// expire closes what has been idle for too long.
func (p *Pool[T]) expire() {
	var old []T
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	limit := time.Now().Add(-p.idle())
	for len(p.clean) > 0 && !p.clean[0].since.After(limit) {
		old = append(old, p.clean[0].in)
		p.clean = p.clean[1:]
	}
	p.timer = nil
	if len(p.clean) > 0 {
		p.timer = time.AfterFunc(time.Until(p.clean[0].since.Add(p.idle())), p.expire)
	}
	p.mu.Unlock()
	for _, in := range old {
		in.Close(context.Background())
	}
}

// Fill makes instances until n lie idle, or Max.
func (p *Pool[T]) Fill(ctx context.Context, n int) error {
	for p.Len() < min(n, p.max()) {
		in, err := p.New(ctx)
		if err != nil {
			return err
		}
		p.add(ctx, in, nil)
	}
	return nil
}

// Len is the number of idle instances.
func (p *Pool[T]) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.clean) + len(p.dirty)
}

// Close closes the idle instances and waits for the worker. Instances that are
// out are closed when they are put back.
func (p *Pool[T]) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.soon != nil && p.soon.Stop() {
		p.work.Done()
	}
	p.mu.Unlock()
	p.work.Wait()
	p.mu.Lock()
	all := p.dirty
	for _, r := range p.clean {
		all = append(all, r.in)
	}
	p.clean, p.dirty = nil, nil
	p.mu.Unlock()
	var errs []error
	for _, in := range all {
		errs = append(errs, in.Close(ctx))
	}
	return errors.Join(errs...)
}
