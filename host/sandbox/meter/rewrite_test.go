package meter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// The runtime accepts a metered module exactly when it accepts the original.
func TestCorpusStaysValid(t *testing.T) {
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer rt.Close(ctx)
	p := corpusProfile()
	valid, invalid := 0, 0
	wasmtest.Corpus(t, func(name string, b []byte) {
		r, err := vet.Check(b, p)
		if err != nil {
			return
		}
		m, _, err := meter.Rewrite(r.Module, meter.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		c0, e0 := rt.CompileModule(ctx, r.Module.Encode())
		c1, e1 := rt.CompileModule(ctx, m.Encode())
		if (e0 == nil) != (e1 == nil) {
			t.Errorf("%s: original %v, metered %v", name, e0, e1)
		}
		if e0 == nil {
			valid++
			c0.Close(ctx)
		} else {
			invalid++
		}
		if e1 == nil {
			c1.Close(ctx)
		}
	})
	t.Logf("%d valid, %d invalid before and after", valid, invalid)
	if valid < 1000 {
		t.Errorf("only %d valid modules", valid)
	}
}

func corpusProfile() vet.Profile {
	p := vet.Standard()
	p.State = true
	p.Max[vet.MemoryPages], p.Max[vet.BranchTable] = 1<<16, 1<<17
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	return p
}

// Own guests give the same results metered and not.
func TestGuestsGiveTheSameResults(t *testing.T) {
	for _, g := range []string{"c", "go"} {
		base, metered := start(t, guest(t, g)), start(t, rewrite(t, guest(t, g)))
		for _, c := range []struct {
			fn  string
			arg uint64
		}{{"sha", 10}, {"tight", 1000}, {"fib", 12}, {"makejson", 2000}, {"jsonk", 3}, {"rec", 100}, {"keep", 5}, {"keep", 6}} {
			want := plain(t, base, c.fn, c.arg)
			got, b, err := run(context.Background(), metered, meter.Limits{}, c.fn, c.arg)
			if err != nil || got != want && c.fn != "makejson" {
				t.Errorf("%s %s(%d): %d, %v; want %d", g, c.fn, c.arg, got, err, want)
			}
			if b.Spent() < 0 {
				t.Errorf("%s %s: %d spent", g, c.fn, b.Spent())
			}
		}
	}
}

// Fuel is never below the number of instructions executed, and not far above:
// the number comes from a rewriting of the same module that counts each one.
func TestFuelBoundsInstructions(t *testing.T) {
	for _, c := range []struct {
		guest, fn string
		arg       uint64
	}{
		{"c", "sha", 20}, {"c", "tight", 10_000}, {"c", "fib", 15}, {"c", "makejson", 2000}, {"c", "jsonk", 2}, {"c", "indirect", 1000}, {"c", "rec", 1000},
		{"go", "sha", 10}, {"go", "tight", 10_000}, {"go", "fib", 10}, {"go", "chans", 30}, {"go", "rec", 500},
	} {
		wasm := guest(t, c.guest)
		counted := start(t, count(t, wasm))
		before := counted.ExportedGlobal("executed").Get()
		plain(t, counted, c.fn, c.arg)
		executed := int64(counted.ExportedGlobal("executed").Get() - before)
		_, b, err := run(context.Background(), start(t, rewrite(t, wasm)), meter.Limits{}, c.fn, c.arg)
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(b.Spent()) / float64(executed)
		t.Logf("%s %s: %d units for %d instructions: %.2f", c.guest, c.fn, b.Spent(), executed, ratio)
		if ratio < 1 || ratio > 6 {
			t.Errorf("%s %s: %d units for %d instructions", c.guest, c.fn, b.Spent(), executed)
		}
	}
}

// count adds one to an exported global before every instruction, forward jumps
// shortened as they are before metering.
func count(t *testing.T, wasm []byte) []byte {
	t.Helper()
	m := checked(t, wasm)
	out := *m
	imported := uint32(0)
	for im := range m.Imports() {
		if im.Kind == wasmbin.GlobalKind {
			imported++
		}
	}
	n := m.Count(wasmbin.GlobalSection)
	zero := wasmbin.Global{Type: wasmbin.I64, Mutable: true, Init: []byte{0x42, 0, 0x0b}}
	out.Set(wasmbin.GlobalSection, n+1, m.Raw(wasmbin.GlobalSection), zero.Append(nil))
	e := wasmbin.Export{Name: "executed", Kind: wasmbin.GlobalKind, Index: imported + n}
	out.Set(wasmbin.ExportSection, m.Count(wasmbin.ExportSection)+1, m.Raw(wasmbin.ExportSection), e.Append(nil))
	one := wasmbin.AppendOp(nil, wasmbin.OpGlobalGet, imported+n)
	one = wasmbin.AppendOp(append(one, 0x42, 1, 0x7c), wasmbin.OpGlobalSet, imported+n)
	var code []byte
	for b, err := range m.Bodies() {
		if err != nil {
			t.Fatal(err)
		}
		if b, err = meter.Thread(b); err != nil {
			t.Fatal(err)
		}
		s := b.Scan()
		var body []byte
		for s.Next() {
			// Not before else and end: they are reached by branches too,
			// and cost nothing by themselves.
			if s.In.Op != wasmbin.OpElse && s.In.Op != wasmbin.OpEnd {
				body = append(body, one...)
			}
			body = append(body, b.Code[s.In.Start:s.In.End]...)
		}
		b.Code = body
		code = b.Append(code)
	}
	out.Set(wasmbin.CodeSection, m.Count(wasmbin.CodeSection), code)
	return out.Encode()
}

// Every shape of control flow costs at least what it executes.
func TestControlFlowIsCharged(t *testing.T) {
	nop := make([]byte, 40)
	for i := range nop {
		nop[i] = 0x01
	}
	loop := func(body ...[]byte) []byte { // local 0 counts down from the parameter
		return wasmtest.Cat([]byte{0x03, 0x40}, wasmtest.Cat(body...), []byte{0x0b})
	}
	dec := []byte{0x20, 0, 0x41, 1, 0x6b, 0x22, 0}
	for name, code := range map[string][]byte{
		"br_if":          loop(nop, dec, []byte{0x0d, 0}),
		"br in if":       loop(nop, dec, []byte{0x04, 0x40, 0x0c, 1, 0x0b}),
		"br_table":       wasmtest.Cat([]byte{0x02, 0x40}, loop(nop, dec, []byte{0x45, 0x0e, 1, 0, 1}), []byte{0x0b}),
		"nested":         loop([]byte{0x41, 50, 0x21, 1}, loop(nop, []byte{0x20, 1, 0x41, 1, 0x6b, 0x22, 1, 0x0d, 0}), nop, dec, []byte{0x0d, 0}),
		"outer from in":  loop(nop, loop(nop, dec, []byte{0x0d, 1}), nop),
		"many turns":     loop(nop, dec, []byte{0x45, 0x04, 0x40, 0x0f, 0x0b, 0x0c, 0}),
		"else":           loop(dec, []byte{0x04, 0x40}, nop, []byte{0x0c, 1, 0x05}, nop, nop, []byte{0x0b}),
		"return in loop": loop(nop, dec, []byte{0x45, 0x04, 0x40, 0x0f, 0x0b, 0x0c, 0}),
	} {
		wasm := wasmtest.Program([]wasmtest.Func{{Export: "f", Params: []byte{0x7f}, Locals: []byte{1, 1, 0x7f}, Code: code}})
		counted := start(t, count(t, wasm))
		plain(t, counted, "f", 500)
		executed := int64(counted.ExportedGlobal("executed").Get())
		_, b, err := run(context.Background(), start(t, rewrite(t, wasm)), meter.Limits{}, "f", 500)
		if err != nil || b.Spent() < executed || b.Spent() > 2*executed+100 {
			t.Errorf("%s: %d units for %d instructions, %v", name, b.Spent(), executed, err)
		}
	}
}

func TestReservedNames(t *testing.T) {
	for _, wasm := range [][]byte{
		wasmtest.Module(wasmtest.Section(1, []byte{1, 0x60, 0, 0}), wasmtest.Section(2, wasmtest.Vec(wasmtest.Cat(wasmtest.Name("elf"), wasmtest.Name("tick"), []byte{0, 0})))),
		wasmtest.Module(wasmtest.Section(5, []byte{1, 0, 1}), wasmtest.Section(7, wasmtest.Vec(wasmtest.Cat(wasmtest.Name(meter.GaugeExport), []byte{2, 0})))),
	} {
		m, err := wasmbin.Parse(wasm)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := meter.Rewrite(m, meter.Options{}); !errors.Is(err, meter.ErrReserved) {
			t.Errorf("%v, want ErrReserved", err)
		}
	}
}

func TestRewriteLeavesTheOriginal(t *testing.T) {
	m := checked(t, wasmtest.C(t))
	before := string(m.Encode())
	a, st, err := meter.Rewrite(m, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, _, _ := meter.Rewrite(m, meter.Options{})
	if string(m.Encode()) != before {
		t.Error("the original changed")
	}
	if string(a.Encode()) != string(b.Encode()) {
		t.Error("two rewritings differ")
	}
	if st.Functions == 0 || st.Free == 0 || st.Recursive == 0 || st.Loops == 0 || st.Bulk == 0 || st.CodeOut <= st.CodeIn {
		t.Errorf("stats %+v", st)
	}
	if _, _, err := meter.Rewrite(a, meter.Options{}); !errors.Is(err, meter.ErrReserved) {
		t.Errorf("metering twice: %v", err)
	}
}

// FuzzVetMeter: any bytes give a typed error, or a module whose metered form
// the runtime accepts exactly when it accepts the original, and which runs
// within its limits.
func FuzzVetMeter(f *testing.F) {
	for _, b := range wasmtest.Bombs() {
		if len(b.Wasm) < 4096 {
			f.Add(b.Wasm)
		}
	}
	f.Add(wasmtest.Program([]wasmtest.Func{{Export: "f", Code: []byte{0x03, 0x40, 0x0c, 0, 0x0b}}}, wasmtest.Section(8, []byte{0})))
	f.Add(wasmtest.Program(chain(20), wasmtest.Section(8, []byte{0})))
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
		ctx, _ := meter.Start(context.Background(), meter.Limits{Fuel: 100_000, Depth: 1 << 14})
		rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(16))
		defer rt.Close(ctx)
		if err := meter.Instantiate(ctx, rt); err != nil {
			t.Fatal(err)
		}
		_, e0 := rt.CompileModule(ctx, r.Module.Encode())
		_, e1 := rt.CompileModule(ctx, m.Encode())
		if (e0 == nil) != (e1 == nil) {
			t.Fatalf("original %v, metered %v", e0, e1)
		}
		if e1 != nil {
			return
		}
		t0 := time.Now()
		mod, err := rt.InstantiateWithConfig(ctx, m.Encode(), wazero.NewModuleConfig().WithStartFunctions())
		if err == nil {
			for name := range mod.ExportedFunctionDefinitions() {
				fn := mod.ExportedFunction(name)
				stack := make([]uint64, 1+len(fn.Definition().ParamTypes())+len(fn.Definition().ResultTypes()))
				fn.CallWithStack(ctx, stack)
			}
		}
		if d := time.Since(t0); d > time.Minute {
			t.Fatalf("ran for %v with %d units", d, meter.From(ctx).Spent())
		}
	})
}
