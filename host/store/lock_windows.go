package store

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock takes a lock on f, alone or with others, or fails at once. The system
// frees it when the process dies.
func lock(f *os.File, alone bool) error {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if alone {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, new(windows.Overlapped))
}
