package meter_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

func checked(t testing.TB, wasm []byte) *wasmbin.Module {
	t.Helper()
	p := vet.Standard()
	p.State = true
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	r, err := vet.Check(wasm, p)
	if err != nil {
		t.Fatal(err)
	}
	return r.Module
}

func rewrite(t testing.TB, wasm []byte) []byte {
	t.Helper()
	m, _, err := meter.Rewrite(checked(t, wasm), meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Encode()
}

// start instantiates a module, metered or not, with WASI.
func start(t testing.TB, wasm []byte) api.Module {
	t.Helper()
	mod, err := tryStart(t, context.Background(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return mod
}

func tryStart(t testing.TB, ctx context.Context, wasm []byte) (api.Module, error) {
	t.Helper()
	rt := wazero.NewRuntimeWithConfig(ctx, wasmtest.Runtime(t))
	t.Cleanup(func() { rt.Close(context.Background()) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	if err := meter.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	if meter.From(ctx) == nil {
		ctx, _ = meter.Start(ctx, meter.Limits{})
	}
	return rt.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
}

// run calls an export of a metered instance and says what it spent.
func run(ctx context.Context, mod api.Module, l meter.Limits, fn string, arg uint64) (uint64, *meter.Budget, error) {
	ctx, b := meter.Start(ctx, l)
	if err := b.Arm(mod); err != nil {
		return 0, b, err
	}
	st := [1]uint64{arg}
	err := mod.ExportedFunction(fn).CallWithStack(ctx, st[:])
	return st[0], b, err
}

// plain calls an export of an instance that is not metered.
func plain(t testing.TB, mod api.Module, fn string, arg uint64) uint64 {
	t.Helper()
	st := [1]uint64{arg}
	if err := mod.ExportedFunction(fn).CallWithStack(context.Background(), st[:]); err != nil {
		t.Fatalf("%s(%d): %v", fn, arg, err)
	}
	return st[0]
}
