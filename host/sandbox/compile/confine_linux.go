package compile

import (
	"errors"
	"fmt"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// attributes let the child die with the host, and keep a terminal's signals
// away from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// limit sets the hard limits of this process.
func limit(memory, cpuSeconds, output int64) error {
	var errs error
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_AS, uint64(memory)}, {unix.RLIMIT_CPU, uint64(cpuSeconds)}, {unix.RLIMIT_FSIZE, uint64(output)},
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 64},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			errs = errors.Join(errs, fmt.Errorf("resource %d: %w", l.resource, err))
		}
	}
	return errs
}

// confine takes everything away that the kernel can take: every file but dir,
// the network, and starting programs. A kernel without Landlock or seccomp
// leaves the limits.
func confine(dir string) error {
	config := landlock.V5.BestEffort()
	if err := config.RestrictPaths(landlock.RWDirs(dir)); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := config.RestrictNet(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if !seccomp.Supported() {
		return nil
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, Names: forbidden}},
		},
	})
}

// forbidden are the system calls that a compiler has no use for and that reach
// out of the process. All exist on amd64 and arm64.
var forbidden = []string{
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
	"execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd",
	"kill", "tkill", "mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "bpf", "perf_event_open",
	"keyctl", "add_key", "request_key", "io_uring_setup", "userfaultfd", "init_module", "finit_module",
	"linkat", "symlinkat", "mknodat",
}
