package reach

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// group is a program with its children, by parentage: taskkill /T.
type group struct {
	mark string
	held bool
}

func (group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func (g group) terminate(cmd *exec.Cmd) { g.kill(cmd) }

func (group) kill(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill()
}

func (g group) killStopped(cmd *exec.Cmd) { g.kill(cmd) }

func (group) await(cmd *exec.Cmd) (wait func() error) {
	err := cmd.Wait()
	return func() error { return err }
}

func signalOf(*os.ProcessState) string { return "" }

func startPty(*exec.Cmd) (*os.File, error) {
	return nil, errors.New("no terminal can be had for a program on Windows")
}

// SignalName is "": there are no signals here.
func SignalName(int) string { return "" }
