package term

import (
	"context"
	"errors"
	"os"
	"time"

	xterm "golang.org/x/term"
)

// ErrInterrupt is Ctrl-C typed while a question had the terminal.
var ErrInterrupt = errors.New("interrupted")

// errIdle says that no key came in time.
var errIdle = errors.New("no key")

// keyboard reads single keys from a terminal. It takes the terminal only
// while a question stands, so that a program started in between has it.
type keyboard struct {
	f     *os.File
	state *xterm.State
}

func (k *keyboard) take() error {
	st, err := xterm.MakeRaw(int(k.f.Fd()))
	k.state = st
	return err
}

func (k *keyboard) giveBack() {
	if k.state != nil {
		_ = xterm.Restore(int(k.f.Fd()), k.state)
		k.state = nil
	}
}

// pollStep bounds how late a cancelled context is noticed.
const pollStep = 50 * time.Millisecond

// key waits for one byte, at most d.
func (k *keyboard) key(ctx context.Context, d time.Duration) (byte, error) {
	end := time.Now().Add(d)
	for {
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		left := time.Until(end)
		ready, err := readable(k.f, min(left, pollStep))
		if err != nil {
			return 0, err
		}
		if !ready {
			if left <= 0 { // only after a look: a busy machine may have kept this from one while a key came
				return 0, errIdle
			}
			continue
		}
		var b [1]byte
		if _, err := k.f.Read(b[:]); err != nil {
			return 0, err
		}
		if b[0] == 3 {
			return 0, ErrInterrupt
		}
		return b[0], nil
	}
}

// quiet throws away what was typed before the question could be read: all that
// is there, and all that comes until no key came for d, at most for limit.
// Flushing alone is not enough: a key in flight would answer.
func (k *keyboard) quiet(ctx context.Context, d, limit time.Duration) error {
	end := time.Now().Add(limit)
	for time.Now().Before(end) {
		if _, err := k.key(ctx, min(d, time.Until(end))); err != nil {
			if errors.Is(err, errIdle) {
				return nil
			}
			return err
		}
	}
	for { // still typing at the limit: drop what has arrived, then listen
		if _, err := k.key(ctx, time.Millisecond); err != nil {
			if errors.Is(err, errIdle) {
				return nil
			}
			return err
		}
	}
}
