package compile_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/elfhost/elfhost/host/sandbox/compile"
)

const probeVerb = "__probe"

// probe confines itself as the compiler does, then tries what a compiler that
// was taken over would try.
func probe(dir string) int {
	if err := compile.Confine(dir); err != nil {
		fmt.Println("confine", err)
		return 1
	}
	report := func(what string, err error) {
		verdict := "refused"
		if err == nil {
			verdict = "done"
		}
		fmt.Println(what, verdict)
	}
	_, err := os.ReadFile("/etc/passwd")
	report("read", err)
	report("write", os.WriteFile(filepath.Join(filepath.Dir(dir), "escape"), nil, 0o600))
	c, err := net.Dial("udp", "127.0.0.1:9")
	if c != nil {
		c.Close()
	}
	report("network", err)
	report("exec", exec.Command("/bin/true").Run())
	parent := os.Getppid()
	report("signal", syscall.Tgkill(parent, parent, syscall.SIGURG))
	report("limits", unix.Prlimit(parent, unix.RLIMIT_NOFILE, nil, new(unix.Rlimit)))
	report("preemption", preempted())
	report("fork", forked())
	report("threads", threads())
	report("output", os.WriteFile(filepath.Join(dir, "code"), []byte("x"), 0o600))
	return 0
}

// preempted sends the runtime's own signal to a thread of this process, which
// must go on working: Go's preemption needs it.
func preempted() error { return syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGURG) }

// forked makes a process that does nothing and ends. The flags are those of
// fork; nothing of Go's may run in it.
func forked() error {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	switch {
	case errno != 0:
		return errno
	case pid == 0:
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	return nil
}

// threads makes more than there are, which the compiler does.
func threads() error {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			runtime.LockOSThread() // it is not given back: the thread ends with the goroutine
			time.Sleep(10 * time.Millisecond)
		})
	}
	all.Wait()
	return nil
}

func TestChildIsConfined(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(self, probeVerb, dir).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := map[string]string{"read": "refused", "write": "refused", "network": "refused", "exec": "refused", "signal": "refused", "limits": "refused", "fork": "refused", "threads": "done", "preemption": "done", "output": "done"}
	if _, err := os.Stat("/sys/kernel/security/landlock"); err != nil && strings.Contains(string(out), "read done") {
		t.Log("this kernel has no Landlock: files are not checked")
		delete(want, "read")
		delete(want, "write")
	}
	for line := range strings.Lines(string(out)) {
		what, verdict, _ := strings.Cut(strings.TrimSpace(line), " ")
		if w, ok := want[what]; ok && w != verdict {
			t.Errorf("%s: %s, want %s", what, verdict, w)
		}
	}
	if !strings.Contains(string(out), "output done") {
		t.Errorf("the probe did not finish: %s", out)
	}
}
