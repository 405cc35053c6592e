package outline

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
)

// attributes let the worker die with the host, and keep a terminal's signals
// away from it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// confine takes from this process what the kernel can take: every file, the
// network, other processes and new programs. A kernel without Landlock or
// seccomp leaves the limits.
func confine() error {
	for _, l := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_AS, workerMemory}, {unix.RLIMIT_CPU, workerCPU}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_NOFILE, 16},
	} {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.value, Max: l.value}); err != nil {
			return fmt.Errorf("limit %d: %w", l.resource, err)
		}
	}
	config := landlock.V5.BestEffort()
	if err := config.RestrictPaths(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if err := config.RestrictNet(); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if !seccomp.Supported() {
		return nil
	}
	calls := forbidden
	if runtime.GOARCH == "amd64" {
		calls = slices.Concat(forbidden, forbiddenOld)
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, Names: calls}},
		},
	})
}

// forbidden are the system calls that reach out of a process. A parser needs
// none of them. All exist on amd64 and arm64.
var forbidden = []string{
	"openat", "openat2", "open_by_handle_at", "memfd_create", "name_to_handle_at",
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
	"execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd", "kill",
	"mount", "umount2", "pivot_root", "chroot", "chdir", "setns", "unshare", "bpf", "perf_event_open",
	"keyctl", "add_key", "request_key", "io_uring_setup", "userfaultfd", "init_module", "finit_module",
	"linkat", "symlinkat", "mknodat", "mkdirat", "unlinkat", "renameat", "renameat2", "fchmodat", "fchownat", "truncate",
}

// forbiddenOld are the older forms of the same, which amd64 still has.
var forbiddenOld = []string{
	"open", "creat", "unlink", "rename", "mkdir", "rmdir", "link", "symlink", "mknod", "chmod", "chown", "lchown", "utime", "utimes", "fork", "vfork",
}
