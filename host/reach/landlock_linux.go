package reach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// The Landlock rung has no namespaces: other processes can be seen, though not
// looked into, and protected names inside a writable folder stay writable,
// because Landlock rules only ever add. It is the last rung for that.

func landlockMissing() string {
	if _, err := ll.LandlockGetABIVersion(); err != nil {
		return "the kernel has no Landlock (" + err.Error() + ")"
	}
	return ""
}

// landlocked prepares the folder that stands in for a private /tmp and home.
func landlocked(p Program, system []bind) (*exec.Cmd, func(), error) {
	dir, err := os.MkdirTemp("", "elf-sandbox-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { os.RemoveAll(dir) }
	p.Env = append(append([]string(nil), p.Env...), "TMPDIR="+dir, "HOME="+dir)
	p.Write = append(append([]string(nil), p.Write...), dir)
	j := plan(Landlock, p, system)
	j.Empty = nil
	cmd, clean, err := helper(j)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return cmd, func() { clean(); remove() }, nil
}

// enterLandlock confines this process and becomes the program.
func enterLandlock(j jail) error {
	if err := os.Chdir(j.Dir); err != nil {
		return err
	}
	if err := withoutCore(); err != nil {
		return err
	}
	// Root's capabilities would look into other processes past Landlock.
	if err := renounce(); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	if err := landlock.V8.BestEffort().RestrictPaths(landlockRules(j)...); err != nil {
		return fmt.Errorf("restricting files: %w", err)
	}
	if err := landlock.V8.BestEffort().RestrictScoped(); err != nil {
		return fmt.Errorf("restricting signals and sockets: %w", err)
	}
	if err := filter(j); err != nil {
		return fmt.Errorf("restricting system calls: %w", err)
	}
	return fmt.Errorf("starting %q: %w", j.Argv[0], syscall.Exec(j.Argv[0], j.Argv, os.Environ()))
}

func landlockRules(j jail) []landlock.Rule {
	rules := []landlock.Rule{
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx").WithIoctlDev().IgnoreIfMissing(),
		landlock.RWDirs("/dev/pts", "/dev/shm").WithIoctlDev().IgnoreIfMissing(),
		landlock.RODirs("/proc").IgnoreIfMissing(), // another process's environment stays closed: Landlock forbids to trace it
	}
	for _, b := range j.Binds {
		path := b.Path
		if b.Target != "" {
			if path = b.Target; !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(b.Path), path)
			}
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		rules = append(rules, landlockRule(path, info.IsDir(), b.Write))
	}
	return rules
}

func landlockRule(path string, folder, write bool) landlock.Rule {
	switch {
	case folder && write:
		return landlock.RWDirs(path).WithRefer()
	case folder:
		return landlock.RODirs(path)
	case write:
		return landlock.RWFiles(path)
	}
	return landlock.ROFiles(path)
}

// filter closes what Landlock leaves open: every kind of socket but local ones
// (all of them where the kernel cannot confine abstract names), io_uring, which
// would go round this filter, and calls that reach other processes or the kernel.
func filter(j jail) error {
	deny := []string{
		"io_uring_setup", "io_uring_enter", "io_uring_register", "ptrace", "process_vm_readv", "process_vm_writev",
		"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key", "kexec_load", "kexec_file_load",
		"init_module", "finit_module", "delete_module", "mount", "umount2", "pivot_root", "move_mount", "open_tree", "fsopen",
		"unshare", "setns", "swapon", "swapoff", "reboot", "open_by_handle_at", "syslog", "sethostname", "setdomainname",
	}
	groups := []seccomp.SyscallGroup{{Action: seccomp.ActionErrno, Names: deny}}
	if !j.Network {
		keep := uint64(unix.AF_UNIX)
		if v, err := ll.LandlockGetABIVersion(); err != nil || v < 6 {
			keep = 1 << 31 // no family at all
		}
		groups = append(groups, seccomp.SyscallGroup{
			Action: seccomp.ActionErrno,
			NamesWithCondtions: []seccomp.NameWithConditions{{
				Name:       "socket",
				Conditions: []seccomp.Condition{{Argument: 0, Operation: seccomp.NotEqual, Value: keep}},
			}},
		})
	}
	return seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy:     seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: groups},
	})
}
