//go:build !linux

package outline

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }

// confine has only the Go runtime's own memory limit here, which Child set,
// and the wall clock of the host.
func confine() error { return nil }
