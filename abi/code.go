package abi

import "fmt"

// Code is what a host function returns instead of a length: a negative number.
// A Code is an error, so both sides compare it with errors.Is.
type Code int32

// The codes of elf/1. Their numbers never change.
const (
	ErrInternal    Code = -1  // the host failed; the log says how
	ErrDenied      Code = -2  // no grant covers this use
	ErrFault       Code = -3  // a pointer or length is outside the guest's memory
	ErrTooLarge    Code = -4  // a request, reply or value is over its limit
	ErrNotFound    Code = -5  // no such file, key, secret or tool
	ErrInvalid     Code = -6  // the request is malformed
	ErrLimit       Code = -7  // a limit of this call is used up
	ErrDeadline    Code = -8  // the call's time is over, or it was cancelled
	ErrUnsupported Code = -9  // this host does not do that
	ErrReentrant   Code = -10 // a guest may not be entered again from a host function it called
	ErrUnavailable Code = -11 // the network, the model or a program did not answer
	ErrNoReply     Code = -12 // nothing is pending to take
)

var codeNames = map[Code]string{
	ErrInternal: "internal error", ErrDenied: "denied", ErrFault: "pointer outside memory",
	ErrTooLarge: "too large", ErrNotFound: "not found", ErrInvalid: "invalid request",
	ErrLimit: "limit reached", ErrDeadline: "deadline exceeded", ErrUnsupported: "unsupported",
	ErrReentrant: "re-entrant call", ErrUnavailable: "unavailable", ErrNoReply: "no reply pending",
}

func (c Code) Error() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("code %d", int32(c))
}
