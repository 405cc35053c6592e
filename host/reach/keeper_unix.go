//go:build linux || darwin

package reach

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// alone puts the keeper where no signal to the host's group or terminal comes.
func alone(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

// kept is a group that lives.
type kept struct {
	pid   int   // of the leader, and the group's number; 0: not known
	start int64 // when the leader started, in the clock of startOf; 0: not known
}

// keeperMain is the keeper's process. It returns when everything that the host
// left behind has ended.
func keeperMain() int {
	if st, err := os.Stdin.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		fmt.Fprintf(os.Stderr, "elfhost: error: %s %s is started by elfhost itself\n", SandboxVerb, keeperKind)
		return 1
	}
	// Whoever ends all of a user's processes nicely ends the host too, and with it
	// the pipe.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	closeInherited()
	left := listen(os.Stdin)
	endAll(left, ticks(), killAfter)
	return 0
}

// closeInherited closes what came along from whoever started the host: somebody
// may wait for its end. What this process opened closes with an exec.
func closeInherited() {
	list, _ := os.ReadDir("/dev/fd")
	for _, e := range list {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}

// listen follows what the host tells until it hangs up, and gives the groups that
// then live, by their marks.
func listen(host io.Reader) map[string]kept {
	live := make(map[string]kept)
	for in := bufio.NewScanner(host); in.Scan(); {
		mark, what, ok := strings.Cut(in.Text(), " ")
		pid, err := strconv.Atoi(what)
		switch {
		case !ok || mark == "":
		case what == "-":
			delete(live, mark)
		case err == nil && pid > 1:
			live[mark] = kept{pid, startOf(pid)}
		case err == nil && pid == 0:
			live[mark] = kept{}
		}
	}
	return live
}

// endAll ends groups: SIGTERM, and SIGKILL for what is there after the grace.
// since is when the host was found gone.
func endAll(left map[string]kept, since int64, grace time.Duration) {
	signalAll(left, since, syscall.SIGTERM)
	for end := time.Now().Add(grace); len(left) > 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		gone := true
		for mark, g := range left {
			gone = gone && !g.lives(mark, since) && len(marked(mark)) == 0
		}
		if gone {
			return
		}
	}
	for range 5 { // one that starts others all the time may slip through once
		signalAll(left, since, syscall.SIGKILL)
		time.Sleep(5 * time.Millisecond)
	}
}

func signalAll(left map[string]kept, since int64, s syscall.Signal) {
	for mark, g := range left {
		if g.lives(mark, since) {
			_ = syscall.Kill(-g.pid, s)
		}
		for _, pid := range marked(mark) { // those that left the group
			_ = syscall.Kill(pid, s)
		}
	}
}

// lives reports whether the group's number still means the group. The host
// holds the number until it says that the group ended, so it meant it when the
// host was lost; the kernel gives it to others only after the last member has
// gone. So it is the group if somebody in it was there before, or has its mark.
func (g kept) lives(mark string, since int64) bool {
	if g.pid <= 1 || g.pid == syscall.Getpgrp() {
		return false
	}
	if now := startOf(g.pid); now != 0 && g.start != 0 && now != g.start {
		return false
	}
	for _, m := range membersOf(g.pid) {
		if m.start < since || hasMark(m.pid, mark) {
			return true
		}
	}
	return false
}

// member is a process of a group that has not ended.
type member struct {
	pid   int
	start int64
}
