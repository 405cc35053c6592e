package compile

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
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
// the network, starting programs, and signals to other processes. A kernel
// without Landlock or seccomp leaves the limits: Confinement says which.
func confine(dir string) error {
	config := landlock.V6.BestEffort()
	if err := config.Restrict(landlock.RWDirs(dir)); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	if !seccomp.Supported() {
		return nil
	}
	names := forbidden
	if runtime.GOARCH == "amd64" { // elsewhere these are not
		names = append(names[:len(names):len(names)], "fork", "vfork")
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls: []seccomp.SyscallGroup{
				{Action: seccomp.ActionErrno, Names: names},
				{Action: seccomp.ActionErrno, NamesWithCondtions: elsewhere(os.Getpid())},
				{Action: seccomp.ActionErrno, NamesWithCondtions: forks},
				// Its flags lie in memory, where no filter sees them. The C library
				// makes threads by clone where this is not there.
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
			},
		},
	})
}

// forks are what would make a process rather than a thread: it would outlive
// the wall clock, which ends the compiler alone.
var forks = []seccomp.NameWithConditions{{Name: "clone", Conditions: seccomp.ArgumentConditions{
	{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD},
}}}

// elsewhere forbids what the Go runtime does to its own process when it is
// meant for another one: signals to threads (its preemption), and limits.
func elsewhere(self int) []seccomp.NameWithConditions {
	not := func(pids ...int) seccomp.ArgumentConditions {
		var all seccomp.ArgumentConditions
		for _, pid := range pids {
			all = append(all, seccomp.Condition{Argument: 0, Operation: seccomp.NotEqual, Value: uint64(pid)})
		}
		return all
	}
	return []seccomp.NameWithConditions{
		{Name: "tgkill", Conditions: not(self)},
		{Name: "prlimit64", Conditions: not(0, self)},
	}
}

// Confinement says what holds the compiler on this machine beside its limits.
func Confinement() []string {
	var out []string
	if v, err := landlocksys.LandlockGetABIVersion(); err == nil && v > 0 {
		out = append(out, fmt.Sprintf("Landlock %d (files, network)", v))
	}
	if seccomp.Supported() {
		out = append(out, "seccomp")
	}
	return out
}

// forbidden are the system calls that a compiler has no use for and that reach
// out of the process. All exist on amd64 and arm64.
var forbidden = []string{
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg",
	"execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "pidfd_getfd",
	"kill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal",
	"setpriority", "ioprio_set", "sched_setparam", "sched_setscheduler", "sched_setattr", "process_madvise", "migrate_pages", "move_pages", "kcmp",
	"mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "fsopen", "fsmount", "move_mount", "open_tree", "mount_setattr",
	"open_by_handle_at", "quotactl", "swapon", "reboot", "kexec_load", "acct", "settimeofday", "clock_settime", "adjtimex", "sethostname",
	"shmget", "semget", "msgget", "mq_open",
	"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "io_uring_setup", "userfaultfd",
	"init_module", "finit_module", "delete_module", "fanotify_init", "linkat", "symlinkat", "mknodat",
}
