package outline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// worker is the process that runs the native parsers, started when it is first
// needed and kept for the session: their memory is never the host's. Requests
// go one by one. A worker that fails, is too slow or is not wanted any more is
// killed; the next request starts another.
type worker struct {
	self    string // the program
	timeout time.Duration

	turn   chan struct{} // holds one token: who has it may talk
	mu     sync.Mutex
	live   *process
	closed bool
}

const defaultTimeout = 30 * time.Second

func newWorker(self string, timeout time.Duration) *worker {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	w := &worker{self: self, timeout: timeout, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w
}

// process is one life of the worker.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	stderr *tail
	served int
}

// errWorker says that the parser died; the text of the error is for people.
var errWorker = errors.New("the parser failed")

// parse asks the worker. A process that has served before may have been damaged
// by an earlier file: when it fails, a fresh one tries once more.
func (w *worker) parse(ctx context.Context, id string, src []byte) (reply, error) {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return reply{}, context.Cause(ctx)
	}
	defer func() { w.turn <- struct{}{} }()
	for {
		p, err := w.process()
		if err != nil {
			return reply{}, err
		}
		used := p.served > 0
		r, err := p.ask(ctx, id, src, w.timeout)
		if err == nil {
			return r, nil
		}
		w.drop(p)
		if ctx.Err() != nil {
			return reply{}, context.Cause(ctx)
		}
		if !used || errors.Is(err, errSlow) || errors.Is(err, errMemory) {
			return reply{}, err
		}
	}
}

// process gives the live process, or starts one.
func (w *worker) process() (*process, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, fmt.Errorf("%w: the session has ended", errWorker)
	}
	if w.live != nil {
		return w.live, nil
	}
	p, err := start(w.self)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errWorker, err)
	}
	w.live = p
	return p, nil
}

// drop ends a process for good.
func (w *worker) drop(p *process) {
	w.mu.Lock()
	if w.live == p {
		w.live = nil
	}
	w.mu.Unlock()
	p.end()
}

// close kills the process, also in the middle of a request.
func (w *worker) close() error {
	w.mu.Lock()
	w.closed = true
	p := w.live
	w.live = nil
	w.mu.Unlock()
	if p != nil {
		p.kill()
		<-w.turn // who was talking notices and reaps it
		w.turn <- struct{}{}
		p.end()
	}
	return nil
}

// lastWords is what reading the rest of the complaint may take after the
// worker's end. It is there in a moment, but where the host waits for a processor.
const lastWords = time.Minute

func start(self string) (*process, error) {
	p := &process{cmd: exec.Command(self, Verb), stderr: &tail{}}
	p.cmd.Env = []string{"MALLOC_ARENA_MAX=2"} // its address space is limited
	p.cmd.Dir = os.TempDir()
	p.cmd.Stderr = p.stderr
	p.cmd.SysProcAttr = attributes()
	p.cmd.WaitDelay = lastWords
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return p, p.cmd.Start()
}

// errSlow is a request that took longer than the worker's time.
var errSlow = errors.New("the parser took too long and was stopped")

// ask sends a request and waits for the answer. After an error the process
// must be ended.
func (p *process) ask(ctx context.Context, id string, src []byte, timeout time.Duration) (reply, error) {
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errSlow)
	defer cancel()
	stop := context.AfterFunc(limited, p.kill)
	defer stop()
	written := make(chan error, 1)
	go func() {
		err := writeFrame(p.in, []byte(id))
		if err == nil {
			err = writeFrame(p.in, src)
		}
		written <- err
	}()
	b, err := readFrame(p.out, maxReply)
	if err != nil {
		p.kill() // so that the writer ends
	}
	if werr := <-written; err == nil {
		err = werr
	}
	var r reply
	if err == nil {
		r, err = decodeReply(b)
	}
	if err == nil {
		p.served++
		return r, nil
	}
	if limited.Err() != nil {
		return reply{}, context.Cause(limited)
	}
	_ = p.cmd.Wait() // it is dead or will be: p.kill was called
	why, err := p.stderr.reason()
	if err != nil {
		return reply{}, err
	}
	if why != "" {
		return reply{}, fmt.Errorf("%w: %s", errWorker, why)
	}
	return reply{}, fmt.Errorf("%w: %s", errWorker, p.cmd.ProcessState)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// end kills and reaps.
func (p *process) end() {
	p.in.Close()
	p.kill()
	_ = p.cmd.Wait() // of a process that was killed: its status says nothing new
}

// tail keeps the first bytes of what the worker complains about.
type tail struct{ b []byte }

func (t *tail) Write(b []byte) (int, error) {
	if n := 2<<10 - len(t.b); n > 0 {
		t.b = append(t.b, b[:min(n, len(b))]...)
	}
	return len(b), nil
}

// reason is one line about why a worker died, or the error for what is known.
// Call it after Wait.
func (t *tail) reason() (string, error) {
	s := string(t.b)
	switch {
	case strings.Contains(s, "out of memory") || strings.Contains(s, "cannot allocate") || strings.Contains(s, "failed to allocate"):
		return "", errMemory
	case strings.Contains(s, "stack overflow"), strings.Contains(s, "stack exceeds"):
		return "", errDeep
	}
	first, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line(first), nil
}
