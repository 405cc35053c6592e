// Package mcp stands on both sides of the Model Context Protocol: a Client
// turns the tools of MCP servers into tools of a Registry, and Serve shows a
// Registry to MCP clients.
//
// A server is a stranger. It costs its own calls at the most: it is started
// with a clean environment in a process group of its own, everything it sends
// is bounded, what it says of its tools is cleaned, compiled and pinned before
// a model sees it, and what it changes later waits for a person.
package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
)

// Defaults of Server.
const (
	DefaultTimeout = 60 * time.Second
	DefaultStartup = 10 * time.Second
)

// Server says how one MCP server is reached: Command is a program that speaks
// over its standard streams, URL an address.
type Server struct {
	Name    string // letters, digits, '-' and single '_', not as the last
	Command string
	Args    []string
	Dir     string   // absolute
	Env     []string // "K=V", beside reach.CleanEnv
	URL     string
	SSE     bool // the protocol's older HTTP transport
	Headers map[string]string
	// Identity is what Digest gives, where the fields hold values that change
	// while the server stays the same: the Digest of the definition without them.
	Identity string
	// Shown is the command line or URL for persons, without secrets.
	Shown string
	// Tokens keeps what a Login got, by the server's name. Nil: no OAuth.
	Tokens secret.Store
	// Renew gives the rights to renew a log-in at the token endpoint that gave
	// it. Nil: an expired one has ended.
	Renew func(endpoint string) policy.Rights
	// Hide is told each token before it is used. It may be nil.
	Hide func(secret string)

	Tools   []string      // the server's names of the tools to offer; nil: all
	Timeout time.Duration // of one call; progress prolongs it, to ten times at the most
	Startup time.Duration // until it answers
	// Rights are what starting the program or reaching the URL is asked.
	Rights policy.Rights
}

// Digest identifies what would be started or reached. Another digest is
// another server: nothing that was agreed to for one holds for the other. The
// folder does not count: one server may serve several projects.
func (s Server) Digest() string {
	if s.Identity != "" {
		return s.Identity
	}
	b, _ := json.Marshal([]any{s.Name, s.Command, s.Args, s.Env, s.URL, s.SSE, slices.Sorted(maps.Keys(s.Headers))})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// where is Shown, or what can be shown without knowing what is secret.
func (s Server) where() string {
	switch u, err := url.Parse(s.URL); {
	case s.Shown != "":
		return s.Shown
	case s.URL == "":
		return s.Command
	case err == nil:
		return u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	return ""
}

// Grant is the right to reach the server's URL, which naming the server gives;
// ok is false for programs.
func (s Server) Grant() (g policy.Grant, ok bool) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return g, false
	}
	return policy.Grant{Cap: abi.NetHTTP, Scope: []string{u.Scheme + "://" + u.Host + " GET,POST,DELETE"}}, true
}

func (s Server) check() error {
	// A trailing '_' would run into the "__" that ends the name: mcp__a___x is a's.
	if s.Name == "" || strings.Contains(s.Name, "__") || strings.HasSuffix(s.Name, "_") || strings.Trim(strings.ToLower(s.Name), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return fmt.Errorf("an MCP server's name holds letters, digits, '-' and single '_', and ends in no '_', not %q", s.Name)
	}
	if (s.Command == "") == (s.URL == "") {
		return fmt.Errorf("the MCP server %q has either a command or a URL", s.Name)
	}
	return nil
}

// Options of a Client.
type Options struct {
	Runner   *reach.Runner
	HTTP     *reach.HTTP
	Registry *host.Registry // where the tools appear and disappear
	// Pins is a folder that keeps which definitions of tools were agreed to.
	// With it, known tools are offered without starting their server. "": they
	// are agreed to anew in each session.
	Pins    string
	Version string // of this program, told to servers
	// Roots gives the folders that a server is told which asks for them; none is
	// an answer. It is called at each question. Where only a person can decide, and
	// ask is false, it gives ErrPerson at once. Nil: not offered to servers.
	Roots func(ctx context.Context, s Server, ask bool) ([]string, error)
	// Consent is asked before definitions that are new or changed since they
	// were agreed to are offered. Nil: they stay held.
	Consent func(context.Context, Change) (bool, error)
	// Elicit answers a server that asks the person something. Nil: not offered to servers.
	Elicit func(context.Context, Elicitation) (Reply, error)
	// Sample answers a server that asks for a model. Nil: not offered to servers.
	Sample func(context.Context, Sampling) (Sampled, error)
	// Log gets what servers log, one line at a time, and what they do wrong. It
	// must not block. What it is given comes from strangers.
	Log func(server, level, text string)
	// Scrub takes secrets out of what is kept of errors. It may be nil.
	Scrub func(string) string
}

// Change is what a server would change about its tools.
type Change struct {
	Server  string
	Added   []host.Spec
	Altered []host.Spec // as they would be
	Flagged []string    // what is unusual about the texts
	Digest  string      // of all of it; "" when nothing is held
}

// Status is how one server is doing.
type Status struct {
	Name    string   `json:"name"`
	Where   string   `json:"where,omitempty"` // its command or URL, for persons
	State   string   `json:"state"`           // "idle", "starting", "ready", "failed"
	Error   string   `json:"error,omitempty"`
	Server  string   `json:"server,omitempty"` // what it calls itself, and its version
	Version string   `json:"protocol,omitempty"`
	Tools   []string `json:"tools"`
	Prompts []string `json:"prompts,omitempty"`
	Held    []string `json:"held,omitempty"`    // changed definitions that wait for a person
	Refused []string `json:"refused,omitempty"` // tools that cannot be offered, with the reason
	Flagged []string `json:"flagged,omitempty"` // what is odd about texts of tools, offered or held
	Last    *Last    `json:"last,omitempty"`    // how it went when another session started it
}

// Last is how a server did when it was last started.
type Last struct {
	At    time.Time `json:"at"`
	Error string    `json:"error,omitempty"` // it could not be started
	Held  []string  `json:"held,omitempty"`  // as in Status
}

// Client connects to MCP servers. Close it: that ends what it started. It is
// safe for concurrent use.
type Client struct {
	opt    Options
	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu    sync.Mutex
	links map[string]*link
	order []string
}

// NewClient makes a client that knows no server yet.
func NewClient(o Options) *Client {
	c := &Client{opt: o, links: map[string]*link{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Add makes servers known and offers those of their tools that were agreed to
// before. Nothing is started.
func (c *Client) Add(servers ...Server) error {
	for _, s := range servers {
		if err := s.check(); err != nil {
			return err
		}
		if s.Timeout <= 0 {
			s.Timeout = DefaultTimeout
		}
		if s.Startup <= 0 {
			s.Startup = DefaultStartup
		}
		l := newLink(c, s)
		c.mu.Lock()
		_, taken := c.links[strings.ToLower(s.Name)]
		if !taken {
			c.links[strings.ToLower(s.Name)] = l
			c.order = append(c.order, strings.ToLower(s.Name))
		}
		c.mu.Unlock()
		if taken {
			return fmt.Errorf("there are two MCP servers named %q", s.Name)
		}
		l.restore()
	}
	return nil
}

// Start begins, in parallel and in the background, every server whose tools
// are not known yet. It returns at once.
func (c *Client) Start() {
	for _, l := range c.all() {
		if !l.known() {
			go func() { _, _ = l.up(c.ctx) }()
		}
	}
}

// Await waits until the server that a tool's name points to has answered or
// failed, when its tools are not known yet. It starts it if need be.
func (c *Client) Await(ctx context.Context, tool string) error {
	l := c.linkOf(tool)
	if l == nil || l.known() && l.offers(tool) {
		return nil
	}
	_, err := l.up(ctx)
	return err
}

// Connect starts one server, or gives the error that it has now.
func (c *Client) Connect(ctx context.Context, name string) error {
	l, err := c.link(name)
	if err != nil {
		return err
	}
	_, err = l.up(ctx)
	return err
}

// Held gives what a server would change.
func (c *Client) Held(name string) (Change, error) {
	l, err := c.link(name)
	if err != nil {
		return Change{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change(), nil
}

// Agree accepts a change that Held gave, as if Consent had. What the server
// changed since then is not agreed to: that is ErrChanged.
func (c *Client) Agree(ch Change) error {
	l, err := c.link(ch.Server)
	if err != nil {
		return err
	}
	return l.agree(ch)
}

// ErrPerson is an answer that only a person can give.
var ErrPerson = errors.New("a person has to be asked")

// ErrChanged is what was to be agreed to not being what a server has now.
var ErrChanged = errors.New("the server has changed its tools again since they were shown")

// Status tells how the servers are doing, in the order in which they were added.
func (c *Client) Status() []Status {
	out := []Status{}
	for _, l := range c.all() {
		out = append(out, l.status())
	}
	return out
}

// Close ends the servers with everything they started, until ctx ends.
func (c *Client) Close(ctx context.Context) error {
	c.cancel()
	all := c.all()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, l := range all {
		wg.Go(func() { errs[i] = l.close(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *Client) all() []*link {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]*link, 0, len(c.order))
	for _, n := range c.order {
		out = append(out, c.links[n])
	}
	return out
}

func (c *Client) link(name string) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l, ok := c.links[strings.ToLower(name)]; ok {
		return l, nil
	}
	return nil, fmt.Errorf("there is no MCP server %q", name)
}

func (c *Client) linkOf(tool string) *link {
	server, _, ok := SplitName(tool)
	if !ok {
		return nil
	}
	for _, l := range c.all() {
		if strings.EqualFold(l.s.Name, server) || strings.EqualFold(shorten(l.s.Name), server) {
			return l
		}
	}
	return nil
}

func (c *Client) log(server, level, text string) {
	if c.opt.Log != nil {
		c.opt.Log(server, level, text)
	}
}
