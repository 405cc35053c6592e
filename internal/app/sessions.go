package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

// Kept says which session is worked on. The zero value is a new one that is
// written down.
type Kept struct {
	Resume   string // its name, or how its name begins
	Continue bool   // the last one of this folder
	Fork     bool   // with Resume or Continue: a copy of it
	Not      bool   // a new one of which nothing is written down
}

// Archive is where all sessions of a person lie.
func Archive(p config.Paths) *archive.Archive {
	return &archive.Archive{Path: filepath.Join(p.State, "elfhost.db")}
}

// openSessions says which session this one is, since folders are named after it.
func (a *App) openSessions(ctx context.Context) error {
	a.Sessions = Archive(a.Paths)
	a.Sessions.Scrub = func(b []byte) []byte {
		if a.Secrets == nil { // not opened yet
			return b
		}
		return a.Secrets.Scrub.Bytes(b)
	}
	a.closers = append(a.closers, a.Sessions.Close)
	if k := a.opt.Kept; k.Resume != "" || k.Continue {
		found, err := a.earlier(ctx)
		if err != nil {
			return fault.Wrap("E1501", checksFolders, SessionFault(err))
		}
		a.from = found.ID
		if !k.Fork {
			a.Session = found.ID
		}
	}
	if a.Session == "" {
		a.Session = archive.NewID()
	}
	return nil
}

// sessionTools are those that reach other sessions; what they start and go on
// with are runs like those of sub-agents, with no more than their rights.
func sessionTools(_ context.Context, a *App) ([]host.Tool, error) {
	s := agents.Sessions{Archive: a.Sessions, Origin: a.SessionOrigin()}
	a.Runs.Session = s.Open
	return agents.SessionTools(agents.Options{Runs: a.Runs, Definitions: a.Definitions().All, ACP: a.acp()}, s), nil
}

// SessionOrigin is whose this app's sessions are: those of the same person, or
// front end, in the same folder see each other.
func (a *App) SessionOrigin() string {
	if a.opt.Origin == "" {
		return a.Dir
	}
	return a.opt.Origin + ":" + a.Dir
}

func (a *App) earlier(ctx context.Context) (archive.Info, error) {
	if name := a.opt.Kept.Resume; name != "" {
		found, err := a.Sessions.Find(ctx, name)
		if err == nil && found.Origin != a.SessionOrigin() {
			return found, fault.New("E1505", "-C names the folder", "the session %s belongs to %q, and this is %q", found.ID, found.Origin, a.SessionOrigin())
		}
		return found, err
	}
	all, err := a.Sessions.List(ctx, archive.Query{Origin: a.SessionOrigin(), Top: true, Limit: 1})
	if err != nil {
		return archive.Info{}, err
	}
	if len(all) == 0 {
		return archive.Info{}, fault.New("E1505", "`elfhost session list --all` shows those of other folders", "there is no earlier session in %q", a.Dir)
	}
	return all[0], nil
}

// Conversation opens the session that Options.Kept names. model is what is
// told of it in lists. What an interruption has left unsure is among the notes.
func (a *App) Conversation(ctx context.Context, model string) (*agent.Session, error) {
	info := archive.Info{ID: a.Session, Origin: a.SessionOrigin(), Model: model}
	var s *agent.Session
	var repairs []agent.Repair
	var err error
	switch {
	case a.opt.Kept.Not:
		return agent.New(a.Session, nil), nil
	case a.from == "":
		s, err = a.Sessions.Start(info)
	case a.opt.Kept.Fork:
		s, repairs, err = a.Sessions.Fork(ctx, a.from, info)
	default:
		s, repairs, err = a.Sessions.Resume(ctx, a.from)
	}
	if err != nil {
		return nil, fault.Wrap("E1501", checksFolders, SessionFault(err))
	}
	for _, r := range repairs {
		if r.Outcome == agent.Unknown {
			a.note("%s", r.Note())
		}
	}
	if a.from != "" {
		err := a.recall(ctx, s)
		if err == nil {
			err = a.Sessions.Describe(ctx, s.ID, "", model)
		}
		if err != nil {
			return nil, fault.Wrap("E1501", checksFolders, SessionFault(err))
		}
	}
	return s, nil
}

const checksFolders = "`elfhost doctor` checks the folders"

// SessionFault gives errors about sessions, and about what keeps them, their
// codes; others stay as they are.
func SessionFault(err error) error {
	for _, f := range sessionFaults {
		if errors.Is(err, f.is) {
			return fault.Wrap(f.code, f.hint, err)
		}
	}
	return err
}

var sessionFaults = []struct {
	is         error
	code, hint string
}{
	{archive.ErrSeveral, "E1505", "give more of its name; `elfhost session list --all` shows them"},
	{archive.ErrNotFound, "E1505", "`elfhost session list` shows them"},
	{archive.ErrBadID, "E1505", "`elfhost session list` shows them"},
	{archive.ErrBusy, "E1506", "wait until the other elfhost is done, or go on with a copy: --fork beside -c or -r"},
	{archive.ErrFenced, "E1506", "what it had shown by then is kept; --fork beside -c or -r goes on with a copy"},
	{archive.ErrDamaged, "E1507", "move the file away, with those beside it that begin with its name: new sessions get a new one. --no-session works without it"},
	{archive.ErrNewer, "E1507", "use the newer elfhost, or --no-session"},
	{archive.ErrFull, "E1501", "make room on the disk; what was shown is kept, and `elfhost run -c` goes on with it"},
	{archive.ErrLocked, "E1501", "another elfhost, or a backup, holds the file: try again when it is done"},
	{archive.ErrFile, "E1501", checksFolders},
	{agent.ErrJournal, "E1501", checksFolders},
}

// keepApproval keeps with the session what somebody decided about one of its
// calls, before the call acts. What needed no decision is in the audit log only.
func (a *App) keepApproval(v host.Verdict) error {
	if v.Allowed && v.By != "person" && v.By != "rule" {
		return nil
	}
	d := archive.Approval{Tool: v.Call.Tool, Allowed: v.Allowed, By: v.By, Rule: v.Rule, Where: v.Where, Reason: v.Reason}
	if v.Use != nil {
		d.Cap, d.Verb, d.Target = string(v.Use.Cap), v.Use.Verb, v.Use.Target
	}
	// Without the call's context: what was decided is kept even if it is cancelled.
	if err := a.Sessions.Approve(context.Background(), v.Call.Caller.Session, v.Call.ID, d); err != nil {
		return fmt.Errorf("keeping a decision with the session: %w", err)
	}
	return nil
}
