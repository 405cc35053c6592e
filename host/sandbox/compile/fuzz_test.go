package compile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// FuzzLoad takes arbitrary bytes through vet, meter and the real compiler, and
// runs what comes of them: a typed error, or a module that stays within its
// limits. The fuzzing process does what the child does; if it dies, so may that,
// but a module may not take longer or more than a child is given.
func FuzzLoad(f *testing.F) {
	for _, b := range wasmtest.Bombs() {
		if len(b.Wasm) < 4096 {
			f.Add(b.Wasm)
		}
	}
	loop := []byte{0x03, 0x40, 0x0c, 0, 0x0b}
	f.Add(wasmtest.Program([]wasmtest.Func{{Export: "f", Code: loop}}, wasmtest.Section(8, []byte{0})))
	f.Add(wasmtest.Program([]wasmtest.Func{{Export: "f", Params: []byte{0x7f}, Results: []byte{0x7f}, Code: []byte{0x20, 0, 0x41, 1, 0x6a}}}))
	f.Add(wasmtest.Program([]wasmtest.Func{{Export: "f", Code: []byte{0x10, 0}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := vet.Standard()
		p.Max[vet.MemoryPages], p.Max[vet.TableEntries] = 16, 1024
		r, err := vet.Check(b, p)
		if err != nil {
			var parse *wasmbin.Error
			var refusal *vet.Refusal
			if !errors.As(err, &parse) && !errors.As(err, &refusal) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		m, _, err := meter.Rewrite(r.Module, meter.Options{TableMax: 1024})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		ctx, _ := meter.Start(context.Background(), meter.Limits{Fuel: 1 << 20})
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(16))
		defer rt.Close(ctx)
		if err := meter.Instantiate(ctx, rt); err != nil {
			t.Fatal(err)
		}
		code, err := rt.CompileModule(ctx, m.Encode())
		if d := time.Since(start); d > time.Minute {
			t.Fatalf("compiling %d bytes took %v", len(b), d)
		}
		if err != nil {
			return // an invalid module
		}
		start = time.Now()
		mod, err := rt.InstantiateModule(ctx, code, wazero.NewModuleConfig().WithStartFunctions())
		if err == nil {
			for name := range mod.ExportedFunctionDefinitions() {
				fn := mod.ExportedFunction(name)
				fn.CallWithStack(ctx, make([]uint64, 2+len(fn.Definition().ParamTypes())*2+len(fn.Definition().ResultTypes())*2))
			}
		}
		if d := time.Since(start); d > time.Minute {
			t.Fatalf("it ran for %v with %d units", d, meter.From(ctx).Spent())
		}
	})
}
