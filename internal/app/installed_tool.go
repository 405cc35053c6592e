package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub/keep"
	packfile "github.com/elfhost/elfhost/skillhub/pack"
)

// installedPack is an installed package of this session. It is opened at the
// first call of one of its tools.
type installedPack struct {
	pack
	app   *App
	in    keep.Installed
	names []string // of its tools, as they are registered

	mu     sync.Mutex
	plugin *sandbox.Plugin
	closed bool
	runs   map[*run]bool

	checked atomic.Int64 // when recheck last looked, in nanoseconds
}

// recheckEvery is how often a call that works hard looks for revocations.
const recheckEvery = 10 * time.Millisecond

// run is a call that is on its way, with what was granted when it began.
type run struct {
	cancel context.CancelCauseFunc
	held   []string
}

// same reports whether nothing about a package changed that an open one would
// have to know. Grants are asked for at each call.
func (p *installedPack) same(o *installedPack) bool {
	return p.in.Name == o.in.Name && p.in.Digest == o.in.Digest && p.key() == o.key() && p.in.Pin.Tools == o.in.Pin.Tools && slices.Equal(p.names, o.names)
}

func (p *installedPack) hostTools() (out []host.Tool) {
	for i, d := range p.tools {
		out = append(out, &installedTool{p: p, decl: d, name: p.names[i]})
	}
	return out
}

// open reads the package and holds its module against the digest that is
// pinned, whatever was kept of an earlier compilation.
func (p *installedPack) open(ctx context.Context) (*sandbox.Plugin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errRemoved
	}
	if p.plugin != nil {
		return p.plugin, nil
	}
	pkg, err := p.app.storedPackage(p.in.Pin, p.in.Pinned)
	if err != nil {
		return nil, err
	}
	plugin, err := p.app.Loader.Load(ctx, pkg)
	p.plugin = plugin
	return plugin, err
}

// storedPackage reads a version's files and checks them.
func (a *App) storedPackage(pin keep.Pin, pinned keep.Pinned) (sandbox.Package, error) {
	dir := a.installs.store.Files(pin.Digest)
	pkg, _, err := ReadPackage(dir)
	if err != nil {
		return pkg, fmt.Errorf("reading the package: %w", err)
	}
	if pkg.Digest != pin.Module.Hex() || manifest.NeedsHash(pkg.Manifest.Needs) != pin.Needs {
		return pkg, fmt.Errorf("%w: the module or elf.toml in %q; `elfhost plugin verify` shows what, and installing it again needs the files to be gone", keep.ErrEdited, dir)
	}
	pkg.Manifest = pinned.Manifest
	pkg.Description = &abi.Description{ABI: abi.Version, Tools: pinned.Tools}
	if pkg.Format == nil { // read again where it is compiled: mostly it never is
		pkg.Wasm = func() ([]byte, error) { return readBounded(filepath.Join(dir, packfile.ModuleFile), maxModule) }
	}
	return pkg, nil
}

// close ends the calls that run and gives everything back.
func (p *installedPack) close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	plugin := p.plugin
	for r := range p.runs {
		r.cancel(errRemoved)
	}
	p.mu.Unlock()
	if plugin == nil {
		return nil
	}
	return plugin.Close(ctx)
}

func (p *installedPack) held() []string {
	var out []string
	for _, g := range p.app.Grants(p.key()) {
		out = append(out, g.String())
	}
	return out
}

// begin counts a call in, so that a revocation ends it.
func (p *installedPack) begin(ctx context.Context) (context.Context, *run) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &run{cancel: cancel, held: p.held()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[*run]bool{}
	}
	p.runs[r] = true
	return ctx, r
}

func (p *installedPack) end(r *run) {
	r.cancel(nil)
	p.mu.Lock()
	delete(p.runs, r)
	p.mu.Unlock()
}

// recheck ends the calls that began with a right which is no longer there.
func (p *installedPack) recheck() {
	p.mu.Lock()
	idle := len(p.runs) == 0
	p.mu.Unlock()
	if idle {
		return
	}
	now := p.held()
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.runs {
		for _, g := range r.held {
			if !slices.Contains(now, g) {
				r.cancel(errRevoked(g))
			}
		}
	}
}

// installedTool is one tool of an installed package. Its declaration is the
// pinned one: nothing is opened to know it.
type installedTool struct {
	p    *installedPack
	decl abi.ToolDecl
	name string

	once  sync.Once
	needs policy.Grants
}

// Spec gives the pinned declaration.
func (t *installedTool) Spec() host.Spec {
	s := host.Spec{
		Name: t.name, Description: t.decl.Description, Input: t.decl.Input, Output: t.decl.Output, Kind: host.KindOther, Parallel: t.decl.ReadOnly,
		Origin: host.Origin{Source: host.Plugin, Name: t.p.manifest.Name, Digest: t.p.digest},
	}
	if t.decl.ReadOnly {
		s.Kind = host.KindRead
	}
	return s
}

// Needs is what the manifest asks for: no call of the tool has more.
func (t *installedTool) Needs() policy.Grants {
	t.once.Do(func() {
		if g, err := policy.FromNeeds(t.p.manifest.Needs); err == nil { // an error: nothing
			t.needs = g
		}
	})
	return t.needs
}

// Call runs the tool in the sandbox, until a right is taken back that the call
// began with.
func (t *installedTool) Call(ctx context.Context, c host.Call) (abi.Result, error) {
	plugin, err := t.p.open(ctx)
	if err != nil {
		return abi.Result{}, fmt.Errorf("package %q: %w", t.p.manifest.Name, err)
	}
	i := slices.IndexFunc(plugin.Tools(), func(x host.Tool) bool { return x.Spec().Name == t.decl.Name })
	if i < 0 {
		return abi.Result{}, fmt.Errorf("package %q has no tool %q any more", t.p.manifest.Name, t.decl.Name)
	}
	ctx, r := t.p.begin(ctx)
	defer t.p.end(r)
	note := c.Rights.Note
	c.Rights.Note = func(u policy.Use, err error) {
		if note != nil {
			note(u, err)
		}
		if now, last := time.Now().UnixNano(), t.p.checked.Load(); now-last > int64(recheckEvery) && t.p.checked.CompareAndSwap(last, now) {
			t.p.recheck()
		}
	}
	res, err := plugin.Tools()[i].Call(ctx, c)
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = fmt.Errorf("package %q: %w", t.p.manifest.Name, cause)
	}
	return res, err
}
