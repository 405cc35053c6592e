//go:build unix

package audit

import (
	"os"
	"syscall"
)

// lock waits for the lock of other processes on f; it is theirs again after
// unlock, or when this process dies.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
