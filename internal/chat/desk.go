package chat

import (
	"context"
	"errors"
	"sync"
)

// desk says who has the keys. The line that a person is writing gives way to
// questions and to what they should be told, and is taken up again with what
// was written. The zero value is ready.
type desk struct {
	mu     sync.Mutex
	free   *sync.Cond
	asking int
	line   context.CancelCauseFunc // ends the reading of a line; nil: none is read
}

// errAside ends the reading of a line that is to be taken up again.
var errAside = errors.New("the line gives way")

func (d *desk) lock() {
	d.mu.Lock()
	if d.free == nil {
		d.free = sync.NewCond(&d.mu)
	}
}

// write reads a line, once no question stands. errAside says that it gave way.
func (d *desk) write(ctx context.Context, read func(context.Context) (string, error)) (string, error) {
	d.lock()
	for d.asking > 0 {
		d.free.Wait()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	d.line = cancel
	d.mu.Unlock()
	defer func() {
		d.lock()
		d.line = nil
		d.free.Broadcast()
		d.mu.Unlock()
		cancel(nil)
	}()
	return read(ctx)
}

// question takes the keys for a question; done gives them back.
func (d *desk) question() (done func()) {
	d.lock()
	defer d.mu.Unlock()
	d.asking++
	for d.line != nil {
		d.line(errAside)
		d.free.Wait()
	}
	return func() {
		d.lock()
		defer d.mu.Unlock()
		d.asking--
		d.free.Broadcast()
	}
}

// nudge ends the reading of a line, if one is read.
func (d *desk) nudge() {
	d.lock()
	defer d.mu.Unlock()
	if d.line != nil {
		d.line(errAside)
	}
}
