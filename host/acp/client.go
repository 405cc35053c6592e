package acp

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// Client is the way from one session back to its editor and the person there.
// It is the session's host.Approver, and where the client offers that its
// reach.Editor and reach.Terminal. It is safe for concurrent use.
type Client struct {
	srv *server
	dir string
	ses atomic.Pointer[Session] // nil until it is open
	can sdk.ClientCapabilities
	is  string // the client's own name

	asking chan struct{} // holds one: a question at a time

	mu       sync.Mutex
	calls    map[string]*shown // that the client was told of in this turn
	runs     map[string]string // sub-agents by their session
	names    map[string]string // and what they are called
	changes  map[string]change // files that were written, by path
	rejected map[string]bool   // questions that are not asked any more
	asked    int
}

var (
	_ host.Approver  = (*Client)(nil)
	_ reach.Editor   = (*Client)(nil)
	_ reach.Terminal = (*Client)(nil)
)

func newClient(s *server, dir string) *Client {
	c := &Client{srv: s, dir: filepath.Clean(dir), asking: make(chan struct{}, 1)}
	if real, err := filepath.EvalSymlinks(c.dir); err == nil {
		c.dir = real // as the tree names it
	}
	if h := s.client(); h != nil {
		c.can = h.ClientCapabilities
		if h.ClientInfo != nil {
			c.is = h.ClientInfo.Name
		}
	}
	c.reset()
	return c
}

func (c *Client) attach(s *Session) { c.ses.Store(s) }

func (c *Client) id() sdk.SessionId { return sdk.SessionId(c.ses.Load().ID) }

// reset forgets the calls of a turn that is over.
func (c *Client) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.changes = map[string]*shown{}, map[string]change{}
	c.runs, c.names = map[string]string{}, map[string]string{}
}

// Name is what the person knows the client by: "Zed", or "the editor".
func (c *Client) Name() string {
	if h := c.srv.client(); h != nil && h.ClientInfo != nil {
		if t := h.ClientInfo.Title; t != nil && *t != "" {
			return c.srv.line(*t, 40)
		}
		if c.is != "" {
			return c.srv.line(c.is, 40)
		}
	}
	return "the editor"
}

// HasTerminals reports whether the client runs commands.
func (c *Client) HasTerminals() bool { return c.can.Terminal }

// update tells the client something. What it is told after it has gone is lost.
func (c *Client) update(u sdk.SessionUpdate) {
	_ = c.srv.conn.SendNotification(context.WithoutCancel(c.srv.ctx), sdk.ClientMethodSessionUpdate, sdk.SessionNotification{SessionId: c.id(), Update: u})
}

// The bounds of what is shown, in bytes.
const (
	maxText  = 32 << 10 // a result, a note
	maxTitle = 200
	maxRaw   = 64 << 10 // the arguments or the structured result of a call
	maxDiff  = 1 << 20  // either side of a diff
	maxImage = 4 << 20
)

// text makes what strangers wrote safe to show.
func (s *server) text(t string) string { return s.Escape(strings.ToValidUTF8(t, "\uFFFD")) }

// line is text on one line, bounded.
func (s *server) line(t string, most int) string {
	t, _, more := strings.Cut(strings.TrimSpace(clip(t, 4*most)), "\n")
	if more {
		t += " …"
	}
	return clip(s.text(strings.ReplaceAll(t, "\t", " ")), most)
}

// clip cuts a text at a rune.
func clip(t string, most int) string {
	if len(t) <= most {
		return t
	}
	for most > 0 && !utf8.RuneStart(t[most]) {
		most--
	}
	return t[:most] + "…"
}

// fence shows a text as it is: clients render Markdown, and a tool's output, or
// a question, must not become headings, links and pictures.
func (s *server) fence(t string) sdk.ToolCallContent {
	t = s.text(clip(t, maxText))
	mark := "```"
	for strings.Contains(t, mark) {
		mark += "`"
	}
	return sdk.ToolContent(sdk.TextBlock(mark + "\n" + strings.TrimSuffix(t, "\n") + "\n" + mark))
}

// raw is the JSON of strangers for a client that shows it: safe and bounded.
func (s *server) raw(b json.RawMessage) any {
	if len(b) == 0 {
		return nil
	}
	if len(b) > maxRaw {
		return map[string]any{"truncated": s.text(clip(string(b), maxText))}
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return map[string]any{"text": s.text(string(b))}
	}
	return s.safe(v)
}

func (s *server) safe(v any) any {
	switch v := v.(type) {
	case string:
		return s.text(v)
	case []any:
		for i := range v {
			v[i] = s.safe(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[s.text(k)] = s.safe(x)
		}
		return out
	}
	return v
}

// inherited reports a variable that this process has with the same value: the
// client has its own.
func inherited(kv string) bool {
	k, v, _ := strings.Cut(kv, "=")
	return os.Getenv(k) == v
}
