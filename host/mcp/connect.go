package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/host/reach"
)

// conn is one connection to a server.
type conn struct {
	l      *link
	rpc    *client.Client
	proc   *process // nil over HTTP
	server string   // name and version
	caps   mcp.ServerCapabilities
	// session says that a server over HTTP knows the connection by a session,
	// which it may end.
	session bool
	ready   atomic.Bool // it has been started
	began   time.Time
	gone    chan struct{} // closed when it is lost

	busy     atomic.Int64  // requests that wait
	answered atomic.Bool   // it has served a call
	asking   atomic.Int64  // questions of the server that wait
	turn     chan struct{} // held by the question that is being asked
	owed     atomic.Bool   // roots that it was not told while it started
	token    atomic.Int64
	lose     sync.Once
	logs     limiter
	requests limiter // of the server, over streamable HTTP

	mu       sync.Mutex
	progress map[string]func(progress)
	calls    []context.Context // that are going on
	retired  bool              // to be shut when none goes on
	given    []string          // roots that a person agreed to, for its next question
	relist   *time.Timer
	changed  chan struct{} // closed when the list that was announced is taken in
	since    time.Time     // of the first announcement of this burst
	due      time.Time     // when the next list may be asked for
	pace     time.Duration // between lists, while announcements do not end
}

// connect starts or reaches the server, and shakes hands.
func (l *link) connect(ctx context.Context) (*conn, error) {
	c, err := l.handshake(ctx, false)
	asks := l.c.opt.Elicit != nil || l.c.opt.Sample != nil || l.c.opt.Roots != nil
	if err != nil || l.s.URL == "" || l.s.SSE || mcp.IsModernProtocol(c.rpc.ProtocolVersion()) || !asks && c.changing().IsEmpty() {
		return c, err
	}
	// Before 2026-07-28 announcements and questions come on a stream of their
	// own, which mcp-go opens only if it is told to before the handshake.
	again, err := l.handshake(ctx, true)
	if err != nil {
		return c, nil
	}
	go c.shut(l.c.ctx)
	return again, nil
}

func (l *link) handshake(ctx context.Context, listen bool) (*conn, error) {
	c := &conn{
		l: l, began: time.Now(), gone: make(chan struct{}), progress: map[string]func(progress){},
		logs: limiter{most: 100, every: 10 * time.Second}, requests: limiter{most: maxFromServer, every: 10 * time.Second}, turn: make(chan struct{}, 1),
	}
	t, err := c.transport(ctx, listen)
	if err != nil {
		return nil, err
	}
	c.rpc = client.NewClient(t, c.options()...)
	c.rpc.OnNotification(c.notified)
	if err := c.initialize(ctx); err != nil {
		if c.proc != nil && ctx.Err() == nil && (errors.Is(err, transport.ErrTransportClosed) || c.isLost()) {
			err = c.proc.why()
		}
		_ = c.shut(l.c.ctx)
		return nil, plainly(err)
	}
	c.session = c.proc == nil && (l.s.SSE || t.GetSessionId() != "")
	if changes := c.changing(); mcp.IsModernProtocol(c.rpc.ProtocolVersion()) && !changes.IsEmpty() {
		_, _ = c.rpc.ListenAsync(l.c.ctx, changes, func(error) {})
	}
	return c, nil
}

// changing are the lists of the server that matter here and that it tells the
// changes of.
func (c *conn) changing() mcp.SubscriptionFilter {
	return mcp.SubscriptionFilter{
		ToolsListChanged:   c.caps.Tools != nil && c.caps.Tools.ListChanged,
		PromptsListChanged: c.caps.Prompts != nil && c.caps.Prompts.ListChanged,
	}
}

func (c *conn) initialize(ctx context.Context) error {
	// The transport's context bounds server requests that it serves, so it is
	// the client's, not the attempt's; the handshake is bounded by ctx.
	started := make(chan error, 1)
	go func() { started <- c.rpc.Start(c.l.c.ctx) }()
	select {
	case err := <-started:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	req := mcp.InitializeRequest{}
	req.Params.ClientInfo = mcp.Implementation{Name: "elfhost", Version: c.l.c.opt.Version}
	c.busy.Add(1)
	res, err := c.rpc.Initialize(ctx, req)
	c.busy.Add(-1)
	if err != nil {
		return err
	}
	name, _ := told("", res.ServerInfo.Name+" "+res.ServerInfo.Version, maxTitle)
	c.server, c.caps = name, res.Capabilities
	return nil
}

// options say what we offer to servers: only what can be answered.
func (c *conn) options() []client.ClientOption {
	opts := []client.ClientOption{
		client.WithDiscoverTimeout(c.l.s.Startup / 4), // servers from before 2026-07-28 may not answer it at all
		client.WithMaxInputRoundTrips(8),
	}
	if c.l.c.opt.Elicit != nil {
		opts = append(opts, client.WithElicitationHandler(c))
	}
	if c.l.c.opt.Roots != nil {
		opts = append(opts, client.WithRootsHandler(c))
	}
	if c.l.c.opt.Sample != nil {
		opts = append(opts, client.WithSamplingHandler(c))
	}
	return opts
}

// quiet keeps mcp-go's own log from the terminal: it quotes strangers.
var quiet = slog.New(slog.DiscardHandler)

func (c *conn) transport(ctx context.Context, listen bool) (transport.Interface, error) {
	s := c.l.s
	if s.URL == "" {
		p, err := c.l.spawn(ctx, &c.busy)
		if err != nil {
			return nil, err
		}
		c.proc = p
		go func() {
			<-p.job.Done()
			c.lose.Do(func() { close(c.gone) })
		}()
		return &stdioTap{transport.NewIO(p.out, p.in, io.NopCloser(eof{}))}, nil
	}
	// Streams live as long as the connection: calls have their own limits.
	hc := c.l.c.opt.HTTP.Client(s.Rights, reach.HTTPLimits{Time: -1, Body: -1, Redirects: 3}, nil)
	below := &tripper{next: &bearer{hc.Transport, c.l}, busy: &c.busy}
	hc.Transport = below
	post := poster{web: hc, headers: s.Headers, version: func() string { return c.rpc.ProtocolVersion() }}
	if s.SSE {
		return c.sse(hc, below, post)
	}
	below.take = c.tooMany
	opts := []transport.StreamableHTTPCOption{transport.WithHTTPBasicClient(hc), transport.WithHTTPHeaders(s.Headers), transport.WithHTTPLogger(quiet)}
	if listen {
		//lint:ignore SA1019 servers before 2026-07-28 tell of new tools on the standing GET stream
		opts = append(opts, transport.WithContinuousListening())
	}
	t, err := transport.NewStreamableHTTP(s.URL, opts...)
	if err != nil {
		return nil, err
	}
	post.where, post.session = func() string { return s.URL }, t.GetSessionId
	return &httpTap{t, post, c.l.c.ctx}, nil
}

// maxFromServer is how many requests a server may make over streamable HTTP in ten
// seconds. mcp-go answers each as soon as it comes, over a connection of its own.
const maxFromServer = 200

// tooMany reports whether a message is a request over that. It is not answered.
func (c *conn) tooMany(message []byte) bool { return asksUs(message) && !c.requests.allow() }

func (c *conn) sse(hc *http.Client, below *tripper, post poster) (transport.Interface, error) {
	s := c.l.s
	t, err := transport.NewSSE(s.URL, transport.WithHTTPClient(hc), transport.WithHeaders(s.Headers), transport.WithSSELogger(quiet),
		transport.WithResponseTimeout(forever)) // calls have their own limits
	if err != nil {
		return nil, err
	}
	t.SetConnectionLostHandler(func(error) { c.lose.Do(func() { close(c.gone) }) })
	post.session = func() string { return "" }
	post.where = func() string {
		if u := t.GetEndpoint(); u != nil {
			return u.String()
		}
		return "" // it asks before it has said where
	}
	tap := &sseTap{SSE: t, post: post, life: c.l.c.ctx, gone: c.gone, slots: make(chan struct{}, maxServed)}
	below.take = tap.take
	return tap, nil
}

// forever is no limit.
const forever = 10 * 365 * 24 * time.Hour

type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

func (c *conn) isLost() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// why says why the connection ended.
func (c *conn) why() error {
	if c.proc != nil {
		return c.proc.why()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return errUnknown
	}
	return errors.New("the connection was lost")
}

func (c *conn) shut(ctx context.Context) error {
	c.mu.Lock()
	if c.relist != nil {
		c.relist.Stop()
	}
	c.mu.Unlock()
	if c.proc == nil {
		c.lose.Do(func() { close(c.gone) })
		done := make(chan struct{})
		go func() { _ = c.rpc.Close(); close(done) }() // tells the server that the session ends
		select {
		case <-done:
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		return nil
	}
	_ = c.rpc.Close()
	err := c.proc.shut(ctx)
	c.proc.out.Close()
	return err
}

// errUnknown is a session that the server does not know any more: it took the
// request as little as any other.
var errUnknown = errors.New("it has ended the session")

// request runs one exchange and gives the result as the server wrote it:
// mcp-go's own types drop what they do not know.
func (c *conn) request(ctx context.Context, do func(context.Context) error) (json.RawMessage, error) {
	var raw json.RawMessage
	c.busy.Add(1)
	with, s := sent(ctx)
	err := do(context.WithValue(with, rawKey{}, &raw))
	c.busy.Add(-1)
	if raw != nil { // whatever mcp-go made of it
		if !utf8.Valid(raw) { // JSON's reader minds that as little as its checks do
			raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
		}
		return raw, nil
	}
	if err == nil {
		err = errors.New("it answered nothing")
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	ended := errors.Is(err, transport.ErrSessionTerminated)
	switch {
	case c.session && !s.taken.Load() && (ended || s.unknown.Load()):
		return nil, errUnknown
	case errors.Is(err, transport.ErrTransportClosed) || c.isLost():
		return nil, &lostError{c.why()}
	case ended:
		return nil, &lostError{errUnknown}
	}
	return nil, plainly(err)
}

// plainly is the refusal inside an error, without what libraries put around it.
func plainly(err error) error {
	var r refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.Is(err, transport.ErrLegacySSEServer):
		return errors.New("it does not take the first request of streamable HTTP; if it speaks the older HTTP+SSE, its transport is \"sse\"")
	}
	return err
}

// maxWords is what is kept of what a server says of a failure.
const maxWords = 2 << 10

// cleaned is an error that holds a stranger's words, as they may be shown.
func cleaned(err error) error {
	text, _ := told("", err.Error(), maxWords)
	if text == err.Error() {
		return err
	}
	return &saidError{text, err}
}

// saidError is an error in other words.
type saidError struct {
	text string
	err  error
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.err }

// lostError is a connection that ended while a request waited.
type lostError struct{ why error }

func (e *lostError) Error() string { return e.why.Error() }

// list takes in what tools and prompts the server has, once at a time: what was
// listed last counts.
func (l *link) list(ctx context.Context, c *conn) error {
	l.listing.Lock()
	defer l.listing.Unlock()
	var raws, more []json.RawMessage
	var err error
	if c.caps.Tools != nil {
		raws, err = c.pages(ctx, "tools", func(ctx context.Context, cursor mcp.Cursor) error {
			var req mcp.ListToolsRequest
			req.Params.Cursor = cursor
			_, err := c.rpc.ListToolsByPage(ctx, req)
			return err
		})
		if err != nil {
			return err
		}
	}
	if c.caps.Prompts != nil {
		more, err = c.pages(ctx, "prompts", func(ctx context.Context, cursor mcp.Cursor) error {
			var req mcp.ListPromptsRequest
			req.Params.Cursor = cursor
			_, err := c.rpc.ListPromptsByPage(ctx, req)
			return err
		})
		switch {
		case err != nil && (ctx.Err() != nil || c.isLost()): // nothing is known of them
			return err
		case err != nil: // they are not worth the tools, and stay as they were
			l.c.log(l.s.Name, "error", cleaned(err).Error())
			l.mu.Lock()
			more = l.prompts
			l.mu.Unlock()
		}
	}
	defs, refused := defineAll(l.s.Name, raws, l.wants)
	l.settle(defs, refused, more[:min(len(more), maxPrompts)], c.caps.Resources != nil)
	return nil
}

// pages takes a listing in, page by page. A cursor that does not advance is
// the end.
func (c *conn) pages(ctx context.Context, what string, ask func(context.Context, mcp.Cursor) error) (out []json.RawMessage, err error) {
	size, seen := 0, map[string]bool{"": true}
	for cursor := ""; ; {
		raw, err := c.request(ctx, func(ctx context.Context) error { return ask(ctx, mcp.Cursor(cursor)) })
		if err != nil {
			return nil, fmt.Errorf("listing its %s: %w", what, err)
		}
		var page map[string]json.RawMessage
		var some []json.RawMessage
		var next string
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("reading its list of %s: %w", what, err)
		}
		for key, to := range map[string]any{what: &some, "nextCursor": &next} {
			if v, ok := page[key]; ok {
				if err := json.Unmarshal(v, to); err != nil {
					return nil, fmt.Errorf("reading its list of %s: %w", what, err)
				}
			}
		}
		if size += len(raw); size > maxListing || len(out)+len(some) > maxTools {
			return nil, fmt.Errorf("it lists too much: more than %d %s or %d MiB", maxTools, what, maxListing>>20)
		}
		out = append(out, some...)
		if cursor = next; seen[cursor] || len(seen) > maxPages {
			return out, nil
		}
		seen[cursor] = true
	}
}
