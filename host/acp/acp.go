// Package acp is the agent behind an editor: the Agent Client Protocol, version
// 1, over two streams. It knows the protocol alone; what a session is and does
// comes from Options.Open.
//
// The client is a stranger's program. Its lines are bounded, what it asks for
// goes through the same Gate as everywhere else, and when it goes away
// everything that it started ends. What it is shown is bounded, and is escaped
// where it does not come from the person.
package acp

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Options of Serve. Open, Show and Escape are required.
type Options struct {
	Version string // of this program
	// Open begins a session, or goes on with an earlier one. It may be called
	// for several at a time. Its errors are shown to the person, an *Error by its kind.
	Open func(ctx context.Context, s Setup) (*Session, error)
	// List gives the sessions that Open can go on with, the last used first, and
	// where the next ones begin (0: there are none). Nil: sessions cannot be listed.
	List func(ctx context.Context, q Query) (list []Listed, next int, err error)
	// Show makes a question; ok is false when it cannot be shown whole.
	Show func(host.Ask) (q Question, ok bool)
	// Escape makes text of several lines safe to show; tabs and newlines stay.
	Escape func(string) string
	Log    *slog.Logger // what goes wrong with the protocol; nil: nothing is logged
}

// Setup says which session a client wants.
type Setup struct {
	Dir     string // the workspace, absolute
	Resume  string // the session to go on with, in full; "": a new one
	Servers []Server
	Client  *Client // the way back to the person and the editor
}

// Server is an MCP server that the person's editor brings along: by command,
// or by URL.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     []string // "K=V"
	URL     string
	SSE     bool
	Headers map[string]string
}

// Session is one conversation, as Open gives it. Turn, SetModel and Close are
// called one at a time, the other functions at any time.
type Session struct {
	ID   string
	Gate *host.Gate
	// Tools knows what the tools are that calls name.
	Tools *host.Registry
	// Tree and Rights are for showing where a call works, and what it changes.
	Tree   *reach.Tree
	Rights policy.Rights
	// Turn lets the agent work on what was said, see agent.Loop.Run.
	Turn func(ctx context.Context, prompt ...abi.Content) iter.Seq2[agent.Event, error]
	// History is what was said and done before, oldest first.
	History func(ctx context.Context) ([]agent.Record, error)
	Usage   func() agent.Usage
	// Commands can be typed after a slash; Turn knows them.
	Commands func(ctx context.Context) []Command
	// Changed gives a channel that is closed when Commands may give others than at
	// the time of the call. Nil: they change with turns alone.
	Changed func() <-chan struct{}
	// Model is the one that answers, Models are others that are known without asking anybody.
	Model    func() Model
	Models   func() []Model
	SetModel func(ctx context.Context, name string) error
	// Efforts are how much the model may be asked to think, SetEffort says it
	// from the next prompt on.
	Efforts   []string
	SetEffort func(word string) error
	// Notes are, once, what a person should know.
	Notes func() []string
	Close func(ctx context.Context) error
}

// Model is a model, and how many tokens its context holds (0: not known).
type Model struct {
	Name   string
	Window int64
	Effort string // how much it thinks; "": as it does by itself
}

// Command is a slash command.
type Command struct{ Name, Description, Hint string }

// Query chooses sessions.
type Query struct {
	Dir           string // only those of this folder; "": all
	Limit, Offset int
}

// Listed is a session in a list.
type Listed struct {
	ID, Dir, Title string
	Updated        time.Time
}

// Error is an error that a client is told by its kind.
type Error struct {
	Kind ErrorKind
	Text string // for the person, may have several lines
}

func (e *Error) Error() string { return e.Text }

// ErrorKind is the kind of an Error.
type ErrorKind int

// The kinds of errors.
const (
	Failed   ErrorKind = iota
	NoModel            // no key, or one that the vendor refuses
	NotFound           // there is no such session
	Invalid            // what the client asked for cannot be
)

// Serve speaks with one client until its input ends or ctx does. Turns are
// then cancelled, and sessions closed and waited for, within a bounded time. in
// is read on until it gives something or fails, even after ctx has ended.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := &server{Options: o, ctx: ctx, sessions: map[string]*session{}}
	s.connect(in, out, cancel)
	select {
	case <-ctx.Done():
	case <-s.conn.Done():
	}
	cancel(errGone)
	return s.close(context.WithoutCancel(ctx))
}
