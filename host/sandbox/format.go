package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Format is a contract with modules that is not elf/1: what they may import
// beside WASI, and how they are started, described and called. Such modules go
// through the same stages, and what they do to the world goes through
// [Guest.Do], so that rights, limits, receipts and recordings are the same.
//
// The functions of a Format are called for many guests at once. What belongs
// to one call lives in Guest.State.
type Format struct {
	Name  string // "extism": for people, and in the name of what is kept on disk
	Key   string // of settings that initialisation may see; other settings, another snapshot
	Funcs []Func

	// Check holds the exports against the format.
	Check func(*vet.Report) error
	// State makes the state of one call; nil: none.
	State func() any
	// Init brings a fresh instance up, with nobody's rights. Nil calls
	// _initialize where there is one. The state is dropped afterwards.
	Init func(ctx context.Context, g *Guest) error
	// Describe asks the module for its tools, without rights. Nil: the package
	// names them.
	Describe func(ctx context.Context, g *Guest) ([]abi.ToolDecl, error)
	// Call calls a tool. Args is a JSON object that fits its schema.
	Call func(ctx context.Context, g *Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error)
	// Links are modules that this one imports functions of. Each needs its Funcs.
	Links []Link
	// Keep names exports of the start-up that calls use: "_start".
	Keep []string
	// Caps are what the functions may reach beside their own Cap, where one
	// function stands for many things.
	Caps []abi.Capability
}

// Func is a host function of a Format.
type Func struct {
	Module, Name    string
	Params, Results []api.ValueType
	// Run takes its parameters from the stack and puts its results there. A
	// panic with an *Ended ends the guest.
	Run func(ctx context.Context, g *Guest, stack []uint64)
	// Local: it works on the state of the call in bounded time and reaches
	// nothing else, so it is not counted among the host calls.
	Local bool
	// Cap is what Run may reach at the most, for who inspects a module; "" is
	// nothing. It gives nothing: Guest.Do asks the call's rights.
	Cap abi.Capability
}

// Ended is what a host function panics with to end its guest: the call fails
// with Err.
type Ended struct{ Err error }

func (e *Ended) Error() string { return e.Err.Error() }

func (e *Ended) Unwrap() error { return e.Err }

// Guest is one instance in one call, as a Format sees it. It must not be kept
// after the call.
type Guest struct {
	State any

	call  *call
	mod   api.Module
	funcs map[string]api.Function // of the instance, those in use excepted; nil while it is started
	depth int                     // of Call
}

// guest is the call's guest in mod.
func (c *call) guest(mod api.Module) *Guest {
	if c.foreign == nil {
		c.foreign = &Guest{call: c}
		if f := c.plugin.pkg.Format.State; f != nil {
			c.foreign.State = f()
		}
	}
	c.foreign.mod = mod
	return c.foreign
}

// guest is the call's guest in this instance.
func (in *instance) guest(c *call) *Guest {
	if in.funcs == nil {
		in.funcs = map[string]api.Function{}
	}
	g := c.guest(in.mod)
	g.funcs = in.funcs
	return g
}

// Has reports whether the module exports a function.
func (g *Guest) Has(export string) bool { return g.function(export) != nil }

// function finds an export. The runtime makes a new stack for each look-up, so
// instances that serve many calls keep what they looked up.
func (g *Guest) function(export string) api.Function {
	if f := g.funcs[export]; f != nil {
		return f
	}
	f := g.mod.ExportedFunction(export)
	if f != nil && g.funcs != nil {
		g.funcs[export] = f
	}
	return f
}

// maxEntries bounds how often a guest is entered again by the host functions
// that it called: each takes stack of the host's.
const maxEntries = 16

// Call calls an export. The error is what this package says of a guest that
// did not return; after one that is no *ExitError, the instance is spent.
//
// A host function may call its guest. A function of the runtime has one stack,
// so one that is being called is looked up anew for the call within.
func (g *Guest) Call(ctx context.Context, export string, params ...uint64) ([]uint64, error) {
	f := g.function(export)
	if f == nil {
		return nil, fmt.Errorf("the module has no function %q", export)
	}
	if g.depth >= maxEntries {
		return nil, &LimitError{limitDepth, fmt.Sprintf("%d calls within calls", maxEntries)}
	}
	g.depth++
	delete(g.funcs, export)
	res, err := f.Call(ctx, params...)
	g.depth--
	if g.funcs != nil {
		g.funcs[export] = f
	}
	return res, guestError(ctx, err)
}

// Memory is the guest's linear memory.
func (g *Guest) Memory() wasi.Memory { return wasi.MemoryOf(g.mod, nil) }

// Limits are those of the call.
func (g *Guest) Limits() abi.Limits { return g.call.limits }

// Caller says on whose behalf the call is made.
func (g *Guest) Caller() host.Caller { return g.call.from.Caller }

// Early reports whether the guest is being started or described: nobody's
// rights are there, and operations but elf:log are refused.
func (g *Guest) Early() bool { return g.call.early }

// System changes what WASI shows of the world in this call, before the guest
// is called. Rights and files are not to be changed.
func (g *Guest) System(edit func(*wasi.Config)) {
	conf := g.call.wasiConfig()
	edit(&conf)
	g.call.sys.Close()
	g.call.sys = wasi.New(conf)
}

// Do performs an operation of elf/1 for the guest, as docs/abi.md has it:
// with the call's rights, within its limits, and recorded. header may be nil.
func (g *Guest) Do(ctx context.Context, module, name string, header any, body []byte) (head json.RawMessage, out []byte, err error) {
	full := module + "." + name
	o, ok := g.call.plugin.ops[full]
	if !ok {
		return nil, nil, fmt.Errorf("there is no operation %s: %w", full, abi.ErrUnsupported)
	}
	frame, err := joinFrame(header, body)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %w", full, err, abi.ErrInvalid)
	}
	reply, err := g.Effect(full, frame, func() ([]byte, error) {
		if g.call.early && module != abi.ModuleLog {
			return nil, fmt.Errorf("%s is not available during initialisation: %w", full, abi.ErrDenied)
		}
		return o.run(ctx, g.call, frame)
	})
	if err != nil || reply == nil {
		return nil, nil, err
	}
	return splitFrame(reply)
}

// Elicit has a person fill in a form; a replay answers as the person did. ok is
// false where the person declines, and where nobody is there.
func (g *Guest) Elicit(ctx context.Context, message string, schema json.RawMessage) (content json.RawMessage, ok bool, err error) {
	l, pkg := g.call.plugin.loader, &g.call.plugin.pkg
	if l.Elicit == nil || g.call.early {
		return nil, false, nil
	}
	content, err = g.Effect("elicit", schema, func() ([]byte, error) {
		got, ok, err := l.Elicit(ctx, host.Origin{Source: pkg.Source, Name: pkg.Manifest.Name, Digest: pkg.Digest}, message, schema)
		if !ok || err != nil {
			return nil, err
		}
		return got, nil
	})
	return content, len(content) > 0, err
}

// Effect does what a replay must not do again: f's answer to the request is
// recorded, and a replay answers it from the recording.
func (g *Guest) Effect(name string, request []byte, f func() ([]byte, error)) ([]byte, error) {
	reply, err := g.effect(name, request, f)
	if err != nil && code(err) == abi.ErrLimit {
		g.call.mu.Lock()
		g.call.hit(name)
		g.call.mu.Unlock()
	}
	return reply, err
}

func (g *Guest) effect(name string, request []byte, f func() ([]byte, error)) ([]byte, error) {
	if g.call.tape == nil {
		return f()
	}
	return g.call.tape.effect(name, request, f)
}

// foreignFunc runs a host function of a format.
func foreignFunc(f *Func) api.GoModuleFunc {
	full := f.Module + "." + f.Name
	if f.Local {
		return func(ctx context.Context, mod api.Module, stack []uint64) {
			defer contain(full)
			f.Run(ctx, callOf(ctx).guest(mod), stack)
		}
	}
	return func(ctx context.Context, mod api.Module, stack []uint64) {
		c := callOf(ctx)
		c.counted(full, true, func() { f.Run(ctx, c.guest(mod), stack) })
	}
}

// offers is what a module of the format may import.
func (f *Format) offers() vet.Allow {
	list := vet.Allow{wasi.ModuleName: wasi.Signatures()}
	for _, fn := range f.Funcs {
		if list[fn.Module] == nil {
			list[fn.Module] = map[string]wasmbin.FuncType{}
		}
		list[fn.Module][fn.Name] = wasmbin.FuncType{Params: fn.Params, Results: fn.Results}
	}
	return list
}

func (f *Format) check(r *vet.Report) error {
	if r.Used[vet.Memories] == 0 {
		return errors.New("the module has no memory")
	}
	if f.Check == nil {
		return nil
	}
	return f.Check(r)
}

// initForeign starts an instance the way its format does.
func (c *call) initForeign(ctx context.Context, mod api.Module) error {
	f := c.plugin.pkg.Format
	if f.Init == nil {
		return initialise(ctx, mod)
	}
	if err := c.fuel.Arm(mod); err != nil {
		return err
	}
	err := f.Init(ctx, c.guest(mod))
	c.foreign = nil
	return err
}

// invokeForeign calls a tool of a module of another format.
func (in *instance) invokeForeign(ctx context.Context, c *call, name string, args []byte) (abi.Result, error) {
	decl, ok := c.plugin.decl(name)
	if !ok {
		return abi.Result{}, fmt.Errorf("there is no tool %q", name)
	}
	r, err := c.plugin.pkg.Format.Call(ctx, in.guest(c), decl, args)
	if err != nil {
		return abi.Result{}, err
	}
	size := int64(len(r.Structured))
	for i, b := range r.Content {
		if err := checkContent(b); err != nil {
			return abi.Result{}, fmt.Errorf("content block %d of the result: %w", i+1, err)
		}
		size += int64(len(b.Text) + len(b.Data))
		if b.Resource != nil {
			size += int64(len(b.Resource.Text) + len(b.Resource.Blob))
		}
	}
	if limit := c.limits.Output; limit > 0 && size > limit {
		return abi.Result{}, &LimitError{limitOutput, fmt.Sprintf("%d bytes", limit)}
	}
	return r, nil
}

func (p *Plugin) decl(name string) (abi.ToolDecl, bool) {
	for _, t := range p.desc.Tools {
		if t.Name == name {
			return t, true
		}
	}
	return abi.ToolDecl{}, false
}

// describeForeign asks the module for its tools.
func (in *instance) describeForeign(ctx context.Context, c *call) ([]byte, error) {
	f := in.program.plugin.pkg.Format
	if f.Describe == nil {
		return nil, errors.New("the package names no tools")
	}
	tools, err := f.Describe(ctx, in.guest(c))
	if err != nil {
		return nil, err
	}
	return json.Marshal(abi.Description{ABI: abi.Version, Tools: tools})
}

// Exited reports whether err is the end of a guest by proc_exit, and with what code.
func Exited(err error) (uint32, bool) {
	var own *ExitError
	if errors.As(err, &own) {
		return own.Code, true
	}
	var raw *sys.ExitError
	if errors.As(err, &raw) {
		return raw.ExitCode(), true
	}
	return 0, false
}
