package reach

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a program with its children: those in its job object, and by
// parentage (taskkill /T) those that it started before it was put there.
type group struct {
	mark string
	held bool
	// job ends what is in it when its last handle is closed, which is this one:
	// also when the host is killed. 0: none could be made.
	job windows.Handle
}

// adopt puts a program that has just been started into a job object. Without
// one it is ended as far as parentage shows, and not with a killed host.
func (g *group) adopt(cmd *exec.Cmd) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err == nil {
		var entered error
		err = cmd.Process.WithHandle(func(h uintptr) { entered = windows.AssignProcessToJobObject(job, windows.Handle(h)) })
		err = errors.Join(err, entered)
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return
	}
	g.job = job
}

// release is called once, when the program and its children have ended.
func (g *group) release() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job)
	}
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

// signalName is "": there are no signals here.
func signalName(int) string { return "" }
