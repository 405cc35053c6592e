package reach

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Job is a running program. Safe for concurrent use.
type Job struct {
	cmd     *exec.Cmd
	group   group
	out     *output
	sandbox string
	keeper  *Keeper // nil: the group is held, or nobody keeps it
	began   time.Time
	grace   time.Duration
	exited  chan struct{} // the program itself has ended
	done    chan struct{} // and its output is complete
	stop    sync.Once
	stopped atomic.Bool
	clean   func()

	mu   sync.Mutex
	exit Exit
}

// launch starts the command with the pipes of p.
func (j *Job) launch(p Program) error {
	j.began, j.exited, j.done = time.Now(), make(chan struct{}), make(chan struct{})
	if j.grace = p.Grace; j.grace == 0 {
		j.grace = defaultGrace
	}
	var err error
	if j.out, err = newOutput(p, func() { j.end(func(e *Exit) { e.LogFull = true }) }); err != nil {
		return err
	}
	// The kernel ends the program when the thread that started it ends, by which
	// it dies with a host that is killed: that thread is kept for the job's life.
	var readers []*os.File
	var streams sync.WaitGroup
	started, timer := make(chan error), make(chan *time.Timer, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		j.keeper.hold(j.group.mark)
		readers, err = j.begin(p)
		if err == nil {
			j.keeper.lead(j.group.mark, j.PID())
			j.group.adopt(j.cmd)
		} else {
			j.keeper.release(j.group.mark)
		}
		started <- err
		if err == nil {
			defer j.group.release()
			j.reap(&streams, readers, <-timer)
		}
	}()
	if err := <-started; err != nil {
		j.out.close()
		return err
	}
	for i, r := range readers {
		streams.Go(func() {
			if i == 0 && p.Stdout != nil && !p.Pty {
				collect(p.Stdout, r)
				return
			}
			d := &decoder{out: j.out}
			collect(d, r)
			d.flush()
		})
	}
	var limit *time.Timer
	if p.Timeout > 0 {
		limit = time.AfterFunc(p.Timeout, func() { j.end(func(e *Exit) { e.TimedOut = true }) })
	}
	j.watch(p)
	timer <- limit
	return nil
}

// begin opens the streams and starts the process.
func (j *Job) begin(p Program) (readers []*os.File, err error) {
	j.group.prepare(j.cmd)
	if p.Pty {
		r, err := startPty(j.cmd)
		return []*os.File{r}, err
	}
	var writers []*os.File
	defer func() {
		for _, w := range writers {
			w.Close()
		}
		if err != nil {
			for _, r := range readers {
				r.Close()
			}
		}
	}()
	for _, dst := range []*io.Writer{&j.cmd.Stdout, &j.cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return readers, err
		}
		readers, writers = append(readers, r), append(writers, w)
		*dst = w
	}
	if p.Stdin == nil {
		return readers, j.cmd.Start() // exec opens the null device
	}
	// Not cmd.Stdin: Wait would wait for the whole input to be taken.
	in, err := j.cmd.StdinPipe()
	if err != nil {
		return readers, err
	}
	if err := j.cmd.Start(); err != nil {
		return readers, err
	}
	go func() {
		_, _ = io.Copy(in, p.Stdin)
		in.Close()
	}()
	return readers, nil
}

// reap waits for the program, gives its children a moment, and ends them.
func (j *Job) reap(streams *sync.WaitGroup, readers []*os.File, timer *time.Timer) {
	wait := j.group.await(j.cmd)
	close(j.exited)
	drained := make(chan struct{})
	go func() { streams.Wait(); close(drained) }()
	kill := j.group.kill
	if j.stopped.Load() {
		kill = j.group.killStopped
	}
	if !within(drained, j.grace) {
		kill(j.cmd)
		within(drained, j.grace)
	} else {
		kill(j.cmd) // those that closed their output, too
	}
	for _, r := range readers {
		cut(r)
	}
	<-drained
	for _, r := range readers {
		r.Close()
	}
	if timer != nil {
		timer.Stop()
	}
	j.keeper.release(j.group.mark)
	j.finish(wait())
	j.out.close()
	j.clean()
	close(j.done)
}

// collect copies until the stream ends. Once it is cut it copies what lies in
// the stream already: the program wrote that while it lived, and only a busy
// machine, or a slow w, has kept it from being read.
func collect(w io.Writer, r *os.File) {
	_, err := io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{r})
	if !errors.Is(err, os.ErrDeadlineExceeded) || r.SetReadDeadline(time.Time{}) != nil {
		return
	}
	b := make([]byte, 32<<10)
	for left := mostLeft; left > 0; {
		n := readNow(r, b)
		if n <= 0 {
			return
		}
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
		left -= n
	}
}

// mostLeft bounds what is read after the cut, where somebody who escaped goes
// on writing. It is the largest pipe that a program may ask for.
const mostLeft = 1 << 20

// cut ends the wait for more. Where a stream has no deadlines it is closed.
func cut(r *os.File) {
	if r.SetReadDeadline(time.Unix(1, 0)) != nil {
		r.Close()
	}
}

func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

func (j *Job) finish(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &j.exit
	e.Code = j.cmd.ProcessState.ExitCode()
	e.Signal = signalOf(j.cmd.ProcessState)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		e.Code = -1
	}
	e.Output, e.Head, e.Truncated, e.Total = j.out.result()
	e.Wall = time.Since(j.began)
	e.Sandbox = j.sandbox
}

// end marks why the job ends and ends it.
func (j *Job) end(mark func(*Exit)) {
	select {
	case <-j.exited:
		return
	default:
	}
	j.mu.Lock()
	mark(&j.exit)
	j.mu.Unlock()
	j.Kill()
}

// Kill ends the whole process group: SIGTERM, then, 2 s later, SIGKILL. It
// does not wait.
func (j *Job) Kill() {
	j.stop.Do(func() {
		j.stopped.Store(true)
		j.group.terminate(j.cmd)
		go func() {
			if !within(j.exited, killAfter) {
				j.group.kill(j.cmd)
			}
		}()
	})
}

// Wait waits for the end of the job and of its output. When ctx ends first the
// whole group is killed, and the Exit holds what was written until then.
func (j *Job) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-j.done:
	case <-ctx.Done():
		j.Kill()
		<-j.done
		return j.result(), ctx.Err()
	}
	return j.result(), nil
}

// Peek is the Exit so far: the output that is there, without an end.
func (j *Job) Peek() Exit {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.exit
	select {
	case <-j.done:
	default:
		e.Output, e.Head, e.Truncated, e.Total = j.out.result()
		e.Wall, e.Sandbox = time.Since(j.began), j.sandbox
	}
	return e
}

func (j *Job) result() Exit {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.exit
}

// Done is closed when the program has ended and its output is complete.
func (j *Job) Done() <-chan struct{} { return j.done }

// PID is the host's process id, which is also the group's.
func (j *Job) PID() int { return j.cmd.Process.Pid }
