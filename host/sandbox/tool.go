package sandbox

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// tool is one tool of a plugin.
type tool struct {
	plugin *Plugin
	decl   abi.ToolDecl
}

// Spec gives the pinned declaration. What a module says of itself never
// changes who is asked; it serves front ends only.
func (t *tool) Spec() host.Spec {
	kind := host.KindOther
	if t.decl.ReadOnly {
		kind = host.KindRead
	}
	return host.Spec{
		Name: t.decl.Name, Description: t.decl.Description, Input: t.decl.Input, Output: t.decl.Output,
		Kind: kind, Parallel: t.decl.ReadOnly,
		Origin: host.Origin{Source: t.plugin.pkg.Source, Name: t.plugin.pkg.Manifest.Name, Digest: t.plugin.pkg.Digest},
	}
}

// Needs is what the manifest asks for: no call of the tool has more.
func (t *tool) Needs() policy.Grants { return t.plugin.needs }

// Interruptible: a guest is stopped within a slice of its fuel, and what the
// host does for one without needs waits for nothing, but for the person whom
// other formats may ask. To make it ready may take long.
func (t *tool) Interruptible() bool {
	p := t.plugin
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready != nil && p.needs.Nothing() && p.pkg.Format == nil
}

// Call runs the tool in a sandbox of its own.
func (t *tool) Call(ctx context.Context, c host.Call) (abi.Result, error) {
	c.Tool = t.decl.Name
	return t.plugin.call(ctx, c)
}

func (p *Plugin) call(ctx context.Context, from host.Call) (res abi.Result, err error) {
	if err := p.hold(); err != nil {
		return res, err
	}
	left := p.calls.Done // what is left to do
	defer func() { left() }()
	if err := p.reentry(ctx); err != nil {
		return res, err
	}
	prog, err := p.program(ctx, from.Progress)
	if err != nil {
		return res, fmt.Errorf("plugin %q: %w", p.pkg.Manifest.Name, err)
	}
	if len(from.Args) == 0 {
		from.Args = []byte("{}")
	}
	t := tapeOf(ctx)
	res, rest, err := p.enter(ctx, prog, from, t)
	if rest != nil {
		left = sync.OnceFunc(func() { defer p.calls.Done(); rest() }) // twice, and two calls had one sandbox
	}
	if err != nil {
		return abi.Result{}, fmt.Errorf("plugin %q: %w", p.pkg.Manifest.Name, err)
	}
	if from.Later != nil && t == nil {
		from.Later(left)
		left = func() {}
	}
	return res, nil
}

// enter runs one call from its place in the queue to its result. rest gives the
// instance and the place back, and reports the receipt; it may be nil.
func (p *Plugin) enter(ctx context.Context, prog *program, from host.Call, t *tape) (res abi.Result, rest func(), err error) {
	wait := &call{plugin: p}
	if err := wait.enter(ctx); err != nil {
		return res, nil, err
	}
	runtime.LockOSThread() // its processor time is the call's
	defer runtime.UnlockOSThread()
	cctx, c := p.begin(ctx, from, false)
	c.inside, c.locked, c.tape = true, true, t
	var in *instance
	defer func() {
		if rest != nil {
			return
		}
		defer c.leave() // a panic of ours or of a format: nobody else gives anything back
		if in != nil {
			prog.put(cctx, c, in, true)
		}
		c.end(nil)
	}()
	c.cpu, _ = threadTime()
	if t != nil && !t.replay {
		t.rec.Args = from.Args
	}
	in, err = prog.get(cctx, c)
	if err == nil {
		res, err = in.invoke(cctx, c, from.Tool, from.Args)
		c.unlink(cctx, err != nil)
		in.used(c)
	}
	if err == nil && t != nil {
		err = t.full
	}
	err = c.outOfMemory(err)
	c.end(err)
	return res, func() {
		defer c.leave()
		if in != nil {
			prog.put(cctx, c, in, err != nil)
		}
		c.report(res, err)
	}, err
}

// report hands over the receipt of a call that is over.
func (c *call) report(res abi.Result, err error) {
	c.mu.Lock()
	receipt := c.receipt
	c.mu.Unlock()
	if c.tape != nil {
		c.tape.finish(receipt, res, err)
	}
	if c.from.Receipt != nil {
		c.from.Receipt(receipt)
	}
}

// outOfMemory names the limit behind a trap. A guest whose memory may not grow
// ends itself, which looks like any other fault of its own.
func (c *call) outOfMemory(err error) error {
	var trap *TrapError
	most := c.limits.Memory
	if errors.As(err, &trap) && trap.Reason == "unreachable" && most > 0 && c.receipt.Memory >= most-most/8 {
		return &LimitError{limitMemory, fmt.Sprintf("%d MiB, %d in use", most>>20, c.receipt.Memory>>20)}
	}
	return err
}

// reentry refuses a call that comes, through whatever tools, from a guest of
// the same plugin.
func (p *Plugin) reentry(ctx context.Context) error {
	caller := callOf(ctx)
	for c := caller; c != nil; c = c.outer {
		if c.plugin == p {
			caller.reentered = true
			return fmt.Errorf("plugin %q calls itself: %w", p.pkg.Manifest.Name, abi.ErrReentrant)
		}
	}
	return nil
}
