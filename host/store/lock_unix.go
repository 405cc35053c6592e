//go:build unix

package store

import (
	"os"
	"syscall"
)

// lock takes a lock on f, alone or with others, or fails at once. The system
// frees it when the process dies.
func lock(f *os.File, alone bool) error {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err != syscall.EINTR {
			return err
		}
	}
}
