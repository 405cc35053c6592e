//go:build unix

package reach

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// group is a program with all its children: a session of their own, so that
// none of them has a terminal to ask at, and one process group.
//
// mark is in the environment of every member: one that made a session of its
// own is found by it. held: a namespace ends them with its first process.
type group struct {
	mark string
	held bool
}

func (g group) prepare(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
	dieWithHost(cmd.SysProcAttr)
	if g.mark != "" {
		cmd.Env = append(cmd.Env, jobVariable+g.mark)
	}
}

func (*group) adopt(*exec.Cmd) {}
func (*group) release()        {}

// jobVariable tells a program's children apart from everybody else's.
const jobVariable = "ELFHOST_JOB="

// terminate asks, kill does not. The leader may be gone: the group's number
// stays taken while any member lives.
func (group) terminate(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func (g group) kill(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if !g.held {
		g.sweep()
	}
}

// killStopped is kill after the leader was stopped. One that is stopped while
// it starts leaves behind what it was about to hold.
func (g group) killStopped(cmd *exec.Cmd) {
	g.kill(cmd)
	if g.held {
		g.sweep()
	}
}

func signalOf(s *os.ProcessState) string {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return unix.SignalName(w.Signal())
	}
	return ""
}

// signalName is "" for a number that is no signal's.
func signalName(n int) string { return unix.SignalName(syscall.Signal(n)) }

// await waits for the program's end and returns what collects its status.
// Where the system can, the process stays a zombie until then, so that the
// group's number means this group when its rest is killed.
func (group) await(cmd *exec.Cmd) (wait func() error) {
	if awaitZombie(cmd.Process.Pid) {
		return cmd.Wait
	}
	err := cmd.Wait()
	return func() error { return err }
}

// startPty gives the program a terminal of which it is the leader.
func startPty(cmd *exec.Cmd) (*os.File, error) {
	cmd.SysProcAttr.Setctty = true
	return pty.StartWithAttrs(cmd, &pty.Winsize{Rows: 24, Cols: 80}, cmd.SysProcAttr)
}
