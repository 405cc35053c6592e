package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing/fstest"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/sandbox"
)

// Foreign measures isolated calls of other people's modules, limits on, against
// Extism's SDK and a fresh instance of the raw runtime.
func Foreign(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elfhost-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b := &foreignBench{w: w, dir: dir, loader: &sandbox.Loader{Dir: filepath.Join(dir, "cache"), Compiler: self}}
	for _, part := range []func(context.Context) error{b.extism, b.wasi, b.ironclaw} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return errors.Join(b.errs...)
}

type foreignBench struct {
	w      io.Writer
	dir    string
	loader *sandbox.Loader
	errs   []error
}

func (b *foreignBench) fail(err error) {
	if err != nil && len(b.errs) < 5 {
		b.errs = append(b.errs, err)
	}
}

// module reads a file that comes with a module of Go.
func module(ctx context.Context, mod, name string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", mod).Output()
	if err != nil {
		return nil, fmt.Errorf("finding %s: %w", mod, err)
	}
	return os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), name))
}

func (b *foreignBench) load(ctx context.Context, name string, wasm []byte) (*sandbox.Plugin, error) {
	f, err := foreign.Find(fstest.MapFS{name: {Data: wasm}}, name, nil)
	if err != nil || f == nil {
		return nil, fmt.Errorf("%s: no foreign plugin: %w", name, err)
	}
	return b.loader.Load(ctx, f.Package)
}

// call expects an answer that has the text.
func (b *foreignBench) call(ctx context.Context, p *sandbox.Plugin, args json.RawMessage, want string) {
	r, err := p.Tools()[0].Call(ctx, host.Call{Args: args})
	if err == nil && !strings.Contains(r.Text(), want) {
		err = fmt.Errorf("the answer is %q", r.Text())
	}
	b.fail(err)
}

const vowels = "hello world, this is a text of some length"

func (b *foreignBench) extism(ctx context.Context) error {
	wasm, err := module(ctx, "github.com/extism/go-sdk", "wasm/count_vowels.wasm")
	if err != nil {
		return err
	}
	p, err := b.load(ctx, "count_vowels.wasm", wasm)
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	peer, err := newExtism(ctx, wasm)
	if err != nil {
		return err
	}
	defer peer.close(ctx)
	args, err := json.Marshal(map[string]string{"input": vowels})
	if err != nil {
		return err
	}
	b.call(ctx, p, args, `"count"`)
	t := Times(15, 20,
		func() { b.call(ctx, p, args, `"count"`) },
		func() { b.fail(peer.fresh(ctx, "count_vowels", []byte(vowels))) },
		func() { b.fail(peer.live(ctx, "count_vowels", []byte(vowels))) },
	)
	b.rows(t, "Extism module, isolated", "Extism SDK, fresh instance with timeout", "Extism SDK, live instance")
	Figure(b.w, "foreign.extism_vs_sdk_fresh", ratio(t[0], t[1]), 0.5)
	Figure(b.w, "foreign.extism_vs_sdk_live", ratio(t[0], t[2]), 2)
	return nil
}

func (b *foreignBench) rows(t []time.Duration, names ...string) {
	for i, n := range names {
		fmt.Fprintf(b.w, "%-44s %12v\n", n, t[i])
	}
}

func ratio(x, y time.Duration) float64 { return float64(x) / float64(y) }

// wasi runs a program without arguments: what it says of them is its answer.
func (b *foreignBench) wasi(ctx context.Context) error {
	wasm, err := module(ctx, "github.com/tetratelabs/wazero", "imports/wasi_snapshot_preview1/testdata/print_args.wasm")
	if err != nil {
		return err
	}
	p, err := b.load(ctx, "args.wasm", wasm)
	if err != nil {
		return err
	}
	defer p.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		return err
	}
	args := json.RawMessage(`{"args":["some","text"]}`)
	b.call(ctx, p, args, "some")
	t := Times(15, 20,
		func() { b.call(ctx, p, args, "some") },
		func() { b.fail(rawProgram(ctx, rt, code)) },
	)
	b.rows(t, "WASI program (small), isolated", "raw wazero, fresh instance")
	Figure(b.w, "foreign.wasi_small_vs_wazero_fresh", ratio(t[0], t[1]), 0.2)
	cat, err := module(ctx, "github.com/tetratelabs/wazero", "imports/wasi_snapshot_preview1/example/testdata/cargo-wasi/cat.wasm")
	if err != nil {
		return err
	}
	q, err := b.load(ctx, "cat.wasm", cat)
	if err != nil {
		return err
	}
	defer q.Close(ctx)
	rust, err := rt.CompileModule(ctx, cat)
	if err != nil {
		return err
	}
	ours := func() {
		_, err := q.Tools()[0].Call(ctx, host.Call{Args: json.RawMessage(`{}`)})
		b.fail(err)
	}
	ours()
	u := Times(15, 20, ours, func() { b.fail(rawProgram(ctx, rt, rust)) })
	b.rows(u, "WASI program (Rust), isolated", "raw wazero, fresh instance")
	Figure(b.w, "foreign.wasi_vs_wazero_fresh", ratio(u[0], u[1]), 0.2)
	return nil
}

func rawProgram(ctx context.Context, rt wazero.Runtime, code wazero.CompiledModule) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out bytes.Buffer
	mod, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithName("").WithArgs("args", "some", "text").WithStdout(&out))
	if _, ok := sandbox.Exited(err); err != nil && !ok {
		return err
	}
	if mod == nil {
		return nil
	}
	return mod.Close(ctx)
}
