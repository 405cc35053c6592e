package sandbox

import (
	"context"
	"sync"
	"time"
)

// stopwatch is the time of one call: a context that ends when the limit is
// used up, once the watch is armed; before that, who runs the guest asks it
// (expired). What the host waits for a person does not count.
type stopwatch struct {
	limit  time.Duration
	start  time.Time
	waited func() time.Duration
	cancel context.CancelCauseFunc
	ctx    context.Context

	mu    sync.Mutex
	timer *time.Timer
}

// startWatch begins. waited says how long the call has waited for a person so
// far; it must be safe for concurrent use. Stop the watch in the end.
func startWatch(ctx context.Context, limit time.Duration, waited func() time.Duration) (context.Context, *stopwatch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &stopwatch{limit: limit, start: time.Now(), waited: waited, cancel: cancel, ctx: ctx}
}

// arm starts the timer, for what may wait: the guest itself is stopped by its
// fuel. A timer can wake a thread, which most calls of a guest do without.
func (w *stopwatch) arm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(max(w.left(), time.Millisecond), w.fire)
	}
}

// left is what remains of the limit.
func (w *stopwatch) left() time.Duration {
	return w.limit - time.Since(w.start) + w.waited()
}

func (w *stopwatch) fire() {
	left := w.left()
	if left <= 0 {
		w.cancel(timeLimit(w.limit))
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Reset(max(left, time.Millisecond))
}

// expired is the same question for who cannot wait for the timer: a guest that
// spins may keep it from firing on time.
func (w *stopwatch) expired() bool {
	if time.Since(w.start) < w.limit || w.left() > 0 {
		return false
	}
	w.cancel(timeLimit(w.limit))
	return true
}

// err is why the call is over, or nil. It is a *LimitError or a *stopped.
func (w *stopwatch) err() error {
	if w.ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(w.ctx)
	if limit, ok := cause.(*LimitError); ok {
		return limit
	}
	return &stopped{cause}
}

func (w *stopwatch) stop() {
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.mu.Unlock()
	w.cancel(context.Canceled)
}
