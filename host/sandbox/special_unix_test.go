//go:build unix

package sandbox_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// special makes a FIFO p and a device z, /dev/zero, where that is allowed.
func special(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mkfifo(filepath.Join(dir, "p"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(filepath.Join(dir, "z"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))); err != nil {
		t.Log(err)
	}
}
