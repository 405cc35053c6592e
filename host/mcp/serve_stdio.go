package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	maxAtOnce = 64 // requests of one client that are carried out at a time
	maxIdle   = 4  // goroutines that wait for something to do
	// lastAnswers is how long calls may go on after the client's input has ended:
	// a script may have closed it right behind its last request. A client that
	// does not want them ends the server.
	lastAnswers = 10 * time.Second
)

// ErrClosed is returned by Serve when the client ended its input in the middle
// of a message.
var ErrClosed = errors.New("the client closed its side within a message")

// Serve speaks with one client over two streams until its input ends or ctx
// does. Calls that run then have a moment to end, are cancelled and waited for.
// in is read on until it gives something or fails, even after ctx has ended.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &stdioClient{notes: make(chan mcp.JSONRPCNotification, maxQueued), awaiting: map[string]chan json.RawMessage{}, over: make(chan struct{})}
	c.out.w = out
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := b.srv.RegisterSession(ctx, c); err != nil {
		return err
	}
	defer b.srv.UnregisterSession(context.WithoutCancel(ctx), c.SessionID())
	s := &stream{
		b: b, c: c, ctx: b.srv.WithContext(ctx, c), in: bufio.NewReaderSize(in, 64<<10),
		lead: make(chan struct{}, 1), failed: make(chan error, 1), running: map[string]context.CancelFunc{},
	}
	s.turn.pass = s.pass
	s.input, s.inputEnds = context.WithCancel(ctx)
	defer s.inputEnds()
	defer s.turn.stop()
	c.waits = s.turn.yield
	go c.announce(ctx)
	s.lead <- struct{}{}
	go s.work()
	var err error
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case err = <-s.failed:
		close(c.over)
		s.inputEnds()
		timer := time.AfterFunc(lastAnswers, cancel)
		defer timer.Stop()
		s.close()
		s.requests.Wait()
	}
	s.close()
	cancel()
	s.requests.Wait()
	return err
}

// stream is the exchange with one client. The goroutine that reads a request
// carries it out, and reads on after it: to hand either over to another one
// costs more than many a tool does. Where more requests have come meanwhile, or
// one takes long, another goroutine reads on beside it.
type stream struct {
	b         *Bridge
	c         *stdioClient
	ctx       context.Context
	input     context.Context // until the client has ended its input
	in        *bufio.Reader
	lead      chan struct{} // who has it reads
	failed    chan error
	idle      atomic.Int64 // goroutines that wait for lead
	inputEnds context.CancelFunc
	turn      turn

	requests sync.WaitGroup
	mu       sync.Mutex
	over     bool                          // nothing more is carried out
	running  map[string]context.CancelFunc // by the text of the id
	leaving  int                           // requests that are being answered
}

// work reads and carries out in turn, until the input ends or there are more
// of its kind than are of use.
func (s *stream) work() {
	for {
		s.idle.Add(1)
		select {
		case <-s.lead:
		case <-s.ctx.Done():
			return
		}
		s.idle.Add(-1)
		for kept := true; kept; {
			do := s.next()
			if do == nil {
				return
			}
			if s.in.Buffered() > 0 {
				s.pass()
				do()
				break
			}
			number := s.turn.begin()
			do()
			kept = s.turn.end(number)
		}
		if s.idle.Load() >= maxIdle {
			return
		}
	}
}

// pass lets another goroutine read.
func (s *stream) pass() {
	s.lead <- struct{}{}
	if s.idle.Load() == 0 {
		go s.work()
	}
}

// next reads up to a request, and gives what carries it out; nil at the end.
// What is no request is handled in its place.
func (s *stream) next() func() {
	for {
		line, err := readLine(s.in, maxMessage)
		if err == nil && len(line) > 0 {
			var do func()
			if do, err = s.take(line); do != nil {
				return do
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				if err = nil; len(line) > 0 {
					err = ErrClosed
				}
			}
			s.failed <- err
			return nil
		}
	}
}

func (s *stream) close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
}

func (s *stream) take(line []byte) (do func(), err error) {
	s.b.stats.messages.Add(1)
	m, err := readMessage(line)
	if err != nil {
		return nil, s.c.write(mcp.NewJSONRPCError(mcp.NewRequestId(nil), mcp.PARSE_ERROR, "the message was refused: "+err.Error(), nil))
	}
	switch {
	case m.method == "" && m.id != nil:
		s.c.answered(m.id, line)
		return nil, nil
	case m.id == nil && m.method == string(mcp.MethodNotificationCancelled):
		s.cancel(m.params)
		return nil, nil
	case m.id == nil || m.method == string(mcp.MethodInitialize):
		if r := s.b.srv.HandleMessage(s.ctx, line); r != nil {
			return nil, s.c.write(r)
		}
		return nil, nil
	}
	ctx, end, why := s.admit(string(m.id))
	if why != "" {
		return nil, s.c.write(map[string]any{"jsonrpc": "2.0", "id": m.id, "error": map[string]any{"code": -32000, "message": why}})
	}
	return func() {
		defer end()
		var after later
		defer after.run() // the answer goes first
		answer, ok := s.b.direct(ctx, s.c, m, &after)
		if list, lists := listed[m.method]; lists {
			s.c.listed(list, s.b.changes.now(list))
		}
		if m.method == string(mcp.MethodSubscriptionsListen) {
			answer = s.listen(ctx, m, line)
		} else if !ok {
			if r := s.b.srv.HandleMessage(ctx, line); r != nil {
				answer = r
			}
		}
		if s.leave(string(m.id)) && answer != nil {
			_ = s.c.write(answer)
		}
		s.left()
	}, nil
}

// admit makes the context of a request, which ends with end, after leave and
// left, or says why it is not carried out.
func (s *stream) admit(id string) (ctx context.Context, end func(), why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch _, twice := s.running[id]; {
	case s.over:
		return nil, nil, "the server is closing"
	case twice:
		return nil, nil, "a request with this id is being carried out"
	case len(s.running) >= maxAtOnce, len(s.running)+s.leaving >= 2*maxAtOnce:
		return nil, nil, fmt.Sprintf("more than %d requests at once", maxAtOnce)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.running[id] = cancel
	s.requests.Add(1)
	return ctx, func() {
		cancel()
		s.requests.Done()
	}, ""
}

// cancel ends a request that its client does not want any more. It is not
// answered then (the specification of cancellation).
func (s *stream) cancel(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[string(p.ID)]; cancel != nil {
		cancel()
		s.running[string(p.ID)] = nil
	}
}

// leave makes room for another request before this one is answered: a client
// that sees the answer may send its next one at once. wanted is false where
// nobody wants the answer. Where answers are not read, they take the place of
// requests in the end. left belongs to it.
func (s *stream) leave(id string) (wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted = s.running[id] != nil
	delete(s.running, id)
	s.leaving++
	return wanted
}

func (s *stream) left() {
	s.mu.Lock()
	s.leaving--
	s.mu.Unlock()
}

// announce writes notifications that no answer follows.
func (c *stdioClient) announce(ctx context.Context) {
	for {
		select {
		case n := <-c.notes:
			c.out.Lock()
			c.line(n)
			c.out.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// readLine reads up to a newline, which it takes away.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > most {
			return nil, fmt.Errorf("a message of more than %d MiB", most>>20)
		}
		switch {
		case err == nil:
			for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
				line = line[:len(line)-1]
			}
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
