package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code sorts what can go wrong between the host and a model. It is an error,
// so that errors.Is(err, model.ErrRateLimit) works on an *Error.
type Code string

// The codes.
const (
	ErrAuth        Code = "the key was not accepted"
	ErrQuota       Code = "the account has no credit left"
	ErrRateLimit   Code = "too many requests"
	ErrOverload    Code = "the provider is overloaded"
	ErrServer      Code = "the provider failed"
	ErrUnavailable Code = "the provider cannot be reached"
	ErrTruncated   Code = "the answer was cut off"
	ErrWindow      Code = "the conversation is too long for the model"
	ErrRequest     Code = "the provider refused the request"
	ErrNotFound    Code = "no such model"
	ErrMalformed   Code = "the answer cannot be read"
	ErrTooLarge    Code = "the answer is too large"
	ErrUnsupported Code = "the provider does not do that"
	ErrDenied      Code = "reaching the provider is not allowed"
	ErrCancelled   Code = "cancelled"
)

func (c Code) Error() string { return string(c) }

// Error is what every provider returns. Its text names the provider, what
// happened and the provider's own words, bounded and free of credentials.
type Error struct {
	Code       Code
	Provider   string
	Status     int           // HTTP, where there was an answer
	Message    string        // the provider's words, one line
	RetryAfter time.Duration // how long the provider asks to wait; zero: it did not say
	RequestID  string        // for the provider's support
	Err        error         // what is below, for errors.Is; its text is not shown
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Provider != "" {
		fmt.Fprintf(&b, "%s: ", e.Provider)
	}
	b.WriteString(string(e.Code))
	if e.Status != 0 {
		fmt.Fprintf(&b, " (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %s", e.Message)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " [request %s]", e.RequestID)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrRateLimit) work.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Unwrap gives what is below.
func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later.
func Retryable(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case ErrRateLimit, ErrOverload, ErrServer, ErrUnavailable, ErrTruncated:
		return true
	}
	return false
}

// Cancelled makes the error of a request whose context ended.
func Cancelled(provider string, ctx context.Context) *Error {
	return &Error{Code: ErrCancelled, Provider: provider, Err: context.Cause(ctx)}
}
