//go:build !linux && !darwin && !windows

package compile

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }

// limit has only the Go runtime's own memory limit here, which Child set, and
// the wall clock of the parent.
func limit(memory, cpuSeconds, output int64) error { return nil }

func confine(string) error { return nil }

// Confinement is empty: nothing but its limits holds the compiler here.
func Confinement() []string { return nil }
