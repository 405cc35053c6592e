//go:build unix

package compile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of an open file if nobody has it. Closing the file
// gives it back.
func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// release removes the file while nobody else has its lock, and gives it back.
func release(f *os.File) {
	os.Remove(f.Name())
	f.Close()
}
