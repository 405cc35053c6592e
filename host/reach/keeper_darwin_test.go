package reach

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func getsid(pid int) (int, error) { return unix.Getsid(pid) }

// ignores reports whether a process ignores a signal.
func ignores(pid int, s syscall.Signal) bool {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && p.Proc.P_sigignore&(1<<(uint(s)-1)) != 0
}
