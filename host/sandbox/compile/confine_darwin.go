package compile

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limit sets the hard limits of this process. macOS may refuse a bound on the
// address space that lies below what the runtime has reserved already: then
// the memory limit is the Go runtime's own, which Child set.
func limit(memory, cpuSeconds, output int64) error {
	set := func(resource int, value int64) error {
		if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: uint64(value), Max: uint64(value)}); err != nil {
			return fmt.Errorf("resource %d: %w", resource, err)
		}
		return nil
	}
	_ = set(unix.RLIMIT_AS, memory)
	return errors.Join(set(unix.RLIMIT_CPU, cpuSeconds), set(unix.RLIMIT_FSIZE, output), set(unix.RLIMIT_CORE, 0))
}

func confine(string) error { return nil }

// Confinement is empty: nothing but its limits holds the compiler here.
func Confinement() []string { return nil }
