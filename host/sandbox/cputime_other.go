//go:build !linux

package sandbox

import "time"

// threadTime is not known here: a receipt estimates.
func threadTime() (time.Duration, bool) { return 0, false }
