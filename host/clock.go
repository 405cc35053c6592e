package host

import (
	"context"
	"sync"
	"time"
)

// clock measures how long a call waits for a person. A wait inside a nested
// call is a wait of the outer ones too.
type clock struct {
	outer *clock
	depth int // of calls that plugins make

	mu    sync.Mutex
	n     int // waits that are going on: several tools of a call may ask at once
	since time.Time
	sum   time.Duration
}

type clockKey struct{}

// within starts the clock of a call inside ctx.
func within(ctx context.Context, byPlugin bool) (context.Context, *clock) {
	c := &clock{}
	if outer, ok := ctx.Value(clockKey{}).(*clock); ok {
		c.outer, c.depth = outer, outer.depth
	}
	if byPlugin {
		c.depth++
	}
	return context.WithValue(ctx, clockKey{}, c), c
}

// wait marks the begin of a wait; the function it returns, its end.
func (c *clock) wait() (done func()) {
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	if c.n++; c.n == 1 {
		c.since = time.Now()
	}
	c.mu.Unlock()
	outer := c.outer.wait()
	return func() {
		outer()
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.n--; c.n == 0 {
			c.sum += time.Since(c.since)
		}
	}
}

// Waiting marks, until done is called, that the call of ctx waits for a person:
// its time stands still.
func Waiting(ctx context.Context) (done func()) {
	c, _ := ctx.Value(clockKey{}).(*clock)
	return c.wait()
}

func (c *clock) waited() time.Duration {
	if c == nil {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n > 0 {
		return c.sum + time.Since(c.since)
	}
	return c.sum
}
