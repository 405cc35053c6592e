package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// op is one operation of the elf: modules: a frame in, a frame out.
type op struct {
	module, name string
	run          func(ctx context.Context, c *call, frame []byte) (reply []byte, err error)
}

// define makes an operation from a function over its decoded header. A nil
// reply header together with a nil body means that nothing is pending.
func define[H any](module, name string, run func(ctx context.Context, c *call, h H, body []byte) (reply any, out []byte, err error)) op {
	header := newHeader[H]()
	return op{module, name, func(ctx context.Context, c *call, frame []byte) ([]byte, error) {
		head, body, err := splitFrame(frame)
		if err != nil {
			return nil, err
		}
		h, err := header.decode(head)
		if err != nil {
			return nil, err
		}
		reply, out, err := run(ctx, c, h, body)
		if err != nil || reply == nil && out == nil {
			return nil, err
		}
		return joinFrame(reply, out)
	}}
}

// operations lists all of elf/1 but elf:io, which has another shape.
func operations() []op {
	return []op{
		define(abi.ModuleLog, "write", opLog),
		define(abi.ModuleProgress, "report", opProgress),
		define(abi.ModuleNet, "http", opHTTP),
		define(abi.ModuleModel, "generate", opGenerate),
		define(abi.ModuleKV, "get", opKVGet),
		define(abi.ModuleKV, "set", opKVSet),
		define(abi.ModuleKV, "delete", opKVDelete),
		define(abi.ModuleKV, "list", opKVList),
		define(abi.ModuleSecret, "placeholder", opSecret),
		define(abi.ModuleEnv, "get", opEnvGet),
		define(abi.ModuleEnv, "list", opEnvList),
		define(abi.ModuleExec, "run", opExec),
		define(abi.ModuleTool, "call", opTool),
	}
}

var (
	opParams  = []api.ValueType{api.ValueTypeI32, api.ValueTypeI32}
	opResults = []api.ValueType{api.ValueTypeI32}
)

// allowed are the functions that a module with these needs may import.
func allowed(needs []abi.Need) vet.Allow {
	asked := map[abi.Capability]bool{"": true}
	for _, n := range needs {
		asked[n.Cap] = true
	}
	list := vet.Allow{wasi.ModuleName: wasi.Signatures()}
	add := func(module, name string, params []api.ValueType) {
		if list[module] == nil {
			list[module] = map[string]wasmbin.FuncType{}
		}
		list[module][name] = wasmbin.FuncType{Params: params, Results: opResults}
	}
	add(abi.ModuleIO, "take", opParams)
	add(abi.ModuleIO, "error", nil)
	for _, o := range operations() {
		if c, _ := abi.Import(o.module); asked[c] {
			add(o.module, o.name, opParams)
		}
	}
	return list
}

// hostModules puts everything a guest may import into its runtime. The vetted
// imports decide what it does import.
func hostModules(ctx context.Context, rt wazero.Runtime, format *Format) error {
	builders := map[string]wazero.HostModuleBuilder{}
	define := func(module, name string, params, results []api.ValueType, f api.GoModuleFunc) {
		b := builders[module]
		if b == nil {
			b = rt.NewHostModuleBuilder(module)
			builders[module] = b
		}
		b.NewFunctionBuilder().WithGoModuleFunction(f, params, results).WithName(name).Export(name)
	}
	if format == nil {
		elfModules(func(module, name string, params []api.ValueType, f api.GoModuleFunc) {
			define(module, name, params, opResults, f)
		})
	} else {
		for i := range format.Funcs {
			f := &format.Funcs[i]
			define(f.Module, f.Name, f.Params, f.Results, foreignFunc(f))
		}
	}
	w := rt.NewHostModuleBuilder(wasi.ModuleName)
	wasi.Export(w, func(ctx context.Context, mod api.Module, f *wasi.Func, stack []uint64) {
		c := callOf(ctx)
		c.host(f.Full, f.Waits(c.sys, stack), mod, stack, f.Params(), func(m wasi.Memory) { f.Call(ctx, c.sys, m, stack) })
	})
	builders[wasi.ModuleName] = w
	for name, b := range builders {
		if _, err := b.Instantiate(ctx); err != nil {
			return fmt.Errorf("host module %q: %w", name, err)
		}
	}
	return nil
}

// elfModules defines the modules of elf/1.
func elfModules(add func(module, name string, params []api.ValueType, f api.GoModuleFunc)) {
	for _, o := range operations() {
		full := o.module + "." + o.name
		add(o.module, o.name, opParams, func(ctx context.Context, mod api.Module, stack []uint64) {
			c := callOf(ctx)
			c.host(full, true, mod, stack, opParams, func(m wasi.Memory) { stack[0] = c.serve(ctx, o, m, stack) })
		})
	}
	add(abi.ModuleIO, "take", opParams, func(ctx context.Context, mod api.Module, stack []uint64) {
		c := callOf(ctx)
		c.host("elf:io.take", false, mod, stack, opParams, func(m wasi.Memory) { stack[0] = c.take(m, uint32(stack[0]), uint32(stack[1])) })
	})
	add(abi.ModuleIO, "error", nil, func(ctx context.Context, mod api.Module, stack []uint64) {
		c := callOf(ctx)
		c.host("elf:io.error", false, mod, stack, nil, func(wasi.Memory) {
			c.put([]byte(c.lastErr))
			stack[0] = uint64(len(c.lastErr))
		})
	})
}

// serve runs one operation. The request is copied before anything looks at it.
func (c *call) serve(ctx context.Context, o op, m wasi.Memory, stack []uint64) uint64 {
	c.pending, c.unread = nil, false
	reply, err := c.request(ctx, o, m, uint32(stack[0]), uint32(stack[1]))
	if err != nil {
		c.lastErr = err.Error()
		no := code(err)
		if no == abi.ErrLimit {
			c.mu.Lock()
			c.hit(o.module + "." + o.name)
			c.mu.Unlock()
		}
		return api.EncodeI32(int32(no))
	}
	if reply != nil {
		c.put(reply)
	}
	return uint64(len(reply))
}

func (c *call) request(ctx context.Context, o op, m wasi.Memory, ptr, n uint32) ([]byte, error) {
	if n > maxFrame {
		return nil, fmt.Errorf("a request of %d bytes; the limit is %d: %w", n, maxFrame, abi.ErrTooLarge)
	}
	frame, ok := m.Copy(ptr, n)
	if !ok {
		return nil, fmt.Errorf("the request lies outside the memory: %w", abi.ErrFault)
	}
	if c.tape != nil {
		c.tape.request(frame)
	}
	if c.early && o.module != abi.ModuleLog {
		return nil, fmt.Errorf("%s.%s is not available during initialisation: %w", o.module, o.name, abi.ErrDenied)
	}
	return o.run(ctx, c, frame)
}

func (c *call) put(reply []byte) { c.pending, c.unread = reply, true }

// take copies the next bytes of the pending reply into the guest.
func (c *call) take(m wasi.Memory, dst, n uint32) uint64 {
	if !c.unread {
		return api.EncodeI32(int32(abi.ErrNoReply))
	}
	b := c.pending[:min(uint64(len(c.pending)), uint64(n))]
	if len(c.pending) == 0 {
		c.unread = false
		return 0
	}
	if !m.Write(dst, b) {
		return api.EncodeI32(int32(abi.ErrFault))
	}
	c.pending = c.pending[len(b):]
	return uint64(len(b))
}
