//go:build unix && !solaris && !aix

package term

import (
	"os"

	"golang.org/x/sys/unix"
)

// unbuffer lets single keys of a terminal be read, unechoed. Other than in raw
// mode, Ctrl-C and its like stay signals and lines that are written still
// begin at the left. restore gives back what was before.
func unbuffer(f *os.File) (restore func(), err error) {
	fd := int(f.Fd())
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	now := *was
	now.Lflag &^= unix.ICANON | unix.ECHO | unix.IEXTEN
	now.Iflag &^= unix.ICRNL
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setTermios, was) }, nil
}
