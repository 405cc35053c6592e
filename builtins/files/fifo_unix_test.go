//go:build unix

package files

import "syscall"

func mkfifo(name string) bool { return syscall.Mkfifo(name, 0o644) == nil }
