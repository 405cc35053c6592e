// Package hooks runs the programs that a person has put around an agent's work:
// [[hooks]] in the user's config.toml, never a project's.
//
// A hook gets one JSON object on standard input (Event) and may answer with
// one on standard output (Reply). What it says can only narrow: it may refuse
// a call or a prompt, and add words for the model; nothing it says allows
// anything. A hook that stands before something and fails, in whatever way,
// refuses it: a guard that does not work lets nobody through.
//
//	exit 0            go on, unless the reply says deny
//	exit 2            deny; standard error is the reason
//	anything else     before_tool, prompt: deny; all others: a note for the person
package hooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
)

// When a hook runs, as config.toml has it.
const (
	SessionStart = "session_start"
	Prompt       = "prompt"
	BeforeTool   = "before_tool"
	AfterTool    = "after_tool"
	Stop         = "stop"
	SessionEnd   = "session_end"
)

// Limits of what a hook says.
const (
	maxReply  = 64 << 10
	maxReason = 2000 // characters
	maxEvent  = 1 << 20

	defaultTimeout = time.Minute
)

// Event is what a hook is told. Fields that do not belong to it are left out.
type Event struct {
	V       int             `json:"v"` // 1
	Event   string          `json:"event"`
	Session string          `json:"session,omitempty"`
	Dir     string          `json:"dir"` // the workspace
	Mode    host.Mode       `json:"mode,omitempty"`
	Agent   string          `json:"agent,omitempty"` // a sub-agent's name
	Step    int             `json:"step,omitempty"`
	Call    string          `json:"call,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Origin  string          `json:"origin,omitempty"` // "builtin", "plugin NAME", …
	Args    json.RawMessage `json:"args,omitempty"`
	Result  *Result         `json:"result,omitempty"` // after_tool
	Prompt  string          `json:"prompt,omitempty"` // prompt
	Reason  string          `json:"reason,omitempty"` // stop: why the agent stopped
}

// Result is what a tool answered, cut to what the model gets.
type Result struct {
	Text    string `json:"text"`
	IsError bool   `json:"isError"`
}

// Reply is what a hook may answer. An empty answer is an empty Reply.
type Reply struct {
	Decision string `json:"decision"` // "", "allow" (go on), "deny" or "block"
	Reason   string `json:"reason"`   // of a denial, for the model
	Context  string `json:"context"`  // words for the model: with the prompt, or with the tool's result
}

// Options of the hooks of one session.
type Options struct {
	Gate    *host.Gate
	Policy  *policy.Policy
	Dir     string // the workspace
	Session string
	Scrub   func([]byte) []byte           // takes secrets out of what a hook is told; nil: nothing
	Note    func(format string, a ...any) // for the person
	Keeper  *reach.Keeper                 // as in reach.Runner
}

// Hooks are those of one session. They are safe for concurrent use; hooks for
// the same event run one after the other, in the order of the configuration.
type Hooks struct {
	Options
	all    []hook
	rights policy.Rights
}

type hook struct {
	config.Hook
	match *policy.Pattern
}

// New reads the configuration. A hook that could never run, or a match that
// cannot be read, is an error: a guard that is missing must not go unnoticed.
func New(list []config.Hook, o Options) (*Hooks, error) {
	h := &Hooks{Options: o}
	for i, c := range list {
		one := hook{Hook: c}
		if one.Timeout.Duration <= 0 {
			one.Timeout.Duration = defaultTimeout
		}
		switch c.Event {
		case SessionStart, Prompt, BeforeTool, AfterTool, Stop, SessionEnd:
		default:
			return nil, fmt.Errorf("hooks[%d]: there is no event %q: use session_start, prompt, before_tool, after_tool, stop or session_end", i, c.Event)
		}
		if len(c.Command) == 0 || c.Command[0] == "" {
			return nil, fmt.Errorf("hooks[%d]: it has no command", i)
		}
		if c.Match != "" {
			p, err := policy.ParsePattern(c.Match)
			if err != nil {
				return nil, fmt.Errorf("hooks[%d].match: %w", i, err)
			}
			one.match = &p
		}
		h.all = append(h.all, one)
	}
	// The person's own configuration is the grant; a policy may still forbid
	// to run programs.
	h.rights = policy.Rights{Grants: o.Policy.Ceiling()}
	return h, nil
}

// Has reports whether there are hooks for an event.
func (h *Hooks) Has(event string) bool {
	for _, k := range h.all {
		if k.Event == event {
			return true
		}
	}
	return false
}

// Guards reports whether a hook may stand before calls of a tool.
func (h *Hooks) Guards(tool string) bool {
	for _, k := range h.all {
		if k.Event == BeforeTool && (k.match == nil || k.match.Names(tool)) {
			return true
		}
	}
	return false
}

// Before is for host.Gate.Before.
func (h *Hooks) Before(ctx context.Context, s host.Spec, c host.Call) error {
	for _, k := range h.of(BeforeTool, s, c) {
		if _, err := h.run(ctx, k, h.call(BeforeTool, s, c)); err != nil {
			return err
		}
	}
	return nil
}

// After is for host.Options.After.
func (h *Hooks) After(ctx context.Context, s host.Spec, c host.Call, res abi.Result) abi.Result {
	ctx = context.WithoutCancel(ctx) // the call was made, whoever has left since
	for _, k := range h.of(AfterTool, s, c) {
		e := h.call(AfterTool, s, c)
		e.Result = &Result{res.Text(), res.IsError}
		r, err := h.run(ctx, k, e)
		var d *denial
		switch {
		case errors.As(err, &d):
			res.Content = append(res.Content[:len(res.Content):len(res.Content)], abi.TextBlock("[A hook of the person says: "+d.reason+"]"))
		case err != nil:
			h.note("%v", err)
		case r.Context != "":
			res.Content = append(res.Content[:len(res.Content):len(res.Content)], abi.TextBlock("[A hook of the person adds: "+r.Context+"]"))
		}
	}
	return res
}

// Start tells that a session begins, and returns words for the model.
func (h *Hooks) Start(ctx context.Context) string { return h.tell(ctx, Event{Event: SessionStart}) }

// Ask tells of a prompt before it is sent. An error refuses it.
func (h *Hooks) Ask(ctx context.Context, prompt string) (words string, err error) {
	var all []string
	for _, k := range h.all {
		if k.Event != Prompt {
			continue
		}
		r, err := h.run(ctx, k, Event{Event: Prompt, Prompt: prompt})
		if err != nil {
			return "", err
		}
		if r.Context != "" {
			all = append(all, r.Context)
		}
	}
	return strings.Join(all, "\n"), nil
}

// Stopped tells that the agent has stopped.
func (h *Hooks) Stopped(ctx context.Context, reason string) {
	h.tell(ctx, Event{Event: Stop, Reason: reason})
}

// End tells that the session ends.
func (h *Hooks) End(ctx context.Context) { h.tell(ctx, Event{Event: SessionEnd}) }

// tell runs the hooks of an event that cannot be refused.
func (h *Hooks) tell(ctx context.Context, e Event) string {
	var words []string
	for _, k := range h.all {
		if k.Event != e.Event {
			continue
		}
		r, err := h.run(ctx, k, e)
		if err != nil {
			h.note("%v", err)
		} else if r.Context != "" {
			words = append(words, r.Context)
		}
	}
	return strings.Join(words, "\n")
}

func (h *Hooks) note(format string, args ...any) {
	if h.Note != nil {
		h.Note(format, args...)
	}
}

// of are the hooks of an event that a call concerns, or may concern.
func (h *Hooks) of(event string, s host.Spec, c host.Call) (out []hook) {
	for _, k := range h.all {
		if k.Event == event && (k.match == nil || h.Gate.Matches(*k.match, s, c)) {
			out = append(out, k)
		}
	}
	return out
}

func (h *Hooks) call(event string, s host.Spec, c host.Call) Event {
	origin := string(s.Origin.Source)
	if s.Origin.Name != "" {
		origin += " " + s.Origin.Name
	}
	return Event{
		Event: event, Session: c.Caller.Session, Agent: c.Caller.Agent, Step: c.Caller.Step,
		Call: c.ID, Tool: s.Name, Origin: origin, Args: c.Args,
	}
}
