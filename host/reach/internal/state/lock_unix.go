//go:build unix

package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock ends when the file is closed, also by a crash.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			return err
		}
	}
}
