package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elfhost/elfhost/host/reach"
)

const (
	// maxLine is the longest line a server may write while nothing was asked of
	// it, maxAnswer while a request waits.
	maxLine   = 8 << 20
	maxAnswer = 96 << 20
	// maxUnread is what may wait for a server that does not read its input.
	maxUnread = 16 << 20
	// closing is how long a server has to end by itself when its input ends.
	closing = 500 * time.Millisecond
)

// process is a server that was started: its streams, and its end.
type process struct {
	job *reach.Job
	in  *outbox
	out *lines

	mu     sync.Mutex
	reason string // why we ended it
}

// spawn starts the server's program. busy tells whether a request waits.
func (l *link) spawn(ctx context.Context, busy *atomic.Int64) (*process, error) {
	dir := l.s.Dir
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the folder %q to start it in is not absolute", dir)
	}
	p := &process{in: newOutbox()}
	pipe, sink := io.Pipe()
	p.out = &lines{r: pipe, busy: busy, tooLong: func(n int) {
		p.end(fmt.Sprintf("it wrote a line of more than %d MiB", n>>20))
	}}
	job, err := l.c.opt.Runner.Start(ctx, l.s.Rights, reach.Program{
		Argv: append([]string{l.s.Command}, l.s.Args...), Dir: dir, Env: append(reach.CleanEnv(), l.s.Env...),
		Stdin: p.in, Stdout: sink, Output: 16 << 10, Network: true, Pids: 1024,
		Stream: l.chatter(),
	})
	if err != nil {
		return nil, err
	}
	p.job = job
	go func() {
		<-job.Done()
		sink.Close()
		p.in.Close()
	}()
	return p, nil
}

// chatter passes standard error on, line by line and not too many.
func (l *link) chatter() func([]byte) {
	if l.c.opt.Log == nil {
		return nil
	}
	var rest []byte
	lim := limiter{most: 200, every: 10 * time.Second}
	return func(b []byte) {
		rest = append(rest, b...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			rest = after
			if lim.allow() {
				l.c.log(l.s.Name, "stderr", string(line))
			}
		}
		if len(rest) > 4<<10 {
			rest = rest[:0]
		}
	}
}

// end stops the program with everything it started.
func (p *process) end(reason string) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = reason
	}
	p.mu.Unlock()
	p.job.Kill()
}

// shut ends its input, which is how a server is told to go, then the program.
func (p *process) shut(ctx context.Context) error {
	p.in.Close()
	// What it still writes has to go somewhere, or it never comes to its end.
	go func() { _, _ = io.Copy(io.Discard, p.out.r) }()
	select {
	case <-p.job.Done():
		return nil
	case <-time.After(closing):
	case <-ctx.Done():
	}
	p.end("it was closed")
	select {
	case <-p.job.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lastWords is how long a program that has closed its output may take to end
// before it is reported without its status.
const lastWords = 5 * time.Second

// why says how the program ended: its status and its last words.
func (p *process) why() error {
	select {
	case <-p.job.Done():
	case <-time.After(lastWords):
	}
	exit := p.job.Peek()
	p.mu.Lock()
	reason := p.reason
	p.mu.Unlock()
	var b strings.Builder
	switch {
	case reason != "":
		b.WriteString(reason)
	case exit.Signal != "":
		fmt.Fprintf(&b, "it was ended by %s", exit.Signal)
	default:
		fmt.Fprintf(&b, "it ended with exit status %d", exit.Code)
	}
	if words := lastLines(exit.Output, 5, 600); words != "" {
		fmt.Fprintf(&b, ", and its last words were: %s", words)
	}
	return errors.New(b.String())
}

// lastLines is the end of a text, cleaned.
func lastLines(b []byte, n, most int) string {
	text, _ := clean(strings.TrimSpace(string(b)))
	all := strings.Split(text, "\n")
	text = strings.Join(all[max(0, len(all)-n):], "\n")
	if len(text) > most {
		text = "…" + strings.ToValidUTF8(text[len(text)-most:], "")
	}
	return text
}

// lines is what a server writes, until one line is too long. It then ends:
// what comes after it cannot be told apart.
type lines struct {
	r       io.ReadCloser
	busy    *atomic.Int64
	tooLong func(limit int)
	n       int // bytes of the line so far
	over    bool
}

func (l *lines) Read(b []byte) (int, error) {
	if l.over {
		return 0, io.EOF
	}
	n, err := l.r.Read(b)
	if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
		l.n = n - i - 1
	} else {
		l.n += n
	}
	limit := maxLine
	if l.busy.Load() > 0 {
		limit = maxAnswer
	}
	if l.n > limit {
		l.over = true
		l.r.Close()
		l.tooLong(limit)
		return 0, io.EOF
	}
	if err != nil {
		err = io.EOF
	}
	return n, err
}

func (l *lines) Close() error { return l.r.Close() }

// outbox holds what a server has not read yet, so that one that does not read
// blocks nobody.
type outbox struct {
	mu     sync.Mutex
	some   sync.Cond
	buf    bytes.Buffer
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.some.L = &o.mu
	return o
}

func (o *outbox) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return len(b), nil // nobody reads it any more; the reader's end tells
	}
	if o.buf.Len() > 0 && o.buf.Len()+len(b) > maxUnread {
		if isAnswer(b) { // it does not read them: mcp-go would put each on standard error
			return len(b), nil
		}
		return 0, fmt.Errorf("the server does not read its input: %d bytes wait", o.buf.Len())
	}
	o.some.Signal()
	return o.buf.Write(b)
}

// isAnswer reports whether a message is an answer to a request of the server.
func isAnswer(b []byte) bool {
	var m struct {
		Method *string `json:"method"`
	}
	return json.Unmarshal(b, &m) == nil && m.Method == nil
}

func (o *outbox) Read(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.buf.Len() == 0 {
		if o.closed {
			return 0, io.EOF
		}
		o.some.Wait()
	}
	return o.buf.Read(b)
}

func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.some.Broadcast()
	return nil
}

// limiter lets so many through in a while.
type limiter struct {
	most  int
	every time.Duration

	mu    sync.Mutex
	since time.Time
	n     int
}

func (l *limiter) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) > l.every {
		l.since, l.n = now, 0
	}
	l.n++
	return l.n <= l.most
}
