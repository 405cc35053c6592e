package sandbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// Plugin is a loaded package. Its tools are safe for concurrent use.
type Plugin struct {
	loader *Loader
	pkg    Package
	limits abi.Limits
	needs  policy.Grants
	desc   abi.Description
	tools  []host.Tool
	slots  *queue
	ops    map[string]op      // for Guest.Do; nil for elf/1
	linked map[string]*Plugin // what its format links, without tools

	mu     sync.Mutex
	ready  *program      // nil: not yet
	making chan struct{} // not nil: somebody makes it; closed when done
	closed bool
	calls  sync.WaitGroup
	draft  draft

	halted context.Context // over: so are all calls
	halt   context.CancelCauseFunc
}

// ErrClosed is the error of a call to a plugin that was closed.
var ErrClosed = errors.New("the plugin is closed")

// Load checks a package and names its tools. It takes no rights: they come
// with each call. Close the plugin in the end.
func (l *Loader) Load(ctx context.Context, pkg Package) (*Plugin, error) {
	m := &pkg.Manifest
	fail := func(err error) (*Plugin, error) { return nil, fmt.Errorf("loading plugin %q: %w", m.Name, err) }
	if m.ABI != abi.Version {
		return fail(fmt.Errorf("its manifest says abi %q; this host knows %q", m.ABI, abi.Version))
	}
	if pkg.Wasm == nil {
		return fail(errors.New("the package has no module"))
	}
	needs, err := policy.FromNeeds(m.Needs)
	if err != nil {
		return fail(err)
	}
	p := l.plugin(pkg, l.limits(m), needs)
	if pkg.Format != nil {
		p.ops = map[string]op{}
		for _, o := range operations() {
			p.ops[o.module+"."+o.name] = o
		}
	}
	p.linked = p.links()
	if p.desc, err = p.description(ctx); err == nil {
		err = checkDescription(p.desc)
	}
	if err != nil {
		p.Close(ctx)
		return fail(err)
	}
	for _, t := range p.desc.Tools {
		p.tools = append(p.tools, &tool{p, t})
	}
	return p, nil
}

func (l *Loader) plugin(pkg Package, limits abi.Limits, needs policy.Grants) *Plugin {
	p := &Plugin{loader: l, pkg: pkg, limits: limits, needs: needs, slots: newQueue(max(limits.Parallel, 1))}
	p.halted, p.halt = context.WithCancelCause(context.Background())
	p.draft.over, p.draft.stop = context.WithCancel(p.halted)
	return p
}

// Tools lists what the plugin offers. Nothing was run to know it.
func (p *Plugin) Tools() []host.Tool { return p.tools }

// Description is what the package is to be pinned with.
func (p *Plugin) Description() abi.Description { return p.desc }

// Warm makes ready what the first call would: `elfhost plugin warm`.
func (p *Plugin) Warm(ctx context.Context, progress func(abi.Progress)) error {
	if err := p.hold(); err != nil {
		return err
	}
	defer p.calls.Done()
	_, err := p.program(ctx, progress)
	return err
}

// Fill makes n instances ready before calls ask for them, as far as the
// manifest's limit on calls at once lets them lie idle.
func (p *Plugin) Fill(ctx context.Context, n int) error {
	if err := p.hold(); err != nil {
		return err
	}
	defer p.calls.Done()
	prog, err := p.program(ctx, nil)
	if err != nil || prog.pool == nil {
		return err
	}
	return prog.pool.Fill(ctx, n)
}

// lastMoment is what calls have to end that Close has stopped. Only a broker
// that ignores its context takes longer.
const lastMoment = 2 * time.Second

// Close waits for the calls that are on their way, ends them with ErrClosed
// when ctx ends first, and then gives everything back. Calls after it are
// ErrClosed. What a call uses is never taken from under it: one that does not
// even end then gives it back itself, later.
func (p *Plugin) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.draft.stop()
	done := make(chan struct{})
	go func() {
		p.calls.Wait()
		for _, l := range p.linked { // may still be made ready for a call that has gone
			l.calls.Wait()
		}
		close(done)
	}()
	free := context.WithoutCancel(ctx)
	select {
	case <-done:
		return p.release(free)
	case <-ctx.Done():
	}
	p.halt(ErrClosed)
	select {
	case <-done:
		return errors.Join(ctx.Err(), p.release(free))
	case <-time.After(lastMoment):
		go func() { <-done; p.release(free) }()
		return ctx.Err()
	}
}

// release gives back what no call uses any more.
func (p *Plugin) release(ctx context.Context) error {
	p.halt(ErrClosed) // instances that are being reset are guests too
	var errs []error
	p.mu.Lock()
	prog := p.ready
	p.ready = nil
	p.mu.Unlock()
	if prog != nil {
		errs = append(errs, prog.close(ctx))
	}
	errs = append(errs, p.draft.close(ctx))
	for _, l := range p.linked {
		errs = append(errs, l.release(ctx))
	}
	return errors.Join(errs...)
}

// hold keeps the plugin open for one call.
func (p *Plugin) hold() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.calls.Add(1)
	return nil
}

// id is the plugin's name in stores that plugins share.
func (p *Plugin) id() string {
	if m := p.pkg.Manifest; m.Publisher != "" {
		return m.Publisher + "/" + m.Name
	}
	return p.pkg.Manifest.Name
}

func (p *Plugin) digest() string { return p.pkg.Digest }

// program makes the module ready, once; who comes meanwhile waits. A failure
// is not kept: the next call tries again, with its own time.
//
// Who asks is let go as soon as ctx is over. What cannot be stopped at once then
// ends by itself behind it, within the bounds of package vet (the longest is the
// interpreter's translation before a snapshot, 18 s for the largest module that
// is allowed); nothing more of the plugin is begun before.
func (p *Plugin) program(ctx context.Context, progress func(abi.Progress)) (*program, error) {
	for {
		p.mu.Lock()
		if p.ready != nil {
			defer p.mu.Unlock()
			return p.ready, nil
		}
		if wait := p.making; wait != nil {
			p.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		p.making = make(chan struct{})
		p.calls.Add(1) // beside the caller's own, which may go before
		p.mu.Unlock()
		made := meanwhile(func() (*program, error) { return p.make(ctx, progress) })
		select {
		case <-made.done:
			return made.wait()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// make is what one caller of program does for all.
func (p *Plugin) make(ctx context.Context, progress func(abi.Progress)) (prog *program, err error) {
	defer p.calls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.halted, func() { cancel(ErrClosed) })()
	defer func() { // after a panic, too: others wait
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.ready = prog; prog != nil && prog.rest != nil && !p.closed {
			p.calls.Add(1)
			go p.complete(prog)
		}
		close(p.making)
		p.making = nil
	}()
	return p.build(ctx, progress)
}

// wasm reads the module and holds it against the digest it was pinned with.
func (p *Plugin) wasm() ([]byte, error) {
	b, err := p.pkg.Wasm()
	if err != nil {
		return nil, fmt.Errorf("reading the module: %w", err)
	}
	sum := sha256.Sum256(b)
	got := hex.EncodeToString(sum[:])
	if want := p.pkg.Digest; want != "" && want != got {
		return nil, fmt.Errorf("the module has the digest %s, but %s is pinned: it was changed after it was installed", got, want)
	}
	return b, nil
}
