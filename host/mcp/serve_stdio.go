package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	maxAtOnce = 64   // requests of one client that are carried out at a time
	maxQueued = 1024 // notifications that wait for one client
)

// stdioClient is the one client of standard streams. It is ours, not mcp-go's:
// that one is shared by the whole process, reads lines without a limit, and
// lets a result overtake the progress that came before it.
type stdioClient struct {
	notes chan mcp.JSONRPCNotification
	ready atomic.Bool

	out struct {
		sync.Mutex
		w   io.Writer
		err error
	}
	mu       sync.Mutex
	level    mcp.LoggingLevel
	info     mcp.Implementation
	caps     mcp.ClientCapabilities
	version  string
	filter   *mcp.SubscriptionFilter
	next     int
	awaiting map[string]chan json.RawMessage
}

func (c *stdioClient) Initialize()                                         { c.ready.Store(true) }
func (c *stdioClient) Initialized() bool                                   { return c.ready.Load() }
func (c *stdioClient) NotificationChannel() chan<- mcp.JSONRPCNotification { return c.notes }
func (c *stdioClient) SessionID() string                                   { return "stdio" }

func (c *stdioClient) SetLogLevel(l mcp.LoggingLevel) { c.mu.Lock(); c.level = l; c.mu.Unlock() }

func (c *stdioClient) GetLogLevel() mcp.LoggingLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.level == "" {
		return mcp.LoggingLevelError
	}
	return c.level
}

func (c *stdioClient) SetClientInfo(i mcp.Implementation) { c.mu.Lock(); c.info = i; c.mu.Unlock() }

func (c *stdioClient) GetClientInfo() mcp.Implementation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.info
}

func (c *stdioClient) SetClientCapabilities(n mcp.ClientCapabilities) {
	c.mu.Lock()
	c.caps = n
	c.mu.Unlock()
}

func (c *stdioClient) GetClientCapabilities() mcp.ClientCapabilities {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

func (c *stdioClient) SetProtocolVersion(v string) { c.mu.Lock(); c.version = v; c.mu.Unlock() }

func (c *stdioClient) ProtocolVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

func (c *stdioClient) SetSubscriptionFilter(f mcp.SubscriptionFilter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filter = &f; f.IsEmpty() {
		c.filter = nil
	}
}

func (c *stdioClient) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.filter == nil {
		return mcp.SubscriptionFilter{}, false
	}
	return *c.filter, true
}

// RequestElicitation asks the client's person and waits.
func (c *stdioClient) RequestElicitation(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	raw, err := c.ask(ctx, string(mcp.MethodElicitationCreate), r.Params)
	if err != nil {
		return nil, err
	}
	res := &mcp.ElicitationResult{}
	return res, json.Unmarshal(raw, res)
}

// RequestSampling asks for the client's model and waits.
func (c *stdioClient) RequestSampling(ctx context.Context, r mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	raw, err := c.ask(ctx, string(mcp.MethodSamplingCreateMessage), r.CreateMessageParams)
	if err != nil {
		return nil, err
	}
	res := &mcp.CreateMessageResult{}
	return res, json.Unmarshal(raw, res)
}

// ask sends a request to the client.
func (c *stdioClient) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	answer := make(chan json.RawMessage, 1)
	c.mu.Lock()
	c.next++
	id := "elfhost-" + strconv.Itoa(c.next)
	c.awaiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.awaiting, id)
		c.mu.Unlock()
	}()
	if err := c.write(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	select {
	case raw = <-answer:
	case <-ctx.Done():
		_ = c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": id}})
		return nil, ctx.Err()
	}
	var r struct {
		Result json.RawMessage          `json:"result"`
		Error  *mcp.JSONRPCErrorDetails `json:"error"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	if r.Error != nil {
		return nil, r.Error.AsError()
	}
	return r.Result, nil
}

// answered takes a message that is an answer of the client.
func (c *stdioClient) answered(id json.RawMessage, line []byte) {
	var text string
	if json.Unmarshal(id, &text) != nil {
		return
	}
	c.mu.Lock()
	answer := c.awaiting[text]
	delete(c.awaiting, text)
	c.mu.Unlock()
	if answer != nil {
		answer <- line
	}
}

// write sends one message; what was announced before it goes first.
func (c *stdioClient) write(messages ...any) error {
	c.out.Lock()
	defer c.out.Unlock()
	for {
		select {
		case n := <-c.notes:
			c.line(n)
			continue
		default:
		}
		break
	}
	for _, m := range messages {
		c.line(m)
	}
	return c.out.err
}

func (c *stdioClient) line(m any) {
	b, err := json.Marshal(m)
	if err == nil && c.out.err == nil {
		_, err = c.out.w.Write(append(b, '\n'))
	}
	if err != nil && c.out.err == nil {
		c.out.err = err
	}
}

// Serve speaks with one client over two streams until its input ends or ctx
// does. Calls that run then have a moment to end, are cancelled and waited for. in is read on until
// it gives something or fails, even after ctx has ended.
func (b *Bridge) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &stdioClient{notes: make(chan mcp.JSONRPCNotification, maxQueued), awaiting: map[string]chan json.RawMessage{}}
	c.out.w = out
	ctx, cancel := context.WithCancel(ctx)
	if err := b.srv.RegisterSession(ctx, c); err != nil {
		cancel()
		return err
	}
	defer b.srv.UnregisterSession(context.WithoutCancel(ctx), c.SessionID())
	ctx = b.srv.WithContext(ctx, c)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	go c.announce(ctx)
	lines, failed := read(ctx, in)
	slots := make(chan struct{}, maxAtOnce)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			within(&work, lastAnswers, cancel)
			return err
		case line := <-lines:
			if err := b.take(ctx, c, line, slots, &work); err != nil {
				return err
			}
		}
	}
}

// lastAnswers is how long calls may go on after the client's input has ended:
// a script may have closed it right behind its last request.
const lastAnswers = 2 * time.Second

func within(work *sync.WaitGroup, d time.Duration, cancel func()) {
	timer := time.AfterFunc(d, cancel)
	defer timer.Stop()
	work.Wait()
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

// take handles one message. Requests run beside each other; what is no request
// is handled in its place.
func (b *Bridge) take(ctx context.Context, c *stdioClient, line []byte, slots chan struct{}, work *sync.WaitGroup) error {
	b.stats.messages.Add(1)
	if err := checkMessage(line); err != nil {
		return c.write(mcp.NewJSONRPCError(mcp.NewRequestId(nil), mcp.PARSE_ERROR, "the message was refused: "+err.Error(), nil))
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return c.write(mcp.NewJSONRPCError(mcp.NewRequestId(nil), mcp.INVALID_REQUEST, "the message was refused: "+err.Error(), nil))
	}
	switch {
	case m.Method == "" && len(m.ID) > 0:
		c.answered(m.ID, line)
		return nil
	case len(m.ID) == 0 || m.Method == string(mcp.MethodInitialize):
		if r := b.srv.HandleMessage(ctx, line); r != nil {
			return c.write(r)
		}
		return nil
	}
	select {
	case slots <- struct{}{}:
	default:
		return c.write(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{
			"code": -32000, "message": fmt.Sprintf("more than %d requests at once", maxAtOnce)}})
	}
	work.Go(func() {
		defer func() { <-slots }()
		if r := b.srv.HandleMessage(ctx, line); r != nil {
			_ = c.write(r)
		}
	})
	return nil
}

// read gives the lines of in.
func read(ctx context.Context, in io.Reader) (<-chan []byte, <-chan error) {
	lines, failed := make(chan []byte), make(chan error, 1)
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(r, maxMessage)
			if err == nil && len(line) > 0 {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					if err = nil; len(line) > 0 {
						err = ErrClosed
					}
				}
				failed <- err
				return
			}
		}
	}()
	return lines, failed
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

var (
	_ server.SessionWithLogging            = (*stdioClient)(nil)
	_ server.SessionWithClientInfo         = (*stdioClient)(nil)
	_ server.SessionWithElicitation        = (*stdioClient)(nil)
	_ server.SessionWithSampling           = (*stdioClient)(nil)
	_ server.SessionWithProtocolVersion    = (*stdioClient)(nil)
	_ server.SessionWithSubscriptionFilter = (*stdioClient)(nil)
)
