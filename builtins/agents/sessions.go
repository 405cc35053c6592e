package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
)

// Sessions are the sessions that the tools reach. A session sees itself and
// what it started, and one that nobody started all of its origin: the archive
// decides, by the session that a call comes from.
type Sessions struct {
	Archive *archive.Archive
	Origin  string // of calls that come from no session that is kept
}

// sessionRoom is what the session tools share.
type sessionRoom struct {
	*room
	Sessions
}

// SessionTools makes SessionsSpawn, SessionsList, SessionsSend and
// SessionsHistory. The Session of Options.Runs must be Sessions.Open, or go
// on with sessions as it does.
func SessionTools(o Options, s Sessions) []host.Tool {
	r := &sessionRoom{&room{o.withDefaults()}, s}
	list, history := tool.Spec(texts, "SessionsList", host.KindRead), tool.Spec(texts, "SessionsHistory", host.KindRead)
	spawn, send := tool.Spec(texts, "SessionsSpawn", host.KindOther), tool.Spec(texts, "SessionsSend", host.KindOther)
	list.Parallel, history.Parallel, spawn.Parallel, send.Parallel = true, true, true, true
	return []host.Tool{
		&tool.Func{S: spawn, Run: r.begin}, &tool.Func{S: list, Run: r.sessions},
		&tool.Func{S: send, Run: r.send}, &tool.Func{S: history, Run: r.history},
	}
}

// Yield makes SessionsYield, which ends the loop that calls it.
func Yield() host.Tool {
	return &tool.Func{S: tool.Spec(texts, "SessionsYield", host.KindThink), Run: func(ctx context.Context, c host.Call) (abi.Result, error) {
		a, err := tool.Args[struct{ Message string }](c)
		if err != nil {
			return abi.Result{}, err
		}
		if !agent.End(ctx, a.Message) {
			return abi.Errorf("There is no conversation to end: this call was made outside of one."), nil
		}
		return abi.Text("The work ends here, with the message as its answer."), nil
	}}
}

// Open is for Runs.Session: it goes on with the session that a Spawn names.
func (s Sessions) Open(ctx context.Context, _ *agent.Session, id string, sp agent.Spawn) (*agent.Session, error) {
	if sp.Session == "" {
		return nil, nil
	}
	out, repairs, err := s.Archive.Resume(ctx, id)
	for _, r := range repairs {
		if r.Outcome == agent.Unknown {
			if r.Session == "" {
				r.Session = id
			}
			agent.Emit(ctx, agent.Event{Kind: agent.KindNote, Text: r.Note()})
		}
	}
	return out, err
}

func (r *sessionRoom) begin(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[struct {
		Prompt  string
		AgentID string `json:"agentId"`
		Title   string
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	title := plain.Line(a.Title, 80)
	if title == "" {
		title = archive.Title(a.Prompt)
	}
	run, text, err := r.start(ctx, c, a.AgentID, agent.Spawn{Name: title, Prompt: a.Prompt, Background: true})
	if err != nil || text != "" {
		return abi.Errorf("%s", text), err
	}
	return abi.Textf("The session %s has begun and works in the background. You are told when it has ended.", run.State().Session), nil
}

// start starts a run of a session with the rights that sub-agents have.
func (r *sessionRoom) start(ctx context.Context, c host.Call, named string, s agent.Spawn) (run *agent.Run, text string, err error) {
	s.Time = r.Time
	if named != "" {
		d, text, err := r.definition(ctx, c, named)
		if err != nil || text != "" {
			return nil, text, err
		}
		name := s.Name
		if err := d.apply(&s); err != nil {
			return nil, fmt.Sprintf("No session was started: %v.", err), nil
		}
		s.Name = name
	}
	usual, narrower := child(s.Within), s.Keep
	s.Keep = func(spec host.Spec) bool { return usual(spec) && (narrower == nil || narrower(spec)) }
	run, err = r.Runs.Spawn(ctx, s)
	switch {
	case errors.Is(err, archive.ErrBusy):
		return nil, "The session is in use, by a person or by another program. Try again later.", nil
	case err != nil:
		return nil, fmt.Sprintf("The session was not started: %v.", err), nil
	}
	return run, "", nil
}

func (r *sessionRoom) sessions(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[struct{ Limit, Offset int }](c)
	if err != nil {
		return abi.Result{}, err
	}
	if a.Limit == 0 {
		a.Limit = 20
	}
	q := archive.Query{Viewer: c.Caller.Session, Limit: a.Limit + 1, Offset: a.Offset}
	if r.visitor(c) {
		q.Viewer, q.Origin = "", r.Origin
	}
	found, err := r.Archive.List(ctx, q)
	if err != nil {
		return abi.Result{}, err
	}
	if len(found) == 0 {
		return abi.Text("There are no sessions to see from here."), nil
	}
	var b strings.Builder
	for i, m := range found {
		if i == a.Limit {
			fmt.Fprintf(&b, "(There are more: offset %d shows them.)\n", a.Offset+a.Limit)
			break
		}
		b.WriteString(sessionLine(m, c.Caller.Session))
	}
	return abi.Text(b.String()), nil
}

func sessionLine(m archive.Info, here string) string {
	line := fmt.Sprintf("- %s, last used %s, %d records: %s", m.ID, m.Updated.Format("2006-01-02 15:04 MST"), m.Records, plain.Line(m.Title, 80))
	switch {
	case m.ID == here:
		line += " (this session)"
	case m.Busy:
		line += " (at work or open)"
	}
	return line + "\n"
}

// visitor reports a call of a person's front end that comes from no session
// which is kept: it sees those of its origin. A sub-agent is never one.
func (r *sessionRoom) visitor(c host.Call) bool {
	return r.Origin != "" && c.Caller.Agent == "" && c.Caller.Plugin == "" && !r.Archive.Keeps(c.Caller.Session)
}

// seen finds a session that the caller may see. What it may not see is, for
// it, not there.
func (r *sessionRoom) seen(ctx context.Context, c host.Call, id string) (m archive.Info, text string, err error) {
	if archive.CheckID(id) != nil {
		return m, fmt.Sprintf("%q is not the name of a session. SessionsList has the names.", plain.Line(id, 70)), nil
	}
	if r.visitor(c) {
		if m, err = r.Archive.Info(ctx, id); err == nil && m.Origin != r.Origin {
			err = archive.ErrNotFound
		}
	} else if err = r.Archive.Sees(ctx, c.Caller.Session, id); err == nil {
		m, err = r.Archive.Info(ctx, id)
	}
	if errors.Is(err, archive.ErrNotFound) || errors.Is(err, archive.ErrBadID) {
		return m, fmt.Sprintf("There is no session %s that can be seen from here. SessionsList has those that can.", id), nil
	}
	return m, "", err
}

func (r *sessionRoom) send(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[struct {
		SessionID string `json:"sessionId"`
		Message   string
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	m, text, err := r.seen(ctx, c, a.SessionID)
	if err != nil || text != "" {
		return abi.Errorf("%s", text), err
	}
	if m.ID == c.Caller.Session {
		return abi.Errorf("%s is the session that you are in. Say it in your answer.", m.ID), nil
	}
	if run, ok := r.Runs.At(m.ID); ok {
		run.Steer(abi.TextBlock(a.Message))
		return abi.Textf("The session %s is at work and reads the message after its current step. SessionsHistory shows what it answers.", m.ID), nil
	}
	run, text, err := r.start(ctx, c, m.Agent, agent.Spawn{Name: archive.Title(m.Title), Session: m.ID, Prompt: a.Message})
	if err != nil || text != "" {
		return abi.Errorf("%s", text), err
	}
	st, err := run.Wait(ctx)
	if err != nil {
		return abi.Result{}, err
	}
	if seen, err := r.Runs.Status(context.WithoutCancel(ctx), agent.Current(ctx), st.ID); err == nil {
		st = seen
	}
	return result(st), nil
}

func (r *sessionRoom) history(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[struct {
		SessionID string `json:"sessionId"`
		Limit     int
	}](c)
	if err != nil {
		return abi.Result{}, err
	}
	m, text, err := r.seen(ctx, c, a.SessionID)
	if err != nil || text != "" {
		return abi.Errorf("%s", text), err
	}
	if a.Limit == 0 {
		a.Limit = 20
	}
	t, err := r.Archive.Load(ctx, m.ID)
	if err != nil {
		return abi.Result{}, err
	}
	var b strings.Builder
	if err := t.WriteTail(&b, a.Limit); err != nil {
		return abi.Result{}, err
	}
	return abi.Text(strings.TrimSpace(plain.Visible(b.String()))), nil
}
