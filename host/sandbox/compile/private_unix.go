//go:build unix

package compile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Private refuses a folder of compiled code in which another user can put
// something. A checksum that lies beside the code says that the code is whole,
// not who wrote it: only the folder does. root's own folder is accepted, since
// root can do everything anyway. A folder that is not there is fine: who needs
// one makes it with 0700.
func Private(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %q belongs to the user with the number %d; remove it, or use another folder", ErrShared, dir, st.Uid)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: %q may be written to by other users; empty it, and then: chmod go-w %q", ErrShared, dir, dir)
	}
	return nil
}
