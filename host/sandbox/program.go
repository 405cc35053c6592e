package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// program is a module that went through the stages: it gives instances.
type program struct {
	rt    wazero.Runtime
	code  wazero.CompiledModule
	cache wazero.CompilationCache
}

// build takes a module through the stages: bytes → vet → meter → image →
// compile → pool.
func (p *Plugin) build(ctx context.Context, progress func(abi.Progress)) (*program, error) {
	wasm, err := p.wasm()
	if err != nil {
		return nil, err
	}
	if _, err := p.vet(wasm); err != nil {
		return nil, err
	}
	if progress != nil {
		progress(abi.Progress{Message: fmt.Sprintf("Compiling the plugin %s for this machine (once).", p.pkg.Manifest.Name)})
	}
	return p.compile(ctx, wasm)
}

// vet refuses what is no acceptable module before anything else reads it.
func (p *Plugin) vet(wasm []byte) (*vet.Report, error) {
	profile := vet.Standard()
	profile.Import = p.importRule()
	r, err := vet.Check(wasm, profile)
	if err != nil {
		return nil, err
	}
	return r, checkExports(r)
}

// importRule allows what the manifest asks for, and says what else would need.
func (p *Plugin) importRule() func(module, name string, t wasmbin.FuncType) error {
	allow := allowed(p.pkg.Manifest.Needs)
	return func(module, name string, t wasmbin.FuncType) error {
		if c, known := abi.Import(module); known && allow[module] == nil {
			return fmt.Errorf("it needs the capability %s, which the manifest does not ask for", c)
		}
		return allow.Import(module, name, t)
	}
}

// checkExports holds the exports against the ABI.
func checkExports(r *vet.Report) error {
	i32, i64 := wasmbin.I32, wasmbin.I64
	for _, e := range [...]struct {
		name     string
		required bool
		params   []wasmbin.ValType
		results  []wasmbin.ValType
	}{
		{abi.ExportAlloc, true, []wasmbin.ValType{i32}, []wasmbin.ValType{i32}},
		{abi.ExportCall, true, []wasmbin.ValType{i32, i32, i32, i32}, []wasmbin.ValType{i64}},
		{abi.ExportDescribe, false, nil, []wasmbin.ValType{i64}},
		{abi.ExportInitialize, false, nil, nil},
		{abi.ExportReseed, false, []wasmbin.ValType{i32, i32}, nil},
	} {
		s, ok := r.Export(e.name)
		want := wasmbin.FuncType{Params: bytesOf(e.params), Results: bytesOf(e.results)}
		switch {
		case !ok && e.required:
			return abiErrorf("there is no export %q", e.name)
		case ok && s.Kind != wasmbin.Function:
			return abiErrorf("the export %q is no function", e.name)
		case ok && s.Type.String() != want.String():
			return abiErrorf("the export %q has the type %v, not %v", e.name, s.Type, want)
		}
	}
	if s, ok := r.Export(abi.ExportMemory); !ok || s.Kind != wasmbin.MemoryKind {
		return abiErrorf("there is no export %q that is a memory", abi.ExportMemory)
	}
	return nil
}

func bytesOf(list []wasmbin.ValType) []byte {
	var b []byte
	for _, t := range list {
		b = append(b, byte(t))
	}
	return b
}

func (p *Plugin) compile(ctx context.Context, wasm []byte) (*program, error) {
	g := &program{}
	conf := wazero.NewRuntimeConfig().WithCloseOnContextDone(true).
		WithMemoryLimitPages(uint32(min((p.limits.Memory+65535)/65536, 65536)))
	if p.loader.Dir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(p.loader.Dir, "code"))
		if err != nil {
			return nil, err
		}
		g.cache = cache
		conf = conf.WithCompilationCache(cache)
	}
	g.rt = wazero.NewRuntimeWithConfig(ctx, conf)
	err := hostModules(ctx, g.rt)
	if err == nil {
		g.code, err = g.rt.CompileModule(ctx, wasm)
	}
	if err != nil {
		return nil, errors.Join(err, g.close(ctx))
	}
	return g, nil
}

func (g *program) close(ctx context.Context) error {
	err := g.rt.Close(ctx)
	if g.cache != nil {
		err = errors.Join(err, g.cache.Close(ctx))
	}
	return err
}

// get gives a clean instance for the call. Initialisation has the call's time
// and nobody's rights.
func (g *program) get(ctx context.Context, c *call) (*instance, error) {
	early, sys := c.early, c.sys
	c.early = true
	c.sys = c.system()
	defer func() {
		c.sys.Close()
		c.early, c.sys = early, sys
	}()
	conf := wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(rand.Reader)
	mod, err := g.rt.InstantiateModule(ctx, g.code, conf)
	if err != nil {
		return nil, guestError(ctx, err)
	}
	in := &instance{mod: mod, alloc: mod.ExportedFunction(abi.ExportAlloc), entry: mod.ExportedFunction(abi.ExportCall)}
	if f := mod.ExportedFunction(abi.ExportInitialize); f != nil {
		if _, err := f.Call(ctx); err != nil {
			mod.Close(ctx)
			return nil, fmt.Errorf("initialisation: %w", guestError(ctx, err))
		}
	}
	return in, nil
}

// put gives an instance back. failed: it trapped, or was stopped in the middle.
func (g *program) put(ctx context.Context, c *call, in *instance, failed bool) {
	c.receipt.Memory = max(c.receipt.Memory, int64(in.mod.Memory().Size()))
	in.mod.Close(context.WithoutCancel(ctx))
}

// instance is one sandbox. It serves one call at a time.
type instance struct {
	mod          api.Module
	alloc, entry api.Function
	stack        [4]uint64
}

// invoke calls a tool.
func (in *instance) invoke(ctx context.Context, c *call, tool string, args []byte) (abi.Result, error) {
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
	return b, nil
}
