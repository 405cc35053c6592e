package mcp

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// longTurn is from when, at the latest twice of it, others read on beside a
	// request. A client's cancellation waits no longer than that to be read.
	longTurn = 2 * time.Millisecond
	// restTurns is how many of these periods without a request end the timer.
	restTurns = 8
)

// turn is the right to read of a goroutine that carries a request out and means
// to read on after it. A timer, which runs while there is work and costs the
// requests nothing, takes it away from one that takes long. Set pass before the
// first use.
type turn struct {
	pass func() // gives the right to another goroutine

	count atomic.Uint64 // of turns
	now   atomic.Uint64 // the number of the one that is on; 0: none
	runs  atomic.Bool   // the timer

	mu    sync.Mutex
	timer *time.Timer
	last  uint64 // the newest turn that the timer saw
	rest  int
	over  bool
}

func (t *turn) begin() (number uint64) {
	number = t.count.Add(1)
	t.now.Store(number)
	if t.runs.CompareAndSwap(false, true) {
		t.start()
	}
	return number
}

// end reports whether the right is still the caller's, whose turn it was.
func (t *turn) end(number uint64) bool { return t.now.CompareAndSwap(number, 0) }

// yield gives the right away now: what is carried out waits for the client.
func (t *turn) yield() { t.take(t.now.Load()) }

func (t *turn) take(number uint64) {
	if number != 0 && t.now.CompareAndSwap(number, 0) {
		t.pass()
	}
}

func (t *turn) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over:
	case t.timer == nil:
		t.timer = time.AfterFunc(longTurn, t.look)
	default:
		t.timer.Reset(longTurn)
	}
}

// look is the timer's.
func (t *turn) look() {
	newest, now := t.count.Load(), t.now.Load()
	t.mu.Lock()
	long := now != 0 && now == t.last
	if t.rest++; newest != t.last {
		t.rest = 0
	}
	t.last = newest
	stop := t.rest >= restTurns
	if stop {
		t.rest = 0
		t.runs.Store(false)
	} else if !t.over {
		t.timer.Reset(longTurn)
	}
	t.mu.Unlock()
	if long {
		t.take(now)
	}
	// A turn may have begun just before the timer was said not to run.
	if stop && t.now.Load() != 0 && t.runs.CompareAndSwap(false, true) {
		t.start()
	}
}

func (t *turn) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over = true; t.timer != nil {
		t.timer.Stop()
	}
}
