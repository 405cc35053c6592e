package reach

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A launcher that is stopped while it starts leaves a child in a session of its
// own, which no namespace ends: it is ended all the same.
func TestStoppedLauncherLeavesNobody(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	j := &Job{cmd: exec.Command("/bin/sh", "-c", `setsid sh -c 'echo $$ >"$0"; exec sleep 300' "$0" & wait`, pid),
		sandbox: Bubblewrap, group: group{mark: t.Name(), held: true}, clean: func() {}}
	j.cmd.Env = os.Environ()
	if err := j.launch(Program{}); err != nil {
		t.Fatal(err)
	}
	child := 0
	for end := time.Now().Add(time.Minute); child == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the child does not start")
		}
		b, _ := os.ReadFile(pid)
		child, _ = strconv.Atoi(strings.TrimSpace(string(b)))
	}
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	j.Kill()
	if _, err := j.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); alive(child); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the child goes on")
		}
	}
}
