//go:build unix

package strict

import (
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits for an exclusive lock that other processes honour. The file stays:
// removing it would let two holders lock different files of one name.
func Lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
