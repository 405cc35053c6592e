//go:build linux || darwin

package reach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/policy"
)

// keptVerb makes the test binary a host that is about to be killed: it starts a
// program with a keeper, which it names in a file.
const keptVerb = "__kept"

func keptMain(args []string) int {
	k := &Keeper{}
	j, err := (&Runner{Keeper: k}).Start(bg, policy.Rights{Grants: policy.Unlimited()}, Program{
		Argv: []string{"/bin/sh", "-c", args[0]}, Dir: args[1],
	})
	if err == nil {
		k.mu.Lock()
		err = os.WriteFile(filepath.Join(args[1], "keeper"), fmt.Appendln(nil, k.cmd.Process.Pid), 0o600)
		k.mu.Unlock()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = j.Wait(bg)
	return 1
}

// numberIn waits for a file with a process's number.
func numberIn(t *testing.T, file string) (pid int) {
	t.Helper()
	eventually(t, "no number in "+filepath.Base(file), func() bool {
		b, err := os.ReadFile(file)
		if err != nil || !strings.HasSuffix(string(b), "\n") {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	t.Cleanup(func() {
		if runs(pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// runs reports whether a process is there and has not ended.
func runs(pid int) bool {
	group, err := syscall.Getpgid(pid)
	return err == nil && slices.ContainsFunc(membersOf(group), func(m member) bool { return m.pid == pid })
}

// A host that is killed leaves nobody: children of its programs that read no
// input, that mind no SIGTERM, and the keeper itself end too.
func TestKeeperEndsGrandchildren(t *testing.T) {
	dir := t.TempDir()
	const script = `sleep 1000 & echo $! >plain
(trap "" TERM HUP INT; sh -c 'echo $$ >deaf; while :; do sleep 1000; done') &
wait`
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host := exec.Command(self, keptVerb, script, dir)
	host.Stderr = os.Stderr
	host.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, name := range []string{"plain", "deaf", "keeper"} {
		all[name] = numberIn(t, filepath.Join(dir, name))
	}
	// The keeper shares nothing with the host by which it could end with it.
	keeper := all["keeper"]
	if sid, err := getsid(keeper); err != nil || sid != keeper {
		t.Errorf("the keeper is of the session %d, %v", sid, err)
	}
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT} {
		// It ignores them as soon as it runs; what comes before would end it.
		eventually(t, "the keeper does not ignore signals", func() bool { return ignores(keeper, s) })
		if err := syscall.Kill(keeper, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(-host.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	for name, pid := range all {
		eventually(t, name+" outlives the host", func() bool { return !runs(pid) })
	}
}

// sleeper starts a program that is a group of its own.
func sleeper(t *testing.T, env ...string) (pid int) {
	t.Helper()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return cmd.Process.Pid
}

// A number that another group got meanwhile is left alone.
func TestKeeperSparesOthers(t *testing.T) {
	pid := sleeper(t)
	start := startOf(pid)
	if start == 0 {
		t.Fatal("when a process started is not known")
	}
	for name, c := range map[string]struct {
		kept
		since int64
	}{
		"the leader is another":       {kept{pid, start - 1}, start + 1},
		"it started after the end":    {kept{pid, 0}, start},
		"the leader was never seen":   {kept{}, start + 1},
		"no number":                   {kept{pid: 1}, start + 1},
		"the group of who ends them ": {kept{pid: syscall.Getpgrp()}, start + 1e9},
	} {
		if c.lives("nobody's", c.since) {
			t.Errorf("%s: it would be ended", name)
		}
	}
	endAll(map[string]kept{"nobody's": {pid, start - 1}}, start+1, time.Millisecond)
	if !runs(pid) {
		t.Fatal("a stranger was ended")
	}
	endAll(map[string]kept{"ours": {pid, start}}, start+1, time.Minute)
	if runs(pid) {
		t.Error("the group lives")
	}
}

// What the host tells is followed to its end, whatever else stands there.
func TestKeeperListens(t *testing.T) {
	pid := sleeper(t)
	got := listen(strings.NewReader(fmt.Sprintf("a 0\nb 0\nb %d\nc 0\nc 7\nc -\n\nd\nd -1\ne 1\nf x\n a 3\nb", pid)))
	if len(got) != 2 || got["a"] != (kept{}) || got["b"] != (kept{pid, startOf(pid)}) {
		t.Errorf("%v", got)
	}
}

func FuzzKeeperListens(f *testing.F) {
	f.Add("a 0\na 12\na -\nb 3\n")
	f.Fuzz(func(t *testing.T, told string) {
		for mark, g := range listen(strings.NewReader(told)) {
			if mark == "" || g.pid == 1 || g.pid < 0 {
				t.Errorf("%q: %v", mark, g)
			}
		}
	})
}

// One that somebody ended is replaced, and the new one knows of all; Close ends
// what is left.
func TestKeeperIsReplaced(t *testing.T) {
	k := &Keeper{}
	defer k.Close()
	pid := sleeper(t)
	k.hold("mark")
	k.lead("mark", pid)
	first := k.process()
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not replaced", func() bool { p := k.process(); return p != nil && p != first })
	if !runs(pid) {
		t.Fatal("the group ended with its keeper")
	}
	if err := k.Close(); err != nil || runs(pid) {
		t.Errorf("the group lives, %v", err)
	}
	if k.hold("late"); k.process() != nil {
		t.Error("it begins anew after its end")
	}
}

func (k *Keeper) process() *os.Process {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd == nil {
		return nil
	}
	return k.cmd.Process
}

// It is there while a program runs, and ends when none has for a while.
func TestKeeperRests(t *testing.T) {
	k := &Keeper{}
	defer k.Close()
	r := &Runner{Keeper: k}
	rights := policy.Rights{Grants: policy.Unlimited()}
	ctx, cancel := context.WithCancel(bg)
	j, err := r.Start(ctx, rights, Program{Argv: []string{"/bin/sleep", "1000"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p := k.process()
	if p == nil {
		t.Fatal("nobody keeps the program")
	}
	k.mu.Lock()
	done, live := k.done, len(k.live)
	k.mu.Unlock()
	if live != 1 {
		t.Errorf("%d groups live", live)
	}
	cancel()
	if _, err := j.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	k.mu.Lock()
	live = len(k.live)
	k.idle.Reset(0) // the while is over
	k.mu.Unlock()
	if live != 0 {
		t.Errorf("%d groups live after the end", live)
	}
	if !within(done, time.Minute) || k.process() != nil {
		t.Fatal("it does not rest")
	}
	if _, err := r.Start(bg, rights, Program{Argv: []string{"/nowhere"}, Dir: t.TempDir()}); err == nil || len(k.live) != 0 {
		t.Errorf("%d groups live after none has started, %v", len(k.live), err)
	}
	if exit, err := r.Run(bg, rights, Program{Argv: []string{"/bin/echo", "hi"}, Dir: t.TempDir()}); err != nil || string(exit.Output) != "hi\n" {
		t.Errorf("%q, %v", exit.Output, err)
	}
	if k.process() == nil {
		t.Error("nobody keeps the next one")
	}
}

// A nil Keeper keeps nobody, and one that cannot be had stops nothing.
func TestNoKeeper(t *testing.T) {
	for name, k := range map[string]*Keeper{"nil": nil, "broken": {fails: keeperFails}} {
		exit, err := (&Runner{Keeper: k}).Run(bg, policy.Rights{Grants: policy.Unlimited()}, Program{Argv: []string{"/bin/echo", "hi"}, Dir: t.TempDir()})
		if err != nil || string(exit.Output) != "hi\n" {
			t.Errorf("%s: %q, %v", name, exit.Output, err)
		}
	}
}
