//go:build unix

package reach

import (
	"os"

	"golang.org/x/sys/unix"
)

// readNow reads what is there and does not wait for it. It gives 0 or less
// where there is nothing, or no more.
func readNow(r *os.File, b []byte) (n int) {
	conn, err := r.SyscallConn()
	if err != nil {
		return 0
	}
	_ = conn.Read(func(fd uintptr) bool {
		for {
			if n, err = unix.Read(int(fd), b); err != unix.EINTR {
				return true
			}
		}
	})
	return n
}
