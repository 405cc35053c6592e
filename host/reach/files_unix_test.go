//go:build unix

package reach

import (
	"errors"
	"net"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/elfhost/elfhost/abi"
)

func TestFS21FIFO(t *testing.T) {
	w := newWorld(t)
	if err := unix.Mkfifo(w.host("p"), 0o644); err != nil {
		t.Fatal(err)
	}
	names := []string{"/ws/p"}
	if unix.Mknod(w.host("s"), unix.S_IFSOCK|0o644, 0) == nil {
		names = append(names, "/ws/s")
	} else if s, err := net.Listen("unix", w.host("s")); err == nil { // in a folder with a short name only
		defer s.Close()
		names = append(names, "/ws/s")
	} else {
		t.Logf("no socket can be made here: %v", err)
	}
	before := runtime.NumGoroutine() // of an open that waits there would be no end
	for _, flag := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC} {
		for _, name := range names {
			if f, err := w.Open(bg, readWrite(t), name, flag, 0); !errors.Is(err, abi.ErrInvalid) {
				t.Errorf("%s, flag %#x: %v, %v", name, flag, f, err)
			}
		}
	}
	until(t, func() bool { return runtime.NumGoroutine() <= before })
}

func TestFS22Device(t *testing.T) {
	w := newWorld(t)
	if err := unix.Mknod(w.host("z"), unix.S_IFCHR|0o666, 1<<8|5); err != nil {
		t.Skipf("a device can be made by root only: %v", err)
	}
	if got, err := read(w, readWrite(t), "/ws/z"); !errors.Is(err, abi.ErrInvalid) || got != "" {
		t.Errorf("%q, %v", got, err)
	}
	err := w.Walk(bg, readWrite(t), "/ws", Walk{File: func(d *Folder, e Entry) error {
		if e.Name == "z" {
			t.Error("visited")
		}
		return nil
	}})
	if err != nil {
		t.Error(err)
	}
}
