package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/image"
	"github.com/elfhost/elfhost/host/sandbox/pool"
)

// program is a module that went through the stages: it gives instances.
type program struct {
	plugin *Plugin
	rt     wazero.Runtime
	code   wazero.CompiledModule
	cache  wazero.CompilationCache
	base   *image.Base           // nil: instances are started plainly
	pool   *pool.Pool[*instance] // nil likewise
	spans  []image.Span

	rest    *artifact // of a draft: what its machine code is made from
	scratch string    // a folder to remove in the end
}

// compile makes the machine code, or finds it in the cache. The error is
// os.ErrNotExist when it was kept and is no longer there.
func (p *Plugin) compile(ctx context.Context, a *artifact) (g *program, err error) {
	g = &program{plugin: p}
	code, err := g.machineCode(ctx, a)
	if err != nil {
		return nil, err
	}
	if err := g.load(ctx, code, a.module, a.img); err != nil {
		return nil, err
	}
	return g, nil
}

// load makes the runtime of the program. After an error nothing of it is left.
func (g *program) load(ctx context.Context, code *compile.Artifact, module []byte, img *image.Image) (err error) {
	p := g.plugin
	conf, cache, err := code.Config()
	if err != nil {
		return errors.Join(err, g.removeScratch())
	}
	g.cache = cache
	base := meanwhile(func() (*image.Base, error) { // the runtime uses one processor
		if img == nil {
			return nil, nil
		}
		return image.NewBase(img)
	})
	g.rt = wazero.NewRuntimeWithConfig(ctx, p.runtime(conf))
	if g.code, err = p.link(ctx, g.rt, module); err == nil {
		err = code.Loaded()
	}
	var bad error
	g.base, bad = base.wait()
	if err = errors.Join(err, bad); err != nil {
		return errors.Join(err, g.close(context.WithoutCancel(ctx)))
	}
	if g.base != nil {
		g.spans = img.Reseed
		g.pool = &pool.Pool[*instance]{New: g.fresh, Max: max(p.limits.Parallel, 1)}
	}
	return nil
}

// machineCode compiles what was not, and completes the artifact.
func (g *program) machineCode(ctx context.Context, a *artifact) (*compile.Artifact, error) {
	l := g.plugin.loader
	if l.Compiler == "" {
		return nil, errors.New("no program is named that compiles (Loader.Compiler): the host does not do it in its own process")
	}
	if a.whole == nil {
		return a.found.wait()
	}
	dir := l.codeDir()
	if l.Dir == "" { // the code of this process alone
		var err error
		if dir, err = os.MkdirTemp("", "elfhost-code-"); err != nil {
			return nil, err
		}
		g.scratch = dir
	}
	code, err := compile.Run(ctx, a.whole, compile.Options{Cache: dir, Self: l.Compiler})
	if err != nil {
		return nil, errors.Join(err, g.removeScratch())
	}
	a.code, a.module, a.whole = code.Key, code.Module, nil
	return code, nil
}

func (g *program) removeScratch() error {
	if g.scratch == "" {
		return nil
	}
	return os.RemoveAll(g.scratch)
}

func (g *program) close(ctx context.Context) error {
	var errs []error
	if g.pool != nil {
		errs = append(errs, g.pool.Close(ctx))
	}
	errs = append(errs, g.rt.Close(ctx))
	if g.cache != nil {
		errs = append(errs, g.cache.Close(ctx))
	}
	if g.base != nil {
		errs = append(errs, g.base.Close())
	}
	return errors.Join(append(errs, g.removeScratch())...)
}

// fresh makes an instance from the image. elf_reseed runs in it, so it has the
// time of a call, and nobody's rights.
func (g *program) fresh(ctx context.Context) (*instance, error) {
	cctx, c := g.plugin.begin(ctx, host.Call{Tool: abi.ExportReseed}, true)
	defer func() { c.end(nil) }()
	in, err := g.base.New(cctx, func(ctx context.Context) (api.Module, error) {
		return g.rt.InstantiateModule(ctx, g.code, bare())
	})
	if err != nil {
		return nil, guestError(cctx, err)
	}
	return g.instance(in.Module, in), nil
}

func (g *program) instance(mod api.Module, img *image.Instance) *instance {
	return &instance{program: g, mod: mod, img: img, alloc: mod.ExportedFunction(abi.ExportAlloc),
		entry: mod.ExportedFunction(abi.ExportCall), reseed: mod.ExportedFunction(abi.ExportReseed)}
}

// get gives a clean instance for the call.
func (g *program) get(ctx context.Context, c *call) (in *instance, err error) {
	if g.pool == nil {
		in, err = g.start(ctx, c)
	} else {
		in, err = g.pool.Get(ctx)
	}
	if err != nil {
		return nil, err
	}
	if in.img != nil && c.locked {
		in.img.Begin()
	}
	if err = c.fuel.Arm(in.mod); err == nil && c.tape != nil {
		err = in.seed(ctx, c.tape)
	}
	if err != nil {
		g.put(ctx, c, in, true)
		return nil, err
	}
	return in, nil
}

// start begins a plain instance. Initialisation has the call's time and
// nobody's rights.
func (g *program) start(ctx context.Context, c *call) (*instance, error) {
	early, sys := c.early, c.sys
	c.early = true
	c.sys = c.system()
	defer func() {
		c.sys.Close()
		c.early, c.sys = early, sys
	}()
	mod, err := g.rt.InstantiateModule(ctx, g.code, bare())
	if err != nil {
		return nil, fmt.Errorf("initialisation: %w", guestError(ctx, err))
	}
	if err := c.initialise(ctx, mod); err != nil {
		mod.Close(context.WithoutCancel(ctx))
		return nil, fmt.Errorf("initialisation: %w", guestError(ctx, err))
	}
	return g.instance(mod, nil), nil
}

// put gives an instance back that was used. failed: it trapped, or was stopped
// in the middle.
func (g *program) put(ctx context.Context, c *call, in *instance, failed bool) {
	if in.img != nil {
		if n, err := in.img.Touched(); err == nil {
			c.mu.Lock()
			c.receipt.Pages = max(c.receipt.Pages, int64(n))
			c.mu.Unlock()
		}
	}
	ctx = context.WithoutCancel(ctx)
	switch {
	case g.pool == nil:
		in.mod.Close(ctx)
	case c.from.Later != nil && !failed: // nobody waits
		g.pool.PutClean(ctx, in)
	default:
		g.pool.Put(ctx, in, failed)
	}
}

// used ends the guest's turn in the instance, on the thread that it ran on.
func (in *instance) used(c *call) {
	c.receipt.Memory = max(c.receipt.Memory, int64(in.mod.Memory().Size()))
	if in.img != nil {
		in.img.End()
	}
}

// instance is one sandbox. It serves one call at a time.
type instance struct {
	program              *program
	mod                  api.Module
	img                  *image.Instance // nil: a plain instance
	alloc, entry, reseed api.Function
	funcs                map[string]api.Function // that a format looked up
	stack                [4]uint64
}

// Reset brings the instance back to the image.
func (in *instance) Reset(ctx context.Context) error {
	if in.reseed == nil { // no code of the guest runs
		return in.img.Reset(ctx)
	}
	cctx, c := in.program.plugin.begin(ctx, host.Call{Tool: abi.ExportReseed}, true)
	defer func() { c.end(nil) }()
	return in.img.Reset(cctx)
}

// Close ends the instance.
func (in *instance) Close(ctx context.Context) error { return in.img.Close(ctx) }

const seedSize = 32

// seed gives an instance randomness that is recorded, or was.
func (in *instance) seed(ctx context.Context, t *tape) error {
	mem := in.mod.Memory()
	at := 0
	for _, s := range in.program.spans {
		b, ok := mem.Read(s.Offset, s.Len)
		if !ok {
			return abiErrorf("a region to reseed lies outside the memory")
		}
		if t.replay {
			at += copy(b, t.rec.Seed[min(at, len(t.rec.Seed)):])
		} else {
			t.rec.Seed = append(t.rec.Seed, b...)
		}
	}
	if in.reseed == nil {
		return nil
	}
	seed := make([]byte, seedSize)
	if t.replay {
		copy(seed, t.rec.Seed[min(at, len(t.rec.Seed)):])
	} else {
		rand.Read(seed)
		t.rec.Seed = append(t.rec.Seed, seed...)
	}
	ptr, err := in.pass(ctx, seed)
	if err != nil {
		return err
	}
	in.stack[0], in.stack[1] = uint64(ptr), seedSize
	return guestError(ctx, in.reseed.CallWithStack(ctx, in.stack[:]))
}

// invoke calls a tool.
func (in *instance) invoke(ctx context.Context, c *call, tool string, args []byte) (abi.Result, error) {
	if c.plugin.pkg.Format != nil {
		return in.invokeForeign(ctx, c, tool, args)
	}
	name, err := in.pass(ctx, []byte(tool))
	if err != nil {
		return abi.Result{}, err
	}
	ptr, err := in.pass(ctx, args)
	if err != nil {
		return abi.Result{}, err
	}
	in.stack = [4]uint64{uint64(name), uint64(len(tool)), uint64(ptr), uint64(len(args))}
	if err := in.entry.CallWithStack(ctx, in.stack[:]); err != nil {
		return abi.Result{}, guestError(ctx, err)
	}
	kind, b, err := readReply(in.mod, in.stack[0], c.limits.Output)
	if err != nil {
		return abi.Result{}, err
	}
	return result(kind, b)
}

// pass copies bytes to a place that the guest gives.
func (in *instance) pass(ctx context.Context, b []byte) (uint32, error) {
	in.stack[0] = uint64(len(b))
	if err := in.alloc.CallWithStack(ctx, in.stack[:]); err != nil {
		return 0, fmt.Errorf("%s: %w", abi.ExportAlloc, guestError(ctx, err))
	}
	ptr := uint32(in.stack[0])
	if ptr == 0 && len(b) > 0 {
		return 0, abiErrorf("%s gave no place for %d bytes", abi.ExportAlloc, len(b))
	}
	if !in.mod.Memory().Write(ptr, b) {
		return 0, abiErrorf("%s gave a place of %d bytes at %#x, outside the memory", abi.ExportAlloc, len(b), ptr)
	}
	return ptr, nil
}

// describe asks the module for its tools.
func (in *instance) describe(ctx context.Context, c *call) ([]byte, error) {
	if c.plugin.pkg.Format != nil {
		return in.describeForeign(ctx, c)
	}
	f := in.mod.ExportedFunction(abi.ExportDescribe)
	if f == nil {
		return nil, abiErrorf("there is no export %q, and the manifest names no tools", abi.ExportDescribe)
	}
	if err := f.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, guestError(ctx, err)
	}
	kind, b, err := readReply(in.mod, in.stack[0], maxDescription)
	switch {
	case err != nil:
		return nil, err
	case kind == abi.ReplyError:
		return nil, fmt.Errorf("the module says: %s", oneLine(string(b)))
	case kind != abi.ReplyText:
		return nil, abiErrorf("%s replies with text", abi.ExportDescribe)
	}
	return bytes.Clone(b), nil
}

// CompilerConfinement names what the kernel of this machine takes from the
// process that compiles plugins, beside its limits: none where it takes
// nothing.
func CompilerConfinement() []string { return compile.Confinement() }
