//go:build unix

package term

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readable waits until f has input, at most d.
func readable(f *os.File, d time.Duration) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, max(1, int(d/time.Millisecond)))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return n > 0, err
}
