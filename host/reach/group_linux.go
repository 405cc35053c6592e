package reach

import (
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dieWithHost has the kernel end a program whose host was killed and could end
// nobody. Its children are not: theirs is a Keeper.
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
	for _, pid := range marked(g.mark) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// processes counts what descends from pid or is of its session.
func processes(pid int) int {
	children := map[int][]int{}
	session := 0
	for _, name := range procs() {
		id, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		s, ok := statOf(name)
		if !ok {
			continue
		}
		if s.session == pid {
			session++
			continue // counted; its children of other sessions hang below
		}
		children[s.parent] = append(children[s.parent], id)
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
