package agent

import (
	"context"
	"iter"

	"github.com/elfhost/elfhost/abi"
)

// Work is Loop.Run, and goes on while children of the session work in the
// background: whoever ends for good before them would lose what they do. Each
// time some have ended, the agent is told and has another turn, within what is
// left of its limits.
func (r *Runs) Work(ctx context.Context, l *Loop, s *Session, prompt ...abi.Content) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		loop, before := *l, s.Usage()
		for {
			done, failed, left := once(loop.Run(ctx, s, prompt...), yield)
			if left {
				return
			}
			if failed != nil || done.Stop != StopEnd || !r.busy(s) && !s.Steered() {
				yield(done, failed)
				return
			}
			stop := StopCancelled
			if err := r.Wait(ctx, s); err == nil {
				stop = loop.Limits.lessen(l.Limits, s.Usage().since(before))
			}
			if stop != "" {
				done.Stop = stop
				yield(done, nil)
				return
			}
			prompt = nil
		}
	}
}

// once passes the events of one run on, all but the last.
func once(run iter.Seq2[Event, error], yield func(Event, error) bool) (done Event, failed error, left bool) {
	for e, err := range run {
		if e.Kind == KindDone {
			done, failed = e, err
			continue
		}
		if !yield(e, err) {
			return done, failed, true
		}
	}
	return done, failed, false
}

// busy reports whether children of the session are at work.
func (r *Runs) busy(s *Session) bool {
	for _, run := range r.children(s) {
		if !run.ended() {
			return true
		}
	}
	return false
}

// lessen sets what is left of limits, and says which of them is used up.
func (l *Limits) lessen(of Limits, used Usage) Stop {
	if of.Steps > 0 {
		if l.Steps = of.Steps - used.Steps; l.Steps <= 0 {
			return StopSteps
		}
	}
	if of.Tokens > 0 {
		if l.Tokens = of.Tokens - used.Total(); l.Tokens <= 0 {
			return StopTokens
		}
	}
	if of.Cost > 0 {
		if l.Cost = of.Cost - used.Cost; l.Cost <= 0 {
			return StopCost
		}
	}
	return ""
}
