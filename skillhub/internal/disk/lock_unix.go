//go:build unix

package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) (held bool, err error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
	case nil:
		return true, nil
	case unix.EWOULDBLOCK, unix.EINTR:
		return false, nil
	default:
		return false, err
	}
}
