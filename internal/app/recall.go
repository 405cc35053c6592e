package app

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/host/agent"
)

// What is kept with a session beside its transcript: its plan, and for each
// file that it has read or written what that was.
const (
	factPlan = "plan"
	factFile = "file:" // and the virtual path
)

// seen is the files.State of the session, kept with it: Edit after a resume
// need not read again what has not changed.
type seen struct {
	files.Memory
	app *App
}

// Saw implements files.State.
func (s *seen) Saw(name string, stamp files.Stamp) {
	s.Memory.Saw(name, stamp)
	stamp, _ = s.Seen(name)
	s.app.remember(s.app.Session, factFile+name, stamp)
}

// remember keeps a fact. Losing one costs a second look, so that an error does
// not end the call.
func (a *App) remember(session, name string, v any) {
	if err := a.Sessions.Remember(context.Background(), session, name, v); err != nil {
		a.note("keeping %s with the session: %v", name, err)
	}
}

// recall takes up what was kept with a session that goes on. Facts of a newer
// version, which cannot be read, are as if they were not there.
func (a *App) recall(ctx context.Context, s *agent.Session) error {
	facts, err := a.Sessions.Remembered(ctx, s.ID)
	if err != nil {
		return err
	}
	for name, body := range facts {
		if path, ok := strings.CutPrefix(name, factFile); ok && a.seen != nil {
			var stamp files.Stamp
			if json.Unmarshal(body, &stamp) == nil {
				a.seen.Memory.Saw(path, stamp)
			}
		}
	}
	var plan []control.Entry
	if body, ok := facts[factPlan]; ok && json.Unmarshal(body, &plan) == nil {
		a.Plans.Set(s.ID, plan)
		return nil
	}
	for _, m := range s.Messages() { // written before plans were kept
		for _, call := range m.Calls() {
			if call.Name == "Plan" {
				a.Plans.Restore(s.ID, []byte(call.Args))
			}
		}
	}
	return nil
}

// planned keeps a new plan, and shows it to whoever watches the run.
func (a *App) planned(ctx context.Context, entries []control.Entry) {
	if s := agent.Current(ctx); s != nil {
		a.remember(s.ID, factPlan, entries)
	}
	list := make([]agent.PlanEntry, 0, len(entries))
	for _, e := range entries {
		list = append(list, agent.PlanEntry(e))
	}
	agent.Emit(ctx, agent.Event{Kind: agent.KindPlan, Plan: list})
}

// changed names the files that a session has written, for its minutes.
func (a *App) changed(session string) []string {
	if a.seen == nil || session != a.Session {
		return nil
	}
	names := a.seen.Changed()
	for i, n := range names {
		names[i] = a.Tree.Display("", n)
	}
	return names
}
