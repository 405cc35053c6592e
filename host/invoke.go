package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// RetryHint is the last line of every failure, word for word from the
// specification of the tools.
const RetryHint = "[Analyze the error above and try a different approach.]"

// defaultDepth bounds calls of tools by plugins within calls.
const defaultDepth = 4

// grace is how long a cancelled tool has to come back with what it has.
const grace = 2 * time.Second

// panicError is a panic that became an error.
type panicError struct{ value any }

func (p panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// Invoke calls a tool: the one door. It finds the tool, repairs and checks the
// arguments, asks the gate, calls, and cuts what is too long. It always
// returns a Result; every failure, a refusal too, is one with IsError whose
// last line is RetryHint. It returns soon after ctx ends, even if the tool
// does not.
func (r *Registry) Invoke(ctx context.Context, c Call) abi.Result {
	ctx, clock := within(ctx, c.Caller.Plugin != "")
	c.clock = clock
	e, ok := r.find(c.Tool)
	if !ok {
		return failed(r.unknown(c.Tool))
	}
	if depth := max(clock.depth, c.Caller.Depth); depth > r.maxDepth() {
		return failed(abi.Errorf("The tool %s was not called: plugins may call tools within calls %d deep, and this would be %d.", c.Tool, r.maxDepth(), depth))
	}
	sch, err := e.input()
	if err != nil {
		return failed(abi.Errorf("The tool %s was not called, because its own schema cannot be used: %v.", c.Tool, err))
	}
	args, notes, err := sch.Check(c.Args)
	if err != nil {
		return failed(abi.Errorf("The tool %s was not called, because its arguments do not fit.\n%s", c.Tool, err), notes...)
	}
	c.Args = args
	unbegun := abi.Errorf("The call of %s was cancelled before it began. Nothing was done.", c.Tool)
	if ctx.Err() != nil {
		return failed(unbegun)
	}
	t := &trial{gate: r.opt.Gate, spec: e.spec, call: c}
	if err := t.gate.Check(ctx, e.spec, c); err != nil {
		if ctx.Err() != nil {
			return failed(unbegun)
		}
		d := denied(err, e.spec, c)
		t.tell(d)
		return failed(abi.Errorf("%s", d.model()))
	}
	t.bind(ctx, e.tool)
	res := r.call(ctx, e, t)
	res = r.fit(ctx, e, c, res)
	if r.opt.After != nil {
		res = r.opt.After(ctx, e.spec, t.call, res)
	}
	var lines []string
	for _, d := range t.refusals() {
		t.tell(d)
		lines = append(lines, d.model())
	}
	return finish(res, append(lines, bracketed(notes)...))
}

// Fits says whether arguments would pass what Invoke checks before it asks
// anybody. The error is what the model would be told; an unknown tool fits
// nothing. Nothing is called.
func (r *Registry) Fits(tool string, args json.RawMessage) error {
	e, ok := r.find(tool)
	if !ok {
		return fmt.Errorf("there is no tool %q", tool)
	}
	sch, err := e.input()
	if err != nil {
		return err
	}
	_, _, err = sch.Check(args)
	return err
}

func (r *Registry) maxDepth() int {
	if r.opt.MaxDepth > 0 {
		return r.opt.MaxDepth
	}
	return defaultDepth
}

// outcome is what a tool returned.
type outcome struct {
	res abi.Result
	err error
}

// call runs the tool, and leaves it behind if it does not mind its context. One
// that says it does runs in place: a goroutine of its own would wake two threads.
func (r *Registry) call(ctx context.Context, e *entry, t *trial) abi.Result {
	c := t.guarded()
	if later := c.Later; later != nil {
		c.Later = func(f func()) { later(func() { r.leftover(e, f) }) }
	}
	if i, ok := e.tool.(Interruptible); ok && i.Interruptible() {
		return result(ctx, e.spec, r.run(ctx, e, c))
	}
	done := make(chan outcome, 1)
	go func() { done <- r.run(ctx, e, c) }()
	select {
	case o := <-done:
		return result(ctx, e.spec, o)
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-done:
		return result(ctx, e.spec, o)
	case <-late.C:
		return interrupted(ctx, e.spec)
	}
}

// run calls the tool; a panic is an error.
func (r *Registry) run(ctx context.Context, e *entry, c Call) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{err: panicError{p}}
			r.panicked(e, p)
		}
	}()
	o.res, o.err = e.tool.Call(ctx, c)
	return o
}

// leftover does what a call left to do. The answer has gone, so a panic can
// only be told to the log; it ends nothing else.
func (r *Registry) leftover(e *entry, f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.panicked(e, p)
		}
	}()
	f()
}

func (r *Registry) panicked(e *entry, p any) {
	if r.opt.Log != nil {
		r.opt.Log.Error("a tool panicked", "tool", e.spec.Name, "panic", p, "stack", string(debug.Stack()))
	}
}

// result turns what a tool returned into a Result.
func result(ctx context.Context, s Spec, o outcome) abi.Result {
	switch {
	case o.err == nil:
		return o.res
	case ctx.Err() != nil && errors.Is(o.err, ctx.Err()):
		return interrupted(ctx, s)
	case errors.Is(o.err, abi.ErrDenied):
		return withError(o.res, fmt.Sprintf("The tool %s was refused a right that it needs: %v.", s.Name, o.err))
	}
	if p, ok := errors.AsType[panicError](o.err); ok {
		return abi.Errorf("The tool %s failed inside and did not finish (%v). What it had begun may be half done.", s.Name, p)
	}
	return withError(o.res, fmt.Sprintf("The tool %s failed: %v.", s.Name, o.err))
}

// withError keeps what a tool had to say beside its error.
func withError(res abi.Result, text string) abi.Result {
	res.IsError = true
	res.Content = append(res.Content[:len(res.Content):len(res.Content)], abi.TextBlock(text))
	return res
}

// interrupted says what is known of a call that was cancelled while it ran.
func interrupted(ctx context.Context, s Spec) abi.Result {
	why := "was interrupted while it ran"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		why = "ran out of time"
	}
	if s.Origin.Source == Builtin && (s.Kind == KindRead || s.Kind == KindSearch || s.Kind == KindThink) {
		return abi.Errorf("The tool %s %s. It changes nothing, so nothing was changed.", s.Name, why)
	}
	return abi.Errorf("The tool %s %s. It may have had effects already: check before you repeat it.", s.Name, why)
}

// guarded is the call as the tool gets it: what it reports after Invoke has
// returned goes nowhere.
func (t *trial) guarded() Call {
	c := t.call
	if report := c.Progress; report != nil {
		c.Progress = func(p abi.Progress) {
			if !t.ended() {
				report(p)
			}
		}
	}
	if receipt := c.Receipt; receipt != nil && c.Later == nil {
		c.Receipt = func(rc abi.Receipt) {
			if !t.ended() {
				receipt(rc)
			}
		}
	}
	return c
}

func (t *trial) ended() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// tell shows a refusal to the person who watches.
func (t *trial) tell(d *Denied) {
	if t.call.Denied != nil {
		t.call.Denied(*d)
	}
}
