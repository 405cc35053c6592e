package image_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/host/sandbox/image"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// pair is one module as it is, and metered in an instance of its image.
type pair struct{ plain, imaged api.Module }

// makePair gives nothing for what no image can hold, imports more than WASI,
// or does not start.
func makePair(t *testing.T, wasm []byte) (p pair, end func(), ok bool) {
	ctx := context.Background()
	profile := vet.Standard()
	profile.Max[vet.MemoryPages], profile.Max[vet.BranchTable] = 1<<16, 1<<17
	profile.Import = func(module, _ string, _ wasmbin.FuncType) error {
		if module != "wasi_snapshot_preview1" {
			return errors.New("not here")
		}
		return nil
	}
	r, err := vet.Check(wasm, profile)
	if err != nil || image.Suitable(r) != nil {
		return p, nil, false
	}
	m, _, err := meter.Rewrite(r.Module, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ends []func()
	end = func() {
		for _, f := range slices.Backward(ends) {
			f()
		}
	}
	runtime := func() wazero.Runtime {
		rt := newRuntime(t, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(256))
		ends = append(ends, func() { rt.Close(ctx) })
		return rt
	}
	if p.plain, err = runtime().InstantiateWithConfig(ctx, wasm, config(rand.Reader, "_initialize")); err != nil {
		return p, end, false
	}
	started, _ := meter.Start(ctx, meter.Limits{Deadline: time.Now().Add(time.Minute)})
	first, err := runtime().InstantiateWithConfig(started, m.Encode(), config(rand.Reader, "_initialize"))
	if err != nil {
		t.Errorf("metered it does not start: %v", err)
		return p, end, false
	}
	img, err := image.Snapshot(m, first, nil)
	if err != nil {
		t.Errorf("snapshot: %v", err)
		return p, end, false
	}
	base, err := image.NewBase(img)
	if err != nil {
		t.Fatal(err)
	}
	ends = append(ends, func() { base.Close() })
	in, err := base.New(ctx, func(ctx context.Context) (api.Module, error) {
		return runtime().InstantiateWithConfig(ctx, img.Module, config(rand.Reader))
	})
	if err != nil {
		t.Errorf("an instance of the image: %v", err)
		return p, end, false
	}
	p.imaged = in.Module
	return p, end, true
}

// TestCorpusKeepsItsMeaning calls every exported function of wazero's own test
// modules with the same arguments in both forms: the same results, the same
// traps, the same memory.
func TestCorpusKeepsItsMeaning(t *testing.T) {
	modules, calls, traps := 0, 0, 0
	wasmtest.Corpus(t, func(name string, wasm []byte) {
		if testing.Short() && len(name)%5 != 0 || len(wasm) > 1<<20 {
			return
		}
		p, end, ok := makePair(t, wasm)
		if end != nil {
			defer end()
		}
		if !ok {
			return
		}
		modules++
		var names []string
		for n := range p.plain.ExportedFunctionDefinitions() {
			if n != "_start" && n != "_initialize" {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		for _, n := range names {
			for _, arg := range []uint64{0, 1, 13, math.MaxUint32} {
				c, trapped, ok := p.same(t, name, n, arg)
				if !ok {
					return // it would not end, or differs: their states have parted
				}
				calls += c
				if trapped {
					traps++
				}
			}
		}
		if a, b := p.plain.ExportedMemory("memory"), p.imaged.ExportedMemory("memory"); a != nil && b != nil {
			x, _ := a.Read(0, a.Size())
			y, _ := b.Read(0, b.Size())
			if !bytes.Equal(x, y) {
				t.Errorf("%s: the memories differ", name)
			}
		}
	})
	t.Logf("%d modules, %d calls, %d traps", modules, calls, traps)
	if !testing.Short() && (modules < 500 || calls < 5_000 || traps < 100) {
		t.Error("that is less than there is: the test is blind")
	}
}

// same calls one function in both forms. ok is false where the module is not
// to be called again.
func (p pair) same(t *testing.T, module, name string, arg uint64) (calls int, trapped, ok bool) {
	t.Helper()
	ctx, b := meter.Start(context.Background(), meter.Limits{Fuel: 1 << 20})
	if err := b.Arm(p.imaged); err != nil {
		t.Fatal(err)
	}
	f, g := p.plain.ExportedFunction(name), p.imaged.ExportedFunction(name)
	if g == nil {
		t.Errorf("%s %s: the export is gone", module, name)
		return 0, false, false
	}
	d := f.Definition()
	for _, typ := range append(slices.Clone(d.ParamTypes()), d.ResultTypes()...) {
		if typ != api.ValueTypeI32 && typ != api.ValueTypeI64 && typ != api.ValueTypeF32 && typ != api.ValueTypeF64 {
			return 0, false, true // vectors and references
		}
	}
	stack := make([]uint64, max(len(d.ParamTypes()), len(d.ResultTypes())))
	for i := range d.ParamTypes() {
		stack[i] = arg
	}
	want, got := slices.Clone(stack), slices.Clone(stack)
	e1 := g.CallWithStack(ctx, got)
	if errors.Is(e1, meter.ErrFuel) || errors.Is(e1, meter.ErrDepth) {
		return 0, false, false
	}
	e0 := f.CallWithStack(context.Background(), want)
	n := len(d.ResultTypes())
	if reason(e0) != reason(e1) || e0 == nil && !slices.Equal(want[:n], got[:n]) {
		t.Errorf("%s %s(%d): %v %v, metered and imaged %v %v", module, name, arg, want[:n], e0, got[:n], e1)
		return 1, e0 != nil, false
	}
	return 1, e0 != nil, true
}

// reason is the first line of a trap.
func reason(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
