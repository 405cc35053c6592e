package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/meter"
)

// TrapError is the end of a guest by its own fault: an unreachable
// instruction, memory out of bounds, a stack that is too deep.
type TrapError struct {
	Reason string // "unreachable", "out of bounds memory access"…
	Func   string // the innermost function with a name, "" when there is none
}

func (e *TrapError) Error() string {
	if e.Func == "" {
		return fmt.Sprintf("the module trapped: %s", e.Reason)
	}
	return fmt.Sprintf("the module trapped in %s: %s", e.Func, e.Reason)
}

// ExitError is the end of a guest by proc_exit. A plugin has no reason to exit
// in a call, whatever the code.
type ExitError struct{ Code uint32 }

func (e *ExitError) Error() string {
	return fmt.Sprintf("the module exited with code %d in the middle of a call", e.Code)
}

// LimitError is the end of a guest at one of its limits. It matches
// abi.ErrLimit, and abi.ErrDeadline for the limit on time.
type LimitError struct {
	Limit string // "time", "memory", "host calls", "fuel", "call depth", "output", "recording"
	Max   string // the limit as people write it
}

func (e *LimitError) Error() string {
	if e.Max == "" {
		return fmt.Sprintf("the call reached its limit on %s", e.Limit)
	}
	return fmt.Sprintf("the call reached its limit on %s (%s)", e.Limit, e.Max)
}

// Is matches the code of the limit.
func (e *LimitError) Is(target error) bool {
	return target == abi.ErrLimit || e.Limit == limitTime && target == abi.ErrDeadline
}

const (
	limitTime      = "time"
	limitMemory    = "memory"
	limitHostCalls = "host calls"
	limitOutput    = "output"
	limitLog       = "log"
	limitFuel      = "fuel"
	limitDepth     = "call depth"
	limitRecording = "recording"
)

func timeLimit(d time.Duration) error { return &LimitError{limitTime, d.String()} }

// ABIError says how a module breaks docs/abi.md. It is the module's fault, and
// its author's to mend.
type ABIError struct{ What string }

func (e *ABIError) Error() string {
	return "the module does not follow elf/1: " + e.What + " (docs/abi.md)"
}

func abiErrorf(format string, args ...any) error {
	return &ABIError{fmt.Sprintf(format, args...)}
}

// guestError translates what the runtime says of a call that did not return.
// ctx is that of the call: its cause, set by a limit, comes first.
func guestError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	var (
		limit *LimitError
		exit  *sys.ExitError
		diff  *Difference
		bug   *HostError
		ended *Ended
	)
	switch {
	case errors.As(err, &diff):
		return diff
	case errors.As(err, &bug):
		return bug
	case errors.As(err, &limit):
		return limit
	case errors.As(err, &ended):
		return ended.Err
	case errors.Is(err, meter.ErrFuel):
		return &LimitError{Limit: limitFuel}
	case errors.Is(err, meter.ErrDepth):
		return &LimitError{Limit: limitDepth}
	case errors.Is(err, context.DeadlineExceeded) && callOf(ctx) != nil && callOf(ctx).watch.expired():
		return timeLimit(callOf(ctx).limits.Time)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded): // the caller's, before its timer
		return context.DeadlineExceeded
	case errors.As(err, &exit):
		return &ExitError{exit.ExitCode()}
	}
	return trapOf(err)
}

// trapOf reads the runtime's text: a first line with the reason, then a stack
// of frames such as "\t.main.work(i32) i32".
func trapOf(err error) error {
	text := err.Error()
	head, stack, _ := strings.Cut(text, "\nwasm stack trace:\n")
	reason, ok := strings.CutPrefix(head, "wasm error: ")
	if !ok {
		reason = strings.SplitN(head, "\n", 2)[0]
		reason = strings.TrimSuffix(reason, " (recovered by wazero)")
	}
	t := &TrapError{Reason: oneLine(reason)}
	if strings.Contains(reason, "stack overflow") {
		return &LimitError{Limit: limitDepth}
	}
	for line := range strings.Lines(stack) {
		name := strings.TrimSpace(line)
		if i := strings.IndexByte(name, '('); i > 0 {
			name = name[:i]
		}
		if name = strings.TrimPrefix(name, "."); name != "" && !strings.HasPrefix(name, "$") {
			t.Func = oneLine(name)
			break
		}
	}
	return t
}

// oneLine makes a guest's text fit for an error: printable, and short.
func oneLine(s string) string {
	s = printable(s)
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// code is what the guest is told of err.
func code(err error) abi.Code {
	var c abi.Code
	switch {
	case errors.As(err, &c):
		return c
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return abi.ErrDeadline
	case errors.Is(err, errors.ErrUnsupported):
		return abi.ErrUnsupported
	}
	return abi.ErrInternal
}
