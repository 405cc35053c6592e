package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const maxQueued = 1024 // notifications that wait for one client

// stdioClient is the one client of standard streams. It is ours, not mcp-go's:
// that one is shared by the whole process, reads lines without a limit, and
// lets a result overtake the progress that came before it.
type stdioClient struct {
	notes chan mcp.JSONRPCNotification
	ready atomic.Bool
	waits func() // somebody is about to wait for an answer: read on

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
	had      [lists]int
	next     int
	awaiting map[string]chan json.RawMessage
	over     chan struct{} // closed when its input has ended: it answers nothing any more
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

// SetSubscriptionFilter implements server.SessionWithSubscriptionFilter: each
// subscription is a listener of its own, with its filter.
func (c *stdioClient) SetSubscriptionFilter(mcp.SubscriptionFilter) {}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter. A client
// that did not shake hands, one of 2026-07-28, is told of nothing that it did not
// subscribe to.
func (c *stdioClient) SubscriptionFilter() (f mcp.SubscriptionFilter, active bool) {
	return f, c.ProtocolVersion() == ""
}

// listed notes that the client gets a list as it is now.
func (c *stdioClient) listed(list, n int) { c.mu.Lock(); c.had[list] = n; c.mu.Unlock() }

// lists are which of each list the client got last; 0: none.
func (c *stdioClient) lists() [lists]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.had
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

// errOver is a question that nobody can answer any more.
var errOver = errors.New("the client ended its input before it answered")

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
	c.waits()
	var raw json.RawMessage
	select {
	case raw = <-answer:
	case <-c.over:
		select {
		case raw = <-answer: // its last word
		default:
			return nil, errOver
		}
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
	b, done := m.(json.RawMessage) // else it is encoded here
	var err error
	if !done {
		b, err = json.Marshal(m)
	}
	if err == nil && c.out.err == nil {
		_, err = c.out.w.Write(append(b, '\n'))
	}
	if err != nil && c.out.err == nil {
		c.out.err = err
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
