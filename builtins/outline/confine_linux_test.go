package outline

import (
	"errors"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemTries are what a parser that was taken over could do on Linux without
// Go's own library.
func systemTries(file string) map[string]func() error {
	tries := map[string]func() error{
		"take more memory than it may": func() error {
			_, err := syscall.Mmap(-1, 0, workerMemory+1<<30, syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
			return err
		},
	}
	if runtime.GOARCH != "amd64" {
		return tries
	}
	for name, number := range map[string]uintptr{"open": 2, "creat": 85, "unlink": 87, "chmod": 90} {
		tries["call "+name] = func() error {
			path, err := unix.BytePtrFromString(file)
			if err != nil {
				return err
			}
			_, _, errno := syscall.Syscall(number, uintptr(unsafe.Pointer(path)), 0, 0)
			if errors.Is(errno, unix.EPERM) { // of the filter: Landlock says EACCES
				return errno
			}
			return nil
		}
	}
	return tries
}
