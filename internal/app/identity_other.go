//go:build !linux && !darwin

package app

import "os"

// Here no time of a file is beyond the reach of those who may write it.
func identify(os.FileInfo) (identity, bool) { return identity{}, false }
