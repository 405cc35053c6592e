package reach

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// command puts a program into the sandbox.
func (s Sandbox) command(p Program) (*exec.Cmd, func(), error) {
	if s.Kind != "" && slices.Contains(folders(p), "/") {
		// Every other path would be below it, the kernel's own files too.
		return nil, nil, fmt.Errorf("no sandbox holds a program whose workspace is the root folder: work in a folder below it: %w", abi.ErrDenied)
	}
	switch s.Kind {
	case "":
		return plain(p)
	case Bubblewrap:
		return s.bubblewrap(plan(s.Kind, p, s.system))
	case Namespaces:
		return helper(plan(s.Kind, p, s.system))
	case Landlock:
		return landlocked(p, s.system)
	}
	return nil, nil, fmt.Errorf("there is no sandbox %q", s.Kind)
}

// tryFor is how long one rung has to show that it works. A machine that is only
// busy must not end up on a weaker one.
const tryFor = 20 * time.Second

// try runs the true program in a sandbox, with and without a network.
func try(ctx context.Context, kind string) (Sandbox, string, string) {
	s := Sandbox{Kind: kind, system: systemBinds()}
	fix := ""
	switch kind {
	case Bubblewrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return Sandbox{}, "bwrap is not installed", "install the package bubblewrap"
		}
		s.bwrap = path
		fix = userNamespaceFix()
	case Namespaces:
		fix = userNamespaceFix()
	case Landlock:
		if why := landlockMissing(); why != "" {
			return Sandbox{}, why, "use Linux 5.13 or later with landlock among its security modules (lsm=)"
		}
	}
	program, err := lookPath("true", []string{"PATH=/usr/bin:/bin:/run/current-system/sw/bin"})
	if err != nil {
		return Sandbox{}, err.Error(), ""
	}
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	cmd, clean, err := s.command(Program{Argv: []string{program}, Dir: "/usr", Env: []string{"PATH=/usr/bin:/bin"}, ReadOnly: true})
	if err != nil {
		return Sandbox{}, err.Error(), fix
	}
	defer clean()
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = tryFor
	if err := cmd.Start(); err != nil {
		return Sandbox{}, err.Error(), fix
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return Sandbox{}, strings.TrimSpace(firstLine(said.String()) + " (" + err.Error() + ")"), fix
	}
	return s, "", ""
}

// sandboxFacts is a digest of what decides which rung works: the kernel and its
// switches, who runs and with what, where, and the programs.
func sandboxFacts() string {
	h := sha256.New()
	for _, file := range []string{
		"/proc/sys/kernel/random/boot_id", "/proc/version", "/proc/self/cgroup", "/proc/self/attr/current", "/proc/self/uid_map", "/sys/kernel/security/lsm",
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/user/max_user_namespaces",
	} {
		data, _ := os.ReadFile(file) // what is not there is a fact as well
		fmt.Fprintf(h, "%s %q\n", file, data)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(status)) {
		if name, _, _ := strings.Cut(line, ":"); slices.Contains([]string{"Uid", "Gid", "CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp", "Seccomp_filters"}, name) {
			fmt.Fprint(h, line)
		}
	}
	for _, ns := range []string{"user", "mnt", "pid", "net", "cgroup"} {
		link, _ := os.Readlink("/proc/self/ns/" + ns)
		fmt.Fprintln(h, link)
	}
	exe, _ := self()
	bwrap, _ := exec.LookPath("bwrap")
	for _, file := range []string{exe, bwrap, "/usr/bin/true", "/bin/true"} {
		var st syscall.Stat_t
		_ = syscall.Stat(file, &st)
		fmt.Fprintln(h, file, st.Dev, st.Ino, st.Mode, st.Uid, st.Size, st.Mtim, st.Ctim)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// userNamespaceFix looks at the switches by which distributions turn off what
// bubblewrap and the namespaces need.
func userNamespaceFix() string {
	for file, fix := range map[string]string{
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for this program",
		"/proc/sys/kernel/unprivileged_userns_clone":             "sysctl kernel.unprivileged_userns_clone=1",
		"/proc/sys/user/max_user_namespaces":                     "sysctl user.max_user_namespaces=15000",
	} {
		data, err := os.ReadFile(file)
		if v := strings.TrimSpace(string(data)); err == nil && (v == "0") != strings.Contains(file, "apparmor") {
			return fix
		}
	}
	return "in a container, allow user namespaces (for Docker: --security-opt seccomp=unconfined, or a profile that permits clone and mount)"
}

// bubblewrap turns a jail into arguments. The launcher itself starts with the
// program's environment: it is what /proc/1/environ shows.
func (s Sandbox) bubblewrap(j jail) (*exec.Cmd, func(), error) {
	args := []string{
		"--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "sandbox",
		"--dev", "/dev", "--proc", "/proc",
	}
	if j.Network {
		args = append(args, "--share-net")
	}
	if os.Geteuid() == 0 {
		for _, p := range []string{"/proc/sys", "/proc/fs"} { // bubblewrap itself covers the rest of kernelKnobs
			args = append(args, "--ro-bind-try", p, p)
		}
	}
	for _, e := range j.Empty {
		args = append(args, "--tmpfs", e)
	}
	var files []*os.File
	for _, b := range j.Binds {
		switch {
		case b.Target != "":
			args = append(args, "--symlink", b.Target, b.Path)
		case b.copies != nil:
			var more []string
			more, files = copied(b.copies, files)
			args = append(args, more...)
		case b.Write:
			args = append(args, "--bind", b.Path, b.Path)
		default:
			args = append(args, "--ro-bind", b.Path, b.Path)
		}
	}
	args = append(args, "--remount-ro", "/", "--chdir", j.Dir, "--")
	cmd := exec.Command(s.bwrap, append(args, j.Argv...)...)
	cmd.Env = j.Env
	cmd.ExtraFiles = files
	return cmd, func() { closeFiles(files) }, nil
}

// kernelKnobs are places in /proc by which root changes the running kernel:
// as real root they stay writable inside, whatever capabilities are dropped.
var kernelKnobs = [...]string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"}

// helper is this program again, told over a pipe what to do: neither its
// arguments nor its environment show it.
func helper(j jail) (*exec.Cmd, func(), error) {
	exe, err := self()
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(j)
	if err != nil {
		return nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	go func() {
		_, _ = w.Write(data) // a helper that died early leaves a broken pipe
		w.Close()
	}()
	cmd := exec.Command(exe, SandboxVerb, j.Kind)
	cmd.Env, cmd.Dir = j.Env, "/"
	cmd.ExtraFiles = []*os.File{r}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if j.Kind == Namespaces {
		unshare(cmd.SysProcAttr, j.Network)
	}
	return cmd, func() { r.Close() }, nil
}
