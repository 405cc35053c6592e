package agent

import (
	"context"
	"sync"

	"github.com/elfhost/elfhost/host"
)

// scope is what the context of a call knows of the run around it.
type scope struct {
	loop    *Loop
	run     *run
	session *Session
	step    int
	events  chan<- Event
	over    <-chan struct{} // closed when nobody reads events any more

	mu    sync.Mutex
	ended bool
	last  string
}

type scopeKey struct{}

func scopeOf(ctx context.Context) *scope {
	s, _ := ctx.Value(scopeKey{}).(*scope)
	return s
}

// Emit shows an event to whoever watches the run that ctx belongs to: a
// sub-agent's, a question's. It waits until the front end took it, and drops
// it when the step of the call is over or ctx is no run's.
func Emit(ctx context.Context, e Event) {
	s := scopeOf(ctx)
	if s == nil {
		return
	}
	if e.Step == 0 {
		e.Step = s.step
	}
	select {
	case s.events <- e:
	case <-s.over:
	case <-ctx.Done():
	}
}

// End asks the run that ctx belongs to to stop after the calls of this step,
// with StopYield and the message. It is how a tool ends a loop. It reports
// whether there is such a run.
func End(ctx context.Context, message string) bool {
	s := scopeOf(ctx)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.last = true, message
	return true
}

// Current is the session whose run ctx belongs to, nil outside of a run.
func Current(ctx context.Context) *Session {
	if s := scopeOf(ctx); s != nil {
		return s.session
	}
	return nil
}

// Tools is the registry of the run that ctx belongs to, nil outside of a run.
// A tool that a sub-agent inherited finds the sub-agent's here, not its owner's.
func Tools(ctx context.Context) *host.Registry {
	if s := scopeOf(ctx); s != nil {
		return s.loop.Tools
	}
	return nil
}
