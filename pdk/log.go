package pdk

import (
	"context"

	"github.com/elfhost/elfhost/abi"
)

// Level is how important a log line is.
type Level string

// The levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Log writes a line to the host's log, which people read and the model does
// not. Lines past the call's limit are dropped. It needs no capability.
func Log(ctx context.Context, level Level, message string) {
	header := struct {
		Level Level `json:"level"`
	}{level}
	// A line that cannot be logged is nothing that a tool could act upon.
	_, _ = opLog.do(ctx, header, []byte(message), nil)
}

// Progress tells the person who waits how far the call is. It needs no
// capability, and the host may drop reports that come too fast.
func Progress(ctx context.Context, p abi.Progress) {
	_, _ = opProgress.do(ctx, p, nil, nil)
}
