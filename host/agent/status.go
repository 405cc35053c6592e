package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// List gives the children of a session that run, or that nobody has read
// since they ended, oldest first. Those of an earlier process are among them.
func (r *Runs) List(s *Session) []RunState {
	out := s.runStates()
	for i, st := range out {
		if run := r.find(st.ID); run != nil {
			out[i] = run.State()
		}
	}
	return slices.DeleteFunc(out, func(st RunState) bool { return st.Read })
}

// Status gives one run that a session started, itself or through its
// children, and marks it as read once it has ended. What others started is not there.
func (r *Runs) Status(ctx context.Context, s *Session, id string) (RunState, error) {
	if !idForm.MatchString(id) {
		return RunState{}, fmt.Errorf("%w: %.40q has not the form of an identifier", ErrNoRun, id)
	}
	if run := r.find(id); run != nil && r.descends(run, s) {
		st := run.State()
		if st.Status != Running && !st.Read {
			run.mu.Lock()
			run.state.Read = true
			run.mu.Unlock()
			return st, run.note(ctx)
		}
		return st, nil
	}
	for _, st := range s.runStates() {
		if st.ID != id {
			continue
		}
		if !st.Read {
			seen := st
			seen.Read = true
			return st, s.commit(ctx, Record{Kind: RecordRun, Run: &seen})
		}
		return st, nil
	}
	return RunState{}, fmt.Errorf("%w: %s", ErrNoRun, id)
}

// Find gives a live run that a session started.
func (r *Runs) Find(s *Session, id string) (*Run, error) {
	if run := r.find(id); run != nil && r.descends(run, s) {
		return run, nil
	}
	return nil, fmt.Errorf("%w: %.40q", ErrNoRun, id)
}

// At gives the run that is at work on a session, if there is one.
func (r *Runs) At(session string) (*Run, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, run := range r.all {
		if run.child.ID == session && !run.ended() {
			return run, true
		}
	}
	return nil, false
}

// Steer queues a message for the child. It is read after the calls of its
// current step; one that comes as the child ends opens its next run.
func (run *Run) Steer(content ...abi.Content) { run.child.Steer(content...) }

// Wait waits for all background children of a session that run now.
func (r *Runs) Wait(ctx context.Context, s *Session) error {
	for _, run := range r.children(s) {
		if _, err := run.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runs) find(id string) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}

// descends reports whether a run is below a session.
func (r *Runs) descends(run *Run, s *Session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for run != nil {
		if run.parent == s {
			return true
		}
		run = r.above(run.parent)
	}
	return false
}

// owner is the run whose child a session is; nil: nobody started it.
func (r *Runs) owner(s *Session) *Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.above(s)
}

// above is owner with r.mu held.
func (r *Runs) above(s *Session) *Run {
	for _, run := range r.all {
		if run.child == s {
			return run
		}
	}
	return nil
}

// Tell is a run's state in words, for the model that started it.
func (st RunState) Tell() string {
	var b strings.Builder
	name := or(st.Name, or(st.Agent, "The agent"))
	switch st.Status {
	case Running:
		fmt.Fprintf(&b, "%s (%s) is running since %s, %d steps so far.", name, st.ID, st.Started.Format("15:04:05"), st.Usage.Steps)
		return b.String()
	case Completed:
		fmt.Fprintf(&b, "%s (%s) is done, after %d steps.", name, st.ID, st.Usage.Steps)
	default:
		fmt.Fprintf(&b, "%s (%s) was not finished: %s (%s).", name, st.ID, st.Status, strings.TrimSuffix(st.Error, "."))
	}
	if st.Report != "" {
		b.WriteString("\n\n" + st.Report)
	} else {
		b.WriteString("\nIt left no report.")
	}
	return b.String()
}
