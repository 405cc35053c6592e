package compile

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// limit puts this process into a job that bounds its memory and processor
// time, allows no further process, and ends with it. The size of its output
// has no limit of the system here; the parent reads no more than it expects.
func limit(memory, cpuSeconds, _ int64) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("making a job: %w", err)
	}
	// The handle stays open as long as the process: closing it would end it.
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{ProcessMemoryLimit: uintptr(memory)}
	info.BasicLimitInformation = windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
		PerProcessUserTimeLimit: cpuSeconds * 10_000_000, // in units of 100 ns
		ActiveProcessLimit:      1,
		LimitFlags: windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY | windows.JOB_OBJECT_LIMIT_PROCESS_TIME |
			windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS | windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
	}
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return fmt.Errorf("limiting a job: %w", err)
	}
	if err := windows.AssignProcessToJobObject(job, windows.CurrentProcess()); err != nil {
		return fmt.Errorf("entering a job: %w", err)
	}
	return nil
}

func confine(string) error { return nil }

// Confinement is empty: nothing but its limits holds the compiler here.
func Confinement() []string { return nil }
