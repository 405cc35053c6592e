package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host"
)

// link is one server of a Client: what was agreed to, and the connection, when
// there is one. A server is started when it is needed, and again after it
// ended, ever more slowly while it fails.
type link struct {
	listing sync.Mutex // held by list

	c *Client
	s Server

	mu      sync.Mutex
	conn    *conn
	attempt *attempt
	fails   int // in a row
	retry   time.Time
	err     error // of the last attempt, or why the connection ended
	closed  bool
	pinned  bool                   // agreed holds what an earlier listing gave
	torn    bool                   // something was agreed to, and cannot be read
	agreed  map[string]*definition // by the server's name
	listed  map[string]bool        // in the last listing; nil before the first
	held    map[string]*definition // new or altered, waiting for a person
	offered map[string]*definition // in the registry
	refused []string
	prompts []json.RawMessage // as the server wrote them
	reads   bool              // it has resources
	reader  bool              // the tool that reads them is in the registry
	asking  string            // digest of the change that a person was asked about last
	asked   bool              // and has not answered yet
	unheard int               // questions in a row that were not answered with a yes

	renewing chan struct{} // held while the log-in is read and renewed
}

// attempt is a start that callers wait for together.
type attempt struct {
	done chan struct{}
	conn *conn
	err  error
}

const (
	firstDelay = time.Second
	lastDelay  = time.Minute
	steady     = 10 * time.Second // a connection that lived so long counts as a success
)

func newLink(c *Client, s Server) *link {
	return &link{c: c, s: s, agreed: map[string]*definition{}, held: map[string]*definition{}, offered: map[string]*definition{}, renewing: make(chan struct{}, 1)}
}

// up gives the connection, and starts the server if there is none. The start
// goes on when ctx ends: others may wait for it.
func (l *link) up(ctx context.Context) (*conn, error) {
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, fmt.Errorf("the MCP server %q has been closed", l.s.Name)
	case l.conn != nil && !l.conn.isLost():
		defer l.mu.Unlock()
		return l.conn, nil
	}
	if l.conn != nil {
		l.lost(l.conn, l.conn.why())
	}
	if l.attempt == nil {
		if wait := time.Until(l.retry); wait > 0 {
			defer l.mu.Unlock()
			return nil, fmt.Errorf("the MCP server %q failed %d times in a row and is not started again for %s: %w", l.s.Name, l.fails, wait.Round(time.Second), l.err)
		}
		l.attempt = &attempt{done: make(chan struct{})}
		go l.try(l.attempt)
	}
	a := l.attempt
	l.mu.Unlock()
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// with runs do on the connection, which is nil when there is none. A server that
// does not know the session any more has taken nothing: a new one is begun, as
// the protocol wants it, and do runs once more.
func (l *link) with(ctx context.Context, do func(*conn) error) (*conn, error) {
	for again := true; ; again = false {
		c, err := l.up(ctx)
		if err != nil {
			return nil, err
		}
		if err = do(c); !errors.Is(err, errUnknown) {
			return c, err
		}
		if l.retire(c); !again {
			return c, err
		}
	}
}

func (l *link) try(a *attempt) {
	ctx, cancel := context.WithTimeout(l.c.ctx, l.s.Startup)
	defer cancel()
	conn, err := l.connect(ctx)
	if err == nil {
		if err = l.list(ctx, conn); err != nil {
			conn.shut(l.c.ctx)
		}
	}
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("it was not ready within %s", l.s.Startup)
		}
		err = fmt.Errorf("starting the MCP server %q: %w", l.s.Name, cleaned(err))
	}
	l.mu.Lock()
	l.attempt, a.conn, a.err = nil, conn, err
	switch {
	case err != nil:
		a.conn = nil
		l.failed(err)
		if l.c.ctx.Err() == nil { // else it was we who ended it
			l.keepLast(err)
		}
	case l.closed:
		go conn.shut(context.Background())
		a.conn, a.err = nil, fmt.Errorf("the MCP server %q has been closed", l.s.Name)
	default:
		l.conn, l.err = conn, nil
		conn.ready.Store(true)
		go conn.giveRoots()
	}
	l.mu.Unlock()
	close(a.done)
	if err != nil && l.c.ctx.Err() == nil {
		l.c.log(l.s.Name, "error", err.Error())
	}
}

// failed is called with the lock held.
func (l *link) failed(err error) {
	l.err = err
	l.fails++
	l.retry = time.Now().Add(min(firstDelay<<min(l.fails-1, 10), lastDelay))
}

// lost is called with the lock held. A server that ends for the first time in a
// while is started again at once.
func (l *link) lost(c *conn, why error) {
	if l.conn != c {
		return
	}
	l.conn = nil
	if time.Since(c.began) > steady || c.answered.Load() {
		l.fails = 0
	}
	if l.fails++; l.fails == 1 {
		l.err = why
		return
	}
	l.fails--
	l.failed(why)
}

// drop forgets a connection that turned out to be of no use.
func (l *link) drop(c *conn, why error) {
	l.mu.Lock()
	l.lost(c, why)
	l.mu.Unlock()
	go c.shut(context.Background())
}

// retire is drop, once the calls are over that are going on: the server may
// still answer those that it took.
func (l *link) retire(c *conn) {
	c.mu.Lock()
	c.retired = true
	if len(c.calls) == 0 {
		go c.shut(context.Background())
	}
	c.mu.Unlock()
	why := c.why()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost(c, why)
}

// known reports whether the server's tools are known without starting it.
func (l *link) known() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pinned || l.listed != nil
}

func (l *link) offers(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.offered {
		if d.Spec.Name == name {
			return true
		}
	}
	return false
}

// has reports whether the server is known to have a tool.
func (l *link) has(tool string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listed[tool] || l.agreed[tool] != nil || l.held[tool] != nil
}

func (l *link) wants(tool string) bool {
	return l.s.Tools == nil || slices.Contains(l.s.Tools, tool)
}

func (l *link) status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{Name: l.s.Name, Where: l.s.where(), State: "idle", Tools: []string{}, Refused: slices.Clone(l.refused)}
	for _, d := range l.offered {
		s.Tools = append(s.Tools, d.Spec.Name)
		s.Flagged = append(s.Flagged, d.flagged()...)
	}
	for _, d := range l.held {
		s.Held = append(s.Held, d.Spec.Name)
		s.Flagged = append(s.Flagged, d.flagged()...)
	}
	slices.Sort(s.Flagged)
	s.Flagged = slices.Compact(s.Flagged)
	for _, p := range prompts(l.s.Name, l.prompts) {
		s.Prompts = append(s.Prompts, p.Name)
	}
	if l.reader {
		s.Tools = append(s.Tools, Name(l.s.Name, readResource))
	}
	slices.Sort(s.Tools)
	slices.Sort(s.Held)
	switch {
	case l.attempt != nil:
		s.State = "starting"
	case l.conn != nil && !l.conn.isLost():
		s.State = "ready"
		s.Server, s.Version = l.conn.server, l.conn.rpc.ProtocolVersion()
	case l.err != nil:
		s.State, s.Error = "failed", l.err.Error()
	default:
		s.Last = l.readLast()
	}
	return s
}

func (l *link) close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	conn, a := l.conn, l.attempt
	l.conn = nil
	l.mu.Unlock()
	if a != nil {
		select {
		case <-a.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if conn == nil {
		return nil
	}
	return conn.shut(ctx)
}

// offer brings the registry in line with what was agreed to and is listed, in
// the order of names: a model's prompt must not change by chance. It is called
// with the lock held.
func (l *link) offer() {
	now := l.current()
	reg := l.c.opt.Registry
	if reg == nil {
		l.offered = now
		return
	}
	for tool, d := range l.offered {
		if now[tool] != d {
			reg.Remove(d.Spec.Name)
			delete(l.offered, tool)
		}
	}
	l.offerReader(reg)
	var fresh []host.Tool
	for _, tool := range slices.Sorted(maps.Keys(now)) {
		if l.offered[tool] == nil {
			fresh = append(fresh, &remote{l: l, d: now[tool]})
		}
	}
	if reg.Add(fresh...) == nil {
		l.offered = now
		return
	}
	for _, t := range fresh { // one of them cannot be added: the others are
		d := t.(*remote).d
		if err := reg.Add(t); err == nil {
			l.offered[d.Tool] = d
		} else if line := fmt.Sprintf("%s: %v", d.Tool, err); len(l.refused) < maxRefused && !slices.Contains(l.refused, line) {
			l.refused = append(l.refused, line)
		}
	}
}

// offerReader offers the tool that reads resources, where there are some and
// the server has no tool of that name. It is called with the lock held.
func (l *link) offerReader(reg *host.Registry) {
	_, taken := l.agreed[readResource]
	want := l.reads && !taken && l.wants(readResource)
	switch {
	case want && !l.reader:
		l.reader = reg.Add(&reader{l}) == nil
	case !want && l.reader:
		reg.Remove(Name(l.s.Name, readResource))
		l.reader = false
	}
}

func (l *link) current() map[string]*definition {
	out := map[string]*definition{}
	for tool, d := range l.agreed {
		if (l.listed == nil || l.listed[tool]) && l.wants(tool) {
			out[tool] = d
		}
	}
	return out
}

// restore offers what was agreed to in an earlier session. Where that cannot be
// read, the person is asked again at the next listing.
func (l *link) restore() {
	p, err := l.readPins()
	if err != nil {
		l.mu.Lock()
		l.torn = true
		l.mu.Unlock()
		l.c.log(l.s.Name, "warning", "what was agreed to cannot be read and is asked again: "+err.Error())
	}
	if err != nil || p == nil {
		return
	}
	defs, refused := defineAll(l.s.Name, p.Tools, func(string) bool { return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pinned, l.refused, l.prompts, l.reads = true, refused, p.Prompts, p.Resources
	for _, d := range defs {
		l.agreed[d.Tool] = d
	}
	l.offer()
}

// settle takes a listing in. The first one that a server ever gives is agreed
// to by whoever added the server; after that, what is new or different is held.
func (l *link) settle(defs []*definition, refused []string, prompts []json.RawMessage, resources bool) {
	l.mu.Lock()
	if l.closed { // a list that came late: nothing is written after the end
		l.mu.Unlock()
		return
	}
	first := !l.pinned && !l.torn && l.listed == nil
	l.listed, l.held, l.refused = map[string]bool{}, map[string]*definition{}, refused
	other := l.reads != resources || !slices.EqualFunc(l.prompts, prompts, func(a, b json.RawMessage) bool { return string(a) == string(b) })
	l.prompts, l.reads = prompts, resources
	for _, d := range defs {
		l.listed[d.Tool] = true
		have, ok := l.agreed[d.Tool]
		switch {
		case first:
			l.agreed[d.Tool] = d
		case ok && have.Digest == d.Digest:
		default:
			l.held[d.Tool] = d
		}
	}
	var odd []string
	for _, d := range defs {
		if first {
			odd = append(odd, d.flagged()...)
		}
	}
	l.offer()
	var err error
	if first || other && !l.torn || l.torn && len(l.held) == 0 {
		err = l.writePins()
	}
	l.keepLast(nil)
	change := l.change()
	ask := l.asksAbout(change)
	l.mu.Unlock()
	if err != nil {
		l.c.log(l.s.Name, "error", "what was agreed to could not be kept: "+err.Error())
	}
	if len(odd) > 0 {
		l.c.log(l.s.Name, "warning", "what it says of its tools is odd: "+strings.Join(odd[:min(len(odd), 3)], "; ")+more(len(odd)-3))
	}
	if ask {
		go l.consent(change)
	} else if change.Digest != "" && l.c.opt.Consent == nil {
		l.c.log(l.s.Name, "warning", "it changed its tools; the changes are held until a person agrees")
	}
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("; and %d more", n)
}
