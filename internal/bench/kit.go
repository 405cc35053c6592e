package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/kit/quickjs"
)

// Kit measures how long authors wait: from nothing to a tested plugin, and for
// a call of a script against an engine that is booted for it.
func Kit(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := &kitBench{w, dir}
	return errors.Join(b.first(ctx), b.script(ctx))
}

type kitBench struct {
	w   io.Writer
	dir string
}

// first measures from nothing to a tested plugin in Go, with a warm build cache.
func (b *kitBench) first(ctx context.Context) error {
	var took time.Duration
	for _, parent := range []string{"warms the cache", "measured"} {
		start := time.Now()
		dir := filepath.Join(b.dir, parent, "my-tool")
		if _, err := kit.New(dir, "go", "hello"); err != nil {
			return err
		}
		if err := kit.TestNative(ctx, dir, io.Discard); err != nil {
			return err
		}
		if _, err := kit.Build(ctx, dir, io.Discard); err != nil {
			return err
		}
		took = time.Since(start)
	}
	Figure(b.w, "kit.new_build_test_s", took.Seconds(), 60)
	return nil
}

// script measures an isolated call of a script, limits on, and the same script
// booted, evaluated and called on the bare engine.
func (b *kitBench) script(ctx context.Context) error {
	engine, err := quickjs.Engine()
	if errors.Is(err, quickjs.ErrNotBuilt) {
		fmt.Fprintln(b.w, "kit.js: skipped: make javascript fetches the engine")
		return nil
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(b.dir, "greet")
	if _, err := kit.New(dir, "js", "hello"); err != nil {
		return err
	}
	if _, err := kit.Build(ctx, dir, io.Discard); err != nil {
		return err
	}
	pkg, _, err := app.ReadPackage(dir)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	l := &sandbox.Loader{Dir: filepath.Join(b.dir, "cache"), Compiler: self}
	p, err := l.Load(ctx, pkg)
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	bare, err := newBareEngine(ctx, engine)
	if err != nil {
		return err
	}
	defer bare.rt.Close(ctx)
	var failed error
	ours := func() {
		r, err := p.Tools()[0].Call(ctx, host.Call{Args: json.RawMessage(`{"name":"Ada"}`)})
		if err != nil || r.Text() != "Hello, Ada!" {
			failed = fmt.Errorf("the script answers %q, %w", r.Text(), err)
		}
	}
	theirs := func() {
		if err := bare.hello(ctx); err != nil {
			failed = err
		}
	}
	ours()
	t := Times(15, 20, ours, theirs)
	Figure(b.w, "kit.js_isolated_call_ms", ms(t[0]), 1.2)
	Figure(b.w, "kit.js_call_of_boot_eval_call", float64(t[0])/float64(t[1]), 0.25)
	fmt.Fprintf(b.w, "  (boot, evaluate and call on the bare engine: %.2f ms)\n", ms(t[1]))
	return failed
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bareEngine is QuickJS on the raw runtime: no limits, no reset, compiled once.
type bareEngine struct {
	rt   wazero.Runtime
	code wazero.CompiledModule
}

func newBareEngine(ctx context.Context, wasm []byte) (*bareEngine, error) {
	rt := wazero.NewRuntime(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	env := rt.NewHostModuleBuilder("env")
	i32 := api.ValueTypeI32
	for name, params := range map[string]int{"host_call": 5, "host_interrupt": 0, "host_module_normalize": 2, "host_module_load": 2, "host_get_timezone_offset": 2} {
		var p []api.ValueType
		for range params {
			p = append(p, i32)
		}
		env.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, s []uint64) { s[0] = 0 }), p, []api.ValueType{i32}).Export(name)
	}
	env.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {}), []api.ValueType{i32, i32, i32}, nil).Export("host_promise_rejection")
	_, err := env.Instantiate(ctx)
	if err == nil {
		var code wazero.CompiledModule
		if code, err = rt.CompileModule(ctx, wasm); err == nil {
			return &bareEngine{rt, code}, nil
		}
	}
	return nil, errors.Join(err, rt.Close(ctx))
}

// hello boots an engine, evaluates the script, and calls it.
func (e *bareEngine) hello(ctx context.Context) error {
	mod, err := e.rt.InstantiateModule(ctx, e.code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return err
	}
	defer mod.Close(ctx)
	do := func(name string, params ...uint64) uint64 {
		if err != nil {
			return 0
		}
		var res []uint64
		if res, err = mod.ExportedFunction(name).Call(ctx, params...); err != nil || len(res) == 0 {
			return 0
		}
		return res[0]
	}
	text := func(s string) uint64 {
		at := do("wasm_malloc", uint64(len(s)+1))
		mod.Memory().Write(uint32(at), append([]byte(s), 0))
		return at
	}
	do("qjs_init")
	var last uint64
	for _, source := range []string{
		"const hello = ({ name }) => `Hello, ${name}!`;",
		`hello(JSON.parse('{"name":"Ada"}'))`,
	} {
		last = do("qjs_eval", text(source), uint64(len(source)), text("plugin.js"), 0)
	}
	at := uint32(do("qjs_get_string", last))
	if err != nil {
		return err
	}
	if b, ok := mod.Memory().Read(at, 11); !ok || string(b) != "Hello, Ada!" {
		return fmt.Errorf("the bare engine answers %q", b)
	}
	return nil
}
