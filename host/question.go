package host

import (
	"context"
	"encoding/json"
)

// question is one that is being asked. Calls that would ask the same wait for
// its answer; it is withdrawn when nobody waits any more.
type question struct {
	done    chan struct{}
	answer  Answer
	err     error
	waiting int
	cancel  context.CancelFunc
}

// put asks through p, or joins the same question.
func (g *Gate) put(ctx context.Context, p Approver, a Ask) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	defer Waiting(ctx)()
	key := identity(a)
	q := g.join(ctx, key, p, a)
	select {
	case <-q.done:
		return q.answer, q.err
	case <-ctx.Done():
		g.state.mu.Lock()
		defer g.state.mu.Unlock()
		if q.waiting--; q.waiting == 0 {
			q.cancel()
			g.forget(key, q)
		}
		return Answer{}, ctx.Err()
	}
}

func (g *Gate) join(ctx context.Context, key string, p Approver, a Ask) *question {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	if q, ok := g.state.asking[key]; ok {
		q.waiting++
		return q
	}
	q := &question{done: make(chan struct{}), waiting: 1}
	if g.state.asking == nil {
		g.state.asking = map[string]*question{}
	}
	g.state.asking[key] = q
	// The question outlives the call that put it first, as long as others wait.
	asking, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q.cancel = cancel
	go func() {
		defer cancel()
		q.answer, q.err = approve(asking, p, a)
		g.state.mu.Lock()
		g.forget(key, q)
		g.state.mu.Unlock()
		close(q.done)
	}()
	return q
}

// forget is called with the lock held.
func (g *Gate) forget(key string, q *question) {
	if g.state.asking[key] == q {
		delete(g.state.asking, key)
	}
}

func approve(ctx context.Context, p Approver, a Ask) (answer Answer, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = Answer{}, panicError{r}
		}
	}()
	return p.Approve(ctx, a)
}

// identity is equal for questions that show the same.
func identity(a Ask) string {
	args := a.Call.Args
	if a.Use != nil {
		args = nil
	}
	key, err := json.Marshal([]any{a.Spec.Name, a.Spec.Origin, a.Call.Caller.Plugin, a.Call.Caller.Asked, string(args), a.Use})
	if err != nil {
		return a.Call.ID + "\x00" + a.Spec.Name
	}
	return string(key)
}
