package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/kit/quickjs"
	"github.com/elfhost/elfhost/pdk/golden"
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
	return errors.Join(b.first(ctx), b.script(ctx), b.dev(ctx, "js", "plugin.js"), b.dev(ctx, "go", "main.go"))
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

// dev measures from saving a source to the first answer of the new build in a
// session that was there before: what `plugin dev` and a chat do.
func (b *kitBench) dev(ctx context.Context, lang, source string) error {
	root := filepath.Join(b.dir, "dev-"+lang)
	dir := filepath.Join(root, "greet")
	if _, err := kit.New(dir, lang, "hello"); err != nil {
		return err
	}
	paths := config.Paths{Config: filepath.Join(root, "config"), State: filepath.Join(root, "state"), Cache: filepath.Join(root, "cache")}
	for _, d := range []string{paths.Config, paths.State, paths.Cache, filepath.Join(root, "ws")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	build := func(ctx context.Context) error {
		_, err := kit.Build(ctx, dir, io.Discard)
		if missing := new(kit.MissingToolchain); errors.As(err, &missing) {
			return err
		}
		pkg, _, err := app.ReadPackage(dir)
		if err != nil {
			return err
		}
		return devRound(ctx, paths, dir, pkg)
	}
	if err := build(ctx); err != nil {
		fmt.Fprintf(b.w, "kit.dev_%s: skipped: %v\n", lang, err)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	a, err := app.Open(ctx, app.Options{
		Dir: filepath.Join(root, "ws"), Paths: &paths, Env: func(string) string { return "" }, Compiler: self,
		Plugins: []string{dir}, Follow: true, Allow: []string{"greet greet"},
	})
	if err != nil {
		return err
	}
	defer a.Close(ctx)
	watching, stop := context.WithCancel(ctx)
	defer stop()
	built := make(chan struct{}, 1)
	go kit.Watch(watching, dir, func(ctx context.Context) error {
		err := build(ctx)
		if ctx.Err() == nil {
			built <- struct{}{}
		}
		return err
	})
	<-built
	file := filepath.Join(dir, source)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var took []time.Duration
	for _, word := range []string{"Hello", "Good day", "Welcome", "Hail", "Hi"} {
		next := strings.Replace(string(text), "Hello", word, 1)
		start := time.Now()
		if err := os.WriteFile(file, []byte(next), 0o644); err != nil {
			return err
		}
		for {
			r := a.Registry.Invoke(ctx, host.Call{ID: "1", Tool: "greet", Args: json.RawMessage(`{"name":"Ada"}`)})
			if strings.HasPrefix(r.Text(), word+",") {
				break
			}
			if time.Since(start) > time.Minute {
				return fmt.Errorf("%s: the new build does not come; the tool answers %q", lang, r.Text())
			}
			time.Sleep(5 * time.Millisecond)
		}
		took = append(took, time.Since(start))
		if word == "Hello" {
			continue // the build that was there
		}
		select { // somebody reads the answer before saving again
		case <-built:
		case <-time.After(time.Minute):
			return fmt.Errorf("%s: the round does not end", lang)
		}
	}
	took = took[1:]
	slices.Sort(took)
	Figure(b.w, "kit.dev_"+lang+"_save_to_answer_s", took[len(took)/2].Seconds(), 2)
	return nil
}

// devRound is what plugin dev does with a build.
func devRound(ctx context.Context, paths config.Paths, dir string, pkg sandbox.Package) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cases, err := golden.Read(dir)
	if err != nil {
		return err
	}
	if _, err := app.KeepBuild(paths, dir, pkg); err != nil {
		return err
	}
	b, err := kit.Open(ctx, pkg, self, filepath.Join(paths.Cache, "wasm"))
	if err != nil {
		return err
	}
	if err := b.Plugin.Warm(ctx, nil); err != nil {
		return err
	}
	for _, c := range cases {
		_ = b.Run(ctx, c) // the greeting is another than the cases'
	}
	return b.Close(ctx)
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
