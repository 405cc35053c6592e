package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
)

// loop makes the child's loop and narrows it to the parent's, whatever
// Runs.Open gave.
func (r *Runs) loop(ctx context.Context, up *scope, s Spawn) (*Loop, error) {
	mode, err := childMode(s.Mode)
	if err != nil {
		return nil, err
	}
	effort, err := model.ParseEffort(s.Effort)
	if err != nil {
		return nil, err
	}
	parent := up.loop
	child := *parent
	child.Limits.Steps, child.Release, child.Brought = 0, nil, nil
	if r.Open != nil {
		made, err := r.Open(ctx, parent, s)
		if err != nil {
			return nil, fmt.Errorf("starting the agent %q: %w", or(s.Agent, s.Name), err)
		}
		child = *made
	}
	if child.System == parent.System {
		instructions, err := prompts.ReadFile("prompts/child.md")
		if err != nil {
			return nil, err
		}
		child.System += "\n" + string(instructions)
	}
	if s.System != "" {
		child.System += "\n" + strings.TrimSpace(s.System) + "\n"
	}
	child.Agent = or(s.Agent, or(s.Name, "sub-agent"))
	child.Effort = or(effort, child.Effort)
	child.depth = parent.depth + 1
	child.up = up.run
	child.Limits = narrow(child.Limits, parent.Limits, s.Steps)
	if child.Tools == nil || parent.Tools == nil {
		child.Tools = nil
		return &child, nil
	}
	if child.Tools, err = s.tools(child.Tools, parent.Tools, mode, child.Brought); err != nil {
		child.release()
		return nil, err
	}
	return &child, nil
}

func (l *Loop) release() {
	if l.Release != nil {
		l.Release()
	}
}

// View is what an agent of this request sees of a registry and may do with it.
func (s Spawn) View(r *host.Registry) (*host.Registry, error) {
	mode, err := childMode(s.Mode)
	if err != nil {
		return nil, err
	}
	return s.tools(r, r, mode, nil)
}

// tools are the child's: those of the parent that the request and the
// definition both leave, and those brought along, behind a gate that allows no more than both.
func (s Spawn) tools(own, theirs *host.Registry, mode host.Mode, brought func(host.Spec) bool) (*host.Registry, error) {
	bound := theirs.Gate().Child(mode)
	var lists [][]policy.Pattern
	for _, list := range [][]string{s.Tools, s.Within} {
		if list == nil {
			continue
		}
		patterns := make([]policy.Pattern, 0, len(list))
		for _, text := range list {
			p, err := policy.ParsePattern(text)
			if err != nil {
				return nil, fmt.Errorf("the tools of an agent: %w", err)
			}
			patterns = append(patterns, p)
		}
		lists = append(lists, patterns)
		bound.Narrow(patterns...)
	}
	// The child's gate is one below, so that what it does to its own gate does
	// not undo this.
	return own.Under(bound.Child(mode)).Filter(func(spec host.Spec) bool {
		for _, l := range lists {
			if !slices.ContainsFunc(l, func(p policy.Pattern) bool { return p.Names(spec.Name) }) {
				return false
			}
		}
		had := theirs.Has(spec.Name) || brought != nil && brought(spec)
		return had && !named(s.Without, spec.Name) && (s.Keep == nil || s.Keep(spec))
	}), nil
}

// childMode checks a mode that a model asked for. The gate narrows it.
func childMode(m host.Mode) (host.Mode, error) {
	switch m {
	case "", host.ModePlan, host.ModeAsk, host.ModeAcceptEdits, host.ModeAuto:
		return m, nil
	case "default":
		return host.ModeAsk, nil
	case "bypass", "bypassPermissions": // what other agents call it; the parent's mode is the ceiling all the same
		return host.ModeAuto, nil
	}
	return "", fmt.Errorf("there is no permission mode %q: use plan, ask, acceptEdits or auto", m)
}

// named reports whether a name is in a list of names and prefixes.
func named(list []string, name string) bool {
	return slices.ContainsFunc(list, func(s string) bool {
		prefix, ok := strings.CutSuffix(s, "*")
		return s == name || ok && strings.HasPrefix(name, prefix)
	})
}

// narrow is the meet of limits; asked is the steps that the parent wants.
func narrow(child, parent Limits, asked int) Limits {
	steps := or(asked, or(child.Steps, 50))
	if steps < 1 {
		steps = 1
	}
	child.Steps = min(steps, or(parent.Steps, 100))
	child.Parallel = min(or(child.Parallel, 8), or(parent.Parallel, 8))
	child.Tokens = lower(child.Tokens, parent.Tokens)
	child.Cost = lower(child.Cost, parent.Cost)
	return child
}

// lower is the smaller bound, where zero is none.
func lower[T int64 | float64](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// work is the child's life.
func (run *Run) work(ctx, call context.Context, loop *Loop, s Spawn) {
	var done Event
	var failure error
	for e, err := range run.runs.Work(ctx, loop, run.child, content(s.Prompt)) {
		e.From = strings.TrimSuffix(run.state.ID+"/"+e.From, "/")
		if e.Kind == KindDone {
			done, failure = e, err
			continue
		}
		if e.Kind == KindUsage {
			run.count()
		}
		if run.runs.Watch != nil {
			run.runs.Watch(run.state.ID, e)
		}
		if !s.Background {
			Emit(call, e)
		}
	}
	loop.release()
	run.finish(ctx, call, done, failure)
}

// count takes what the child has used, and charges all above it with what is
// new: a run above may have ended while this one went on.
func (run *Run) count() {
	for up := run; up != nil; up = up.runs.owner(up.parent) {
		up.mu.Lock()
		old := up.state.Usage
		up.state.Usage = up.child.Usage().since(up.before)
		up.parent.charge(old, up.state.Usage)
		up.mu.Unlock()
	}
}

// finish records the end, and tells the parent of a background run.
func (run *Run) finish(ctx, call context.Context, done Event, failure error) {
	run.endBelow(ctx)
	run.count()
	run.mu.Lock()
	st := &run.state
	st.Ended = time.Now().UTC()
	st.Report = run.child.lastWords()
	switch {
	case failure != nil:
		st.Status, st.Error = Broken, failure.Error()
	case done.Stop == StopCancelled:
		st.Status, st.Error = Cancelled, why(ctx)
	case done.Stop == StopEnd:
		st.Status = Completed
	case done.Stop == StopYield:
		st.Status, st.Report = Completed, or(done.Text, st.Report)
	default:
		st.Status, st.Error = Stopped, "it was stopped: "+stops[done.Stop]
	}
	late := errors.Is(context.Cause(ctx), errLate)
	told := st.Background && (st.Status != Cancelled || late) // else its parent is cancelled, too
	name, id, status := or(st.Name, or(st.Agent, "agent")), st.ID, st.Status
	run.mu.Unlock()
	settled, cancel := settling(ctx)
	defer cancel()
	if err := run.note(settled); err != nil {
		run.mu.Lock()
		run.state.Error = strings.TrimSpace(run.state.Error + " " + err.Error())
		run.mu.Unlock()
	}
	if told {
		run.parent.Steer(abi.Content{Type: abi.TypeText, Name: own, Text: fmt.Sprintf("[The background agent %q has ended: %s. Its report is there for runId %s.]", name, status, id)})
	}
	run.cancel(nil)
	close(run.done)
	final := run.State()
	run.runs.show(call, Event{Kind: KindAgent, From: final.ID, Run: &final})
}

// endBelow ends what the child has started and not waited for, as one that was
// stopped has not. Their ends are written into its session, which is still
// there; those that hang are given up.
func (run *Run) endBelow(ctx context.Context) {
	ctx, cancel := settling(ctx)
	defer cancel()
	run.runs.stop(run.child, errors.New("the agent that started it has ended"))
	_ = run.runs.Wait(ctx, run.child)
}

var stops = map[Stop]string{
	StopSteps: "it had used up its steps", StopTokens: "it had used up its tokens", StopCost: "it had used up its budget",
	StopRepeat: "it went in circles", StopLength: "its answer was too long", StopRefusal: "the model declined",
}

// note writes the state into the parent's journal.
func (run *Run) note(ctx context.Context) error {
	st := run.State()
	return run.parent.commit(ctx, Record{Kind: RecordRun, Run: &st})
}

// State is how things are now.
func (run *Run) State() RunState {
	run.mu.Lock()
	defer run.mu.Unlock()
	return run.state
}

func (run *Run) ended() bool {
	select {
	case <-run.done:
		return true
	default:
		return false
	}
}

// Wait waits for the end of the run, or of ctx, which does not end the run.
func (run *Run) Wait(ctx context.Context) (RunState, error) {
	select {
	case <-run.done:
		return run.State(), nil
	default:
	}
	select {
	case <-run.done:
		return run.State(), nil
	case <-ctx.Done():
		return run.State(), context.Cause(ctx)
	}
}

// Cancel ends the run and all its descendants.
func (run *Run) Cancel(cause error) {
	run.cancel(cause)
	run.runs.stop(run.child, cause)
}

// lastWords is the newest text of the model.
func (s *Session) lastWords() string {
	messages := s.Messages()
	for i := len(messages) - 1; i >= 0; i-- {
		if t := strings.TrimSpace(messages[i].Text()); t != "" && messages[i].Role == model.RoleAssistant {
			return t
		}
	}
	return ""
}
