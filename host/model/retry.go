package model

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Retry says how often and how patiently a failed request is sent again. A
// zero field means its default.
type Retry struct {
	Attempts int           // all together; default 6; 1 or less: none is repeated
	First    time.Duration // the first wait, doubled each time and jittered; default 1 s
	Longest  time.Duration // one wait; default 30 s
	Patience time.Duration // the longest wait that a provider may ask for; default 2 min
}

// Wrap repeats what Retryable allows, and announces each repetition with
// KindRetry: an answer may break off in the middle, and what came of it is
// void then.
func (r Retry) Wrap(m Model) Model {
	if r.Attempts == 0 {
		r.Attempts = 6
	}
	if r.First == 0 {
		r.First = time.Second
	}
	if r.Longest == 0 {
		r.Longest = 30 * time.Second
	}
	if r.Patience == 0 {
		r.Patience = 2 * time.Minute
	}
	return retrying{model: m, opt: r}
}

type retrying struct {
	model Model
	opt   Retry
}

func (r retrying) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		waits := backoff.NewExponentialBackOff()
		waits.InitialInterval, waits.MaxInterval, waits.Multiplier = r.opt.First, r.opt.Longest, 2
		waits.Reset()
		for attempt := 2; ; attempt++ {
			err, left := r.once(ctx, req, yield)
			if left || err == nil {
				return
			}
			wait, ok := r.wait(err, attempt, waits)
			if !ok || ctx.Err() != nil {
				yield(Event{}, err)
				return
			}
			if !yield(Event{Kind: KindRetry, Retry: &Again{Attempt: attempt, After: wait, Err: err}}, nil) {
				return
			}
			if !sleep(ctx, wait) {
				yield(Event{}, Cancelled("", ctx))
				return
			}
		}
	}
}

// once sends the request. left says that nobody listens any more.
func (r retrying) once(ctx context.Context, req Request, yield func(Event, error) bool) (err error, left bool) {
	for e, err := range r.model.Stream(ctx, req) {
		if err != nil {
			return err, false
		}
		if !yield(e, nil) {
			return nil, true
		}
	}
	return nil, false
}

// wait decides whether there is a next attempt and after how long. What the
// provider asks for is a lower bound: waiting less earns the next refusal.
func (r retrying) wait(err error, attempt int, waits backoff.BackOff) (time.Duration, bool) {
	if attempt > r.opt.Attempts || !Retryable(err) {
		return 0, false
	}
	next := waits.NextBackOff()
	var e *Error
	if errors.As(err, &e) && e.RetryAfter > 0 {
		if e.RetryAfter > r.opt.Patience {
			return 0, false
		}
		next = max(next, e.RetryAfter)
	}
	return next, next != backoff.Stop
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
