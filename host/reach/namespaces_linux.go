package reach

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// unshare asks for the namespaces, and for the capabilities in them that the
// helper needs to furnish them. The user keeps its own number inside.
func unshare(a *syscall.SysProcAttr, network bool) {
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
}

// enterNamespaces furnishes the new namespaces, gives every right up, and is
// the first process of them until the program ends; the kernel then ends the rest.
func enterNamespaces(j jail) (int, error) {
	if err := furnish(j); err != nil {
		return 0, err
	}
	_ = unix.Sethostname([]byte("sandbox"))
	if !j.Network {
		_ = loopbackUp() // a test server on 127.0.0.1 inside is nobody's business
	}
	if err := renounce(); err != nil {
		return 0, fmt.Errorf("giving up capabilities: %w", err)
	}
	if err := withoutCore(); err != nil {
		return 0, err
	}
	// Caught, not ignored: what is ignored here would be ignored by the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	cmd := exec.Command(j.Argv[0])
	cmd.Args, cmd.Env, cmd.Dir = j.Argv, j.Env, j.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return 0, err
		case pid == cmd.Process.Pid && status.Signaled():
			return 128 + int(status.Signal()), nil // the first process of a namespace cannot end itself by a signal
		case pid == cmd.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}

const (
	stage   = "/tmp" // hidden by a new file system, on which the rest is built
	newRoot = stage + "/new"
	oldRoot = stage + "/old"
)

// furnish builds the file system of the jail and makes it the root.
func furnish(j jail) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	// The pipes behind the program's streams stay; its folders are reached anew.
	if err := tmpfs(stage, "0755"); err != nil {
		return err
	}
	for _, dir := range []string{newRoot, oldRoot} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	if err := unix.PivotRoot(stage, oldRoot); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	const from, to = "/old", "/new"
	if err := unix.Mount(to, to, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if err := devices(from, to+"/dev"); err != nil {
		return fmt.Errorf("making /dev: %w", err)
	}
	if err := kernelFiles(to + "/proc"); err != nil {
		return fmt.Errorf("making /proc: %w", err)
	}
	for _, e := range j.Empty {
		if err := os.MkdirAll(to+e, 0o755); err != nil {
			return err
		}
		if err := tmpfs(to+e, "0700"); err != nil {
			return err
		}
	}
	for _, b := range j.Binds {
		if err := b.mount(from, to); err != nil {
			return fmt.Errorf("showing %s: %w", b.Path, err)
		}
	}
	if err := os.Chdir(to); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("letting go of the host's files: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

func tmpfs(at, mode string) error {
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode="+mode); err != nil {
		return fmt.Errorf("mounting a tmpfs: %w", err)
	}
	return nil
}

// mount shows one path of the old root in the new one.
func (b bind) mount(from, to string) error {
	dst := to + b.Path
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	if b.Target != "" {
		return os.Symlink(b.Target, dst)
	}
	// Links in the old root are relative to the old root, not to this one.
	src, err := inOldRoot(from, b.Path)
	if err != nil {
		return err
	}
	info, err := os.Stat(src)
	if err != nil {
		return err
	}
	if err := makeTarget(dst, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(src, dst, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !b.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	return unix.MountSetattr(unix.AT_FDCWD, dst, unix.AT_RECURSIVE, attr)
}

func makeTarget(dst string, folder bool) error {
	if folder {
		return os.MkdirAll(dst, 0o755)
	}
	f, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY, 0o444)
	if errors.Is(err, os.ErrExist) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EACCES) {
		return nil // a file of a folder that is shown already
	}
	if err != nil {
		return err
	}
	return f.Close()
}

func inOldRoot(from, p string) (string, error) {
	for range maxLinks {
		info, err := os.Lstat(from + p)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			return from + p, err
		}
		target, err := os.Readlink(from + p)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(p), target)
		}
		p = target
	}
	return "", syscall.ELOOP
}

// devices makes a /dev of what is harmless.
func devices(from, dev string) error {
	if err := os.Mkdir(dev, 0o755); err != nil {
		return err
	}
	if err := tmpfs(dev, "0755"); err != nil {
		return err
	}
	for _, n := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		if err := makeTarget(dev+"/"+n, false); err != nil {
			return err
		}
		if err := unix.Mount(from+"/dev/"+n, dev+"/"+n, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	for n, target := range map[string]string{"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"} {
		if err := os.Symlink(target, dev+"/"+n); err != nil {
			return err
		}
	}
	for _, n := range []string{"shm", "pts"} {
		if err := os.Mkdir(dev+"/"+n, 0o755); err != nil {
			return err
		}
	}
	if err := tmpfs(dev+"/shm", "0700"); err != nil {
		return err
	}
	return unix.Mount("devpts", dev+"/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
}

// kernelFiles mounts /proc of the new process namespace, with the switches of
// the running kernel read-only: as real root they would not be.
func kernelFiles(proc string) error {
	if err := os.Mkdir(proc, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("proc", proc, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	for _, k := range kernelKnobs {
		at := proc + strings.TrimPrefix(k, "/proc")
		err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, "")
		if err == unix.ENOENT {
			continue
		}
		if err == nil {
			err = unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		}
		if err != nil {
			return fmt.Errorf("protecting %s: %w", k, err)
		}
	}
	return nil
}

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// renounce drops every capability, for this thread and what it starts, for
// good. An ordinary user cannot empty the bounding set and need not: with
// no_new_privs nothing is gained from it.
func renounce() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM {
			return err
		}
	}
	var none [2]unix.CapUserData
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}

// withoutCore keeps the program's memory out of files when it crashes.
func withoutCore() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbidding core files: %w", err)
	}
	return nil
}
