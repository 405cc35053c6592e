package reach

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func getsid(pid int) (int, error) { return unix.Getsid(pid) }

// ignores reports whether a process ignores a signal.
func ignores(pid int, s syscall.Signal) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(b)) {
		var mask uint64
		if _, err := fmt.Sscanf(line, "SigIgn: %x", &mask); err == nil {
			return mask&(1<<(uint(s)-1)) != 0
		}
	}
	return false
}

// The keeper holds nothing of its host: no file, no folder, no variable.
func TestKeeperHoldsNothing(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil { // as what the host itself inherited
		t.Fatal(err)
	}
	k := &Keeper{}
	defer k.Close()
	k.hold("mark")
	pid := k.process().Pid
	proc := fmt.Sprintf("/proc/%d/", pid)
	eventually(t, "it does not begin", func() bool { return ignores(pid, syscall.SIGTERM) })
	if cwd, err := os.Readlink(proc + "cwd"); err != nil || cwd != "/" {
		t.Errorf("it is in %q, %v", cwd, err)
	}
	if env, err := os.ReadFile(proc + "environ"); err != nil || string(env) != "GOMAXPROCS=1\x00" {
		t.Errorf("it has the environment %q, %v", env, err)
	}
	own, err := os.Readlink(proc + "fd/0")
	if err != nil || !strings.HasPrefix(own, "pipe:") {
		t.Fatalf("it reads %q, %v", own, err)
	}
	// Until it comes to closing them it has what this process inherited.
	eventually(t, "it holds files open", func() bool {
		open, err := os.ReadDir(proc + "fd")
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range open {
			to, err := os.Readlink(proc + "fd/" + fd.Name())
			runtimes := strings.HasPrefix(to, "anon_inode:") || strings.HasPrefix(to, "/sys/fs/cgroup/")
			if err == nil && to != "/dev/null" && to != own && !runtimes {
				return false
			}
		}
		return true
	})
}

// A process that left its group is found by its mark, also where its leader was
// never told of.
func TestKeeperFindsMarked(t *testing.T) {
	pid := sleeper(t, jobVariable+"MARKED")
	endAll(map[string]kept{"OTHER": {}}, ticks(), 0)
	if !runs(pid) {
		t.Fatal("another's was ended")
	}
	endAll(map[string]kept{"MARKED": {}}, 0, 0)
	eventually(t, "it lives", func() bool { return !runs(pid) })
}
