package state

import (
	"os"

	"golang.org/x/sys/windows"
)

// lock ends when the file is closed, also by a crash.
func lock(f *os.File) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, new(windows.Overlapped))
}
