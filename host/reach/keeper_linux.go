package reach

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ticks is the time in which the kernel counts when a process started: the
// hundredth of a second since the machine did.
func ticks() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return ts.Nano() / 1e7
}

// startOf is when a process started; 0: there is none.
func startOf(pid int) int64 {
	s, _ := statOf(strconv.Itoa(pid))
	return s.start
}

// stat is what /proc tells of a process.
type stat struct {
	state   byte
	parent  int
	group   int
	session int
	start   int64
}

func statOf(pid string) (s stat, ok bool) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return s, false
	}
	// pid (name) state ppid pgrp session …; a name may hold anything, also ')'.
	f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(f) < 20 {
		return s, false
	}
	n := func(i int) int {
		v, _ := strconv.Atoi(string(f[i]))
		return v
	}
	return stat{state: f[0][0], parent: n(1), group: n(2), session: n(3), start: int64(n(19))}, true
}

// membersOf lists a group, without those that have ended and were not waited for.
func membersOf(group int) (out []member) {
	for _, name := range procs() {
		s, ok := statOf(name)
		if !ok || s.group != group || s.state == 'Z' || s.state == 'X' {
			continue
		}
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, member{pid, s.start})
		}
	}
	return out
}

// procs are the names of what /proc lists, processes among them.
func procs() []string {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	return names
}

// marked are the processes whose environment has a job's mark, this one aside.
func marked(mark string) (out []int) {
	for _, name := range procs() {
		pid, err := strconv.Atoi(name)
		if err == nil && pid != os.Getpid() && hasMark(pid, mark) {
			out = append(out, pid)
		}
	}
	return out
}

func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(env, []byte(jobVariable+mark))
}
