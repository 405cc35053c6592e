package reach

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithHost has the kernel end a program whose host was killed and could end
// nobody. Its children are not: theirs is the end of their input.
func dieWithHost(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

func awaitZombie(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err == nil
		}
	}
}

// watch ends a job that becomes too many processes. It counts, because
// RLIMIT_NPROC counts a user's processes and leaves root out, and a cgroup of
// our own is rarely to be had.
func (j *Job) watch(p Program) {
	limit := p.Pids
	if limit == 0 {
		limit = defaultPids
	}
	go func() {
		pause := 20 * time.Millisecond
		for !within(j.exited, pause) {
			n := processes(j.PID())
			if n > limit {
				j.end(func(e *Exit) { e.TooMany = true })
				for !within(j.exited, time.Millisecond) {
					j.group.kill(j.cmd) // no time for manners: the number doubles
				}
				return
			}
			pause = 50 * time.Millisecond
			if n > limit/4 {
				pause = 2 * time.Millisecond
			}
		}
	}()
}

// sweep kills what has left the session but still carries the mark.
func (g group) sweep() {
	if g.mark == "" {
		return
	}
	list, _ := os.ReadDir("/proc")
	for _, e := range list {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(env, []byte(jobVariable+g.mark)) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// processes counts what descends from pid or is of its session.
func processes(pid int) int {
	dir, err := os.Open("/proc")
	if err != nil {
		return 0
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return 0
	}
	children := map[int][]int{}
	session := 0
	for _, name := range names {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		data, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		// pid (name) state ppid pgrp session …; a name may hold anything, also ')'.
		f := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(f) < 4 {
			continue
		}
		parent, _ := strconv.Atoi(string(f[1]))
		sid, _ := strconv.Atoi(string(f[3]))
		if sid == pid {
			session++
			continue // counted; its children of other sessions hang below
		}
		children[parent] = append(children[parent], id)
	}
	return session + descend(children, pid)
}

func descend(children map[int][]int, pid int) (n int) {
	queue := []int{pid}
	for len(queue) > 0 {
		next := children[queue[0]]
		queue = append(queue[1:], next...)
		n += len(next)
	}
	return n
}
