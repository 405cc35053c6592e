package reach

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Keeper ends the programs of this process when this process is killed, in
// whatever way, and can end nobody itself: with the process groups that its
// Runners started, outside of a namespace that would end them.
//
// It is a process of its own, this program again with SandboxVerb, which this
// program has to know. It is started with the first program, told over a pipe
// which groups live, and acts when the pipe ends. It ends a while after the last
// program, and with Close. Where it cannot be started, programs run without it.
//
// The zero value is ready; one is enough for a process. It is safe for
// concurrent use. On Windows it does nothing: a job object does the same.
type Keeper struct {
	mu     sync.Mutex
	live   map[string]int // mark of each group, and its leader; 0 before it runs
	cmd    *exec.Cmd      // nil: there is none
	pipe   *os.File
	done   chan struct{} // closed when cmd has ended
	idle   *time.Timer   // ends it when nothing has run for a while
	fails  int           // how often it could not be had, or ended by itself
	closed bool
}

const (
	// keeperKind is what SandboxMain is told to be the keeper.
	keeperKind = "keeper"
	// keeperIdle is how long it waits for another program: starting it costs some
	// milliseconds, keeping it some megabytes.
	keeperIdle = 10 * time.Second
	// keeperFails is how many are tried. Somebody here ends them.
	keeperFails = 5
	// keeperWait bounds a write to one that does not read.
	keeperWait = time.Second
)

// hold says that a group is about to start, by the mark that its environment
// will have. A nil Keeper holds nothing.
func (k *Keeper) hold(mark string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	if k.live == nil {
		k.live = make(map[string]int)
	}
	if k.idle != nil {
		k.idle.Stop()
	}
	k.live[mark] = 0
	k.tell(mark)
}

// lead says who leads a group that hold announced.
func (k *Keeper) lead(mark string, pid int) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.live[mark]; ok {
		k.live[mark] = pid
		k.tell(mark)
	}
}

// release says that a group has ended. It is called while the group's number
// still means it.
func (k *Keeper) release(mark string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.live[mark]; !ok {
		return
	}
	delete(k.live, mark)
	if k.cmd != nil {
		k.tell(mark)
	}
	if len(k.live) == 0 && !k.closed {
		k.rest()
	}
}

// rest ends the process when nothing runs for a while. It is called with the
// lock held.
func (k *Keeper) rest() {
	if k.idle != nil {
		k.idle.Reset(keeperIdle)
		return
	}
	k.idle = time.AfterFunc(keeperIdle, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.live) == 0 {
			k.hangUp()
		}
	})
}

// Close ends the process, and with it the groups that still live.
func (k *Keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	if k.idle != nil {
		k.idle.Stop()
	}
	done := k.done
	k.hangUp()
	k.mu.Unlock()
	if done != nil {
		within(done, 2*killAfter)
	}
	return nil
}

// hangUp lets go of the process, which then ends what lives, and itself. It is
// called with the lock held.
func (k *Keeper) hangUp() {
	if k.pipe != nil {
		_ = k.pipe.Close()
	}
	k.cmd, k.pipe, k.done = nil, nil, nil
}

// tell passes on what is known of a group. A process that is not there, or does
// not listen, is replaced. It is called with the lock held.
func (k *Keeper) tell(mark string) {
	if k.cmd == nil {
		k.begin() // which tells of all
		return
	}
	if k.write(k.line(mark)) != nil {
		_ = k.cmd.Process.Kill() // before the pipe ends: it must not take that for our end
		<-k.done
		k.hangUp()
		k.fails++
		k.begin()
	}
}

func (k *Keeper) line(mark string) string {
	pid, ok := k.live[mark]
	if !ok {
		return mark + " -\n"
	}
	return mark + " " + strconv.Itoa(pid) + "\n"
}

func (k *Keeper) write(lines string) error {
	if err := k.pipe.SetWriteDeadline(time.Now().Add(keeperWait)); err != nil {
		return err
	}
	_, err := k.pipe.WriteString(lines)
	return err
}

// begin starts the process and tells it of all groups that live. It is called
// with the lock held.
func (k *Keeper) begin() {
	if len(k.live) == 0 || k.fails >= keeperFails {
		return
	}
	if err := k.spawn(); err != nil {
		k.fails++
		return
	}
	var all strings.Builder
	for mark := range k.live {
		all.WriteString(k.line(mark))
	}
	if k.write(all.String()) != nil {
		_ = k.cmd.Process.Kill() // the next group tries another
	}
}

func (k *Keeper) spawn() error {
	exe, err := self()
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(exe, SandboxVerb, keeperKind)
	// Nothing of this process but the pipe: no folder, no variable, no stream.
	cmd.Dir, cmd.Env, cmd.Stdin = "/", []string{"GOMAXPROCS=1"}, r
	if err = alone(cmd); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Close()
		return err
	}
	done := make(chan struct{})
	k.cmd, k.pipe, k.done = cmd, w, done
	go func() {
		_ = cmd.Wait()
		close(done)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.cmd == cmd { // somebody ended it
			k.hangUp()
			k.fails++
			k.begin()
		}
	}()
	return nil
}
