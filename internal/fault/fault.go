// Package fault gives errors that reach a person a code, an exit status and a
// hint. The table in codes.go is the only list of them; `elfhost explain` and
// docs/errors.md are made from it.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Exit statuses. They are part of the command line's contract.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitRefused     = 3 // a needed right was denied
	ExitLimit       = 4 // budget or step limit
	ExitTryAgain    = 75
	ExitInterrupted = 130
)

// Error is an error with what a person needs to act on it. Hint is one
// sentence or command; it may be empty.
type Error struct {
	Code string
	Hint string
	Err  error
}

// New makes an Error. args are for format, as in fmt.Errorf.
func New(code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Hint: hint, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a code, or keeps the one it has.
func Wrap(code, hint string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{Code: code, Hint: hint, Err: err}
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Exit is the status for err: by its code, else by what it wraps.
func Exit(err error) int {
	var e *Error
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &e):
		if c, ok := Lookup(e.Code); ok {
			return c.Exit
		}
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitFailed
}
