package agent

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// Runs starts sub-agents and knows what became of them. A child never has
// more than its parent: its tools are among the parent's, its gate is a child
// of the parent's, its mode is not looser, and what it uses counts against the
// parent's budget. When a parent is cancelled, all its descendants end.
//
// The zero value works. It is safe for concurrent use; Close ends everything.
type Runs struct {
	// Open makes the loop of a child, for agents and models of its own. Whatever
	// it gives is narrowed to the parent's. Nil: a copy of the parent's loop.
	Open func(ctx context.Context, parent *Loop, s Spawn) (*Loop, error)
	// Session makes the session of a child, or opens the one that Spawn.Session
	// names. Nil, or a nil session without an error: a new one in the parent's journal.
	Session func(ctx context.Context, parent *Session, id string, s Spawn) (*Session, error)
	// Watch sees the events of all children, their beginning and end (KindAgent)
	// among them; those of foreground children go to the parent's stream as well.
	// It may be nil and must not block.
	Watch  func(runID string, e Event)
	Limits RunLimits

	mu     sync.Mutex
	closed bool
	all    map[string]*Run
	hooked map[*Session]bool
}

// RunLimits bound a tree of agents. A zero field means its default.
type RunLimits struct {
	Depth    int // of children of children; default 3
	Children int // of one parent, at once; default 16
	Total    int // at once; default 64
	Kept     int // finished runs that nobody has read; default 256
}

// Spawn is what a parent asks for. A zero field means the parent's.
type Spawn struct {
	Name       string // for people
	Session    string // one that exists, to go on with; see Runs.Session
	Prompt     string
	Agent      string        // a definition, resolved by Runs.Open
	Model      string        // resolved by Runs.Open
	Effort     string        // of its model, as model.ParseEffort reads it
	Background bool          // Run.Wait is not needed; the parent is told at the end
	Steps      int           // default 50; never more than the parent's
	Time       time.Duration // after which it is cancelled; zero: never
	Mode       host.Mode
	Tools      []string                  // rules such as Read, mcp__github__*, Bash(git status:*); nil: all, empty: none
	Within     []string                  // further rules, as of a definition: both lists must cover a call
	Without    []string                  // names of tools that it shall not have, or prefixes that end with '*'
	Keep       func(spec host.Spec) bool // which of the parent's tools it may have at the most; nil: all
	System     string                    // instructions of its own, beside the parent's and those of every child
}

// RunStatus says where a run is.
type RunStatus string

// The statuses.
const (
	Running   RunStatus = "running"
	Completed RunStatus = "completed"
	Stopped   RunStatus = "stopped"   // by a limit, with what it had
	Broken    RunStatus = "failed"    // with what it had
	Cancelled RunStatus = "cancelled" // with what it had
)

// RunState is what is told of a run. It is kept in the parent's journal.
type RunState struct {
	ID         string    `json:"id"`
	Session    string    `json:"session"` // of the child
	Name       string    `json:"name,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Model      string    `json:"model,omitempty"`
	Prompt     string    `json:"prompt"` // clipped
	Background bool      `json:"background,omitempty"`
	Status     RunStatus `json:"status"`
	Started    time.Time `json:"started"`
	Ended      time.Time `json:"ended,omitzero"`
	Report     string    `json:"report,omitempty"` // the last thing it said
	Error      string    `json:"error,omitempty"`
	Usage      Usage     `json:"usage"` // of this run and those that it started
	Read       bool      `json:"read,omitempty"`
}

// Run is one child at work.
type Run struct {
	runs   *Runs
	parent *Session
	child  *Session
	before Usage // of the child, when the run began
	cancel context.CancelCauseFunc
	done   chan struct{}

	mu    sync.Mutex
	state RunState
}

// The errors of Spawn. Their texts are for the model, too.
var (
	ErrNoParent = errors.New("agents are started from within a run only")
	ErrTooMany  = errors.New("too many agents")
	ErrNoRun    = errors.New("there is no such run")
)

// errLate is in the cause of a run that was cancelled for its time.
var errLate = errors.New("its time")

// Spawn starts a child of the run that ctx belongs to. A foreground child
// ends with ctx; a background child goes on until it is done, its parent is
// cancelled, or Runs is closed.
func (r *Runs) Spawn(ctx context.Context, s Spawn) (*Run, error) {
	up := scopeOf(ctx)
	if up == nil {
		return nil, ErrNoParent
	}
	if strings.TrimSpace(s.Prompt) == "" {
		return nil, errors.New("the prompt of an agent must say what it shall do")
	}
	if up.loop.depth >= or(r.Limits.Depth, 3) {
		return nil, fmt.Errorf("%w: agents may start agents %d deep", ErrTooMany, or(r.Limits.Depth, 3))
	}
	loop, err := r.loop(ctx, up, s)
	if err != nil {
		return nil, err
	}
	run, base, err := r.begin(ctx, up, s, loop)
	if err != nil {
		loop.release()
		return nil, err
	}
	if ctx.Err() != nil { // before follow could see it
		run.cancel(context.Cause(ctx))
	}
	st := run.State()
	r.show(ctx, Event{Kind: KindAgent, From: st.ID, Run: &st})
	go run.work(base, ctx, loop, s)
	return run, nil
}

// show tells that a run has begun or ended: the step that started it, if that
// is not over, and who watches all runs.
func (r *Runs) show(ctx context.Context, e Event) {
	if r.Watch != nil {
		r.Watch(e.From, e)
	}
	Emit(ctx, e)
}

// begin makes a run with its session and its place in the tree.
func (r *Runs) begin(ctx context.Context, up *scope, s Spawn, loop *Loop) (*Run, context.Context, error) {
	run := &Run{runs: r, parent: up.session, done: make(chan struct{})}
	run.state = RunState{
		ID: newID("run"), Session: or(s.Session, newID("ses")), Name: s.Name, Agent: s.Agent, Model: or(s.Model, loop.Info.ID),
		Prompt: clip(s.Prompt, 2<<10), Background: s.Background, Status: Running, Started: time.Now().UTC(),
	}
	var err error
	if run.child, err = r.session(ctx, run, s); err != nil {
		return nil, nil, fmt.Errorf("starting an agent: %w", err)
	}
	run.before = run.child.Usage()
	base := run.base(ctx, s)
	r.follow(up.session)
	err = r.enter(run)
	if err == nil {
		if err = run.note(ctx); err != nil {
			r.leave(run)
		}
	}
	if err != nil {
		run.cancel(err)
		return nil, nil, err
	}
	return run, base, nil
}

// base is the context of a child: a run of its own, not a part of the call
// that started it.
func (run *Run) base(ctx context.Context, s Spawn) context.Context {
	if s.Background {
		ctx = context.WithoutCancel(ctx)
	}
	ctx = context.WithValue(ctx, scopeKey{}, (*scope)(nil))
	ctx, run.cancel = context.WithCancelCause(ctx)
	if s.Time > 0 {
		timer := time.AfterFunc(s.Time, func() { run.cancel(fmt.Errorf("%w of %s was over", errLate, s.Time)) })
		context.AfterFunc(ctx, func() { timer.Stop() })
	}
	return ctx
}

// enter takes a place in the tree.
func (r *Runs) enter(run *Run) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("the program is about to end, and starts no agents any more")
	}
	all, siblings, kept := 0, 0, 0
	for _, other := range r.all {
		if !other.ended() {
			all++
			if other.parent == run.parent {
				siblings++
			}
		} else {
			kept++
		}
	}
	if most := or(r.Limits.Children, 16); siblings >= most {
		return fmt.Errorf("%w: %d children of one agent are running, wait for one of them", ErrTooMany, most)
	}
	if most := or(r.Limits.Total, 64); all >= most {
		return fmt.Errorf("%w: %d are running, wait for one of them", ErrTooMany, most)
	}
	if kept >= or(r.Limits.Kept, 256) {
		r.forget()
	}
	if r.all == nil {
		r.all = map[string]*Run{}
	}
	r.all[run.state.ID] = run
	return nil
}

// forget drops the oldest finished run. r.mu is held.
func (r *Runs) forget() {
	var oldest *Run
	for _, run := range r.all {
		if run.ended() && (oldest == nil || run.State().Ended.Before(oldest.State().Ended)) {
			oldest = run
		}
	}
	if oldest != nil {
		delete(r.all, oldest.state.ID)
	}
}

func (r *Runs) leave(run *Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, run.state.ID)
}

// session makes the child's session.
func (r *Runs) session(ctx context.Context, run *Run, s Spawn) (*Session, error) {
	if r.Session != nil {
		if made, err := r.Session(ctx, run.parent, run.state.Session, s); made != nil || err != nil {
			return made, err
		}
	}
	if s.Session != "" {
		return nil, fmt.Errorf("there is no session %.40q to go on with", s.Session)
	}
	return New(run.state.Session, run.parent.journal), nil
}

// follow ends the children of a session when its run is cancelled.
func (r *Runs) follow(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hooked == nil {
		r.hooked = map[*Session]bool{}
	}
	if !r.hooked[s] {
		r.hooked[s] = true
		s.onCancel(func(cause error) { r.stop(s, cause) })
	}
}

// stop ends all descendants of a session.
func (r *Runs) stop(s *Session, cause error) {
	for _, run := range r.children(s) {
		run.cancel(cause)
		r.stop(run.child, cause)
	}
}

func (r *Runs) children(s *Session) []*Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*Run
	for _, run := range r.all {
		if run.parent == s {
			out = append(out, run)
		}
	}
	return out
}

// Close cancels every run and waits for all of them, or for ctx.
func (r *Runs) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	all := make([]*Run, 0, len(r.all))
	for _, run := range r.all {
		all = append(all, run)
	}
	r.mu.Unlock()
	for _, run := range all {
		run.cancel(errors.New("the program ended"))
	}
	for _, run := range all {
		if _, err := run.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

var idForm = regexp.MustCompile(`^[a-z]{3}_[a-z2-7]{26}$`)

// newID makes an identifier that says nothing and cannot be guessed.
func newID(kind string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return kind + "_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}

// content is a prompt as content.
func content(s string) abi.Content { return abi.TextBlock(s) }
