package vet_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Rows WL-01 to WL-08 and WL-12: what was seen to exhaust a runtime is refused
// in little time and memory; what lies just inside the limits passes.
func TestWL01toWL08Bombs(t *testing.T) {
	for _, bomb := range wasmtest.Bombs() {
		t.Run(strings.ReplaceAll(bomb.Row, "-", "")+" "+bomb.Name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := vet.Check(bomb.Wasm, vet.Standard())
			runtime.ReadMemStats(&after)
			if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(4*len(bomb.Wasm)+32<<10); got > limit {
				t.Errorf("%d bytes allocated for %d of input", got, len(bomb.Wasm))
			}
			if bomb.Edge != (err == nil) {
				t.Fatalf("error %v, want one: %v", err, !bomb.Edge)
			}
			if err != nil && !typed(err) {
				t.Errorf("%T is no typed error", err)
			}
		})
	}
}

func typed(err error) bool {
	var parse *wasmbin.Error
	var refusal *vet.Refusal
	return errors.As(err, &parse) || errors.As(err, &refusal)
}

func TestWL09Imports(t *testing.T) {
	i32 := byte(wasmbin.I32)
	allow := vet.Allow{
		"elf:log":                {"write": {Params: []byte{i32, i32}, Results: []byte{i32}}},
		"wasi_snapshot_preview1": {"fd_close": {Params: []byte{i32}, Results: []byte{i32}}},
	}
	module := func(mod, name string, desc ...byte) []byte {
		types := wasmtest.Vec(wasmbin.FuncType{Params: []byte{i32, i32}, Results: []byte{i32}}.Append(nil), wasmbin.FuncType{}.Append(nil))
		return wasmtest.Module(wasmtest.Section(1, types),
			wasmtest.Section(2, wasmtest.Vec(wasmtest.Cat(wasmtest.Name(mod), wasmtest.Name(name), desc))))
	}
	for _, c := range []struct {
		wasm []byte
		want string // "" is accepted
	}{
		{module("elf:log", "write", 0, 0), ""},
		{module("elf:log", "write", 0, 1), "declared as () -> ()"},
		{module("elf:log", "read", 0, 0), `no function "read"`},
		{module("victim", "peek", 0, 0), `no module "victim"`},
		{module("env", "memory", 2, 0, 1), "functions only"},
		{module("env", "table", 1, 0x70, 0, 1), "functions only"},
		{module("env", "g", 3, 0x7f, 1), "functions only"},
		{module("", "", 0, 0), `no module ""`},
		{module("wasi_unstable", "fd_close", 0, 0), "it offers elf:log, wasi_snapshot_preview1"},
		{module("wasi:sockets/tcp@0.2.0", "connect", 0, 0), "no module"},
		{module("elf", "tick", 0, 0), "the host's own"},
		{module("elf:log", "write", 0, 9), "type index 9"},
		{module(strings.Repeat("x", 2000), "y", 0, 0), "bytes of one name"},
	} {
		p := vet.Standard()
		p.Import = allow.Import
		r, err := vet.Check(c.wasm, p)
		if c.want == "" {
			if err != nil || len(r.Imports) != 1 || r.Imports[0].Module != "elf:log" || r.Imports[0].Type.String() != "(i32 i32) -> (i32)" {
				t.Errorf("%v, imports %+v", err, r.Imports)
			}
			continue
		}
		var refusal *vet.Refusal
		if !errors.As(err, &refusal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	// The same names may be imported twice; each is checked.
	p := vet.Standard()
	if _, err := vet.Check(module("elf:log", "write", 0, 0), p); err == nil {
		t.Error("a profile without an allow-list lets an import pass")
	}
	g := vet.Grammars()
	if r, err := vet.Check(module("env", "memory", 2, 0, 1), g); err != nil || !r.Features.ImportsState {
		t.Errorf("the grammar profile refuses shared memory: %v", err)
	}
}

// Many functions of a size that is allowed are too much code together.
func TestWL05CodeOfTheModule(t *testing.T) {
	code := append([]byte{0x41, 0}, bytes.Repeat([]byte{0x45}, 500_000)...) // i32.eqz
	f := wasmtest.Func{Code: append(code, 0x1a)}
	var refusal *vet.Refusal
	if _, err := vet.Check(wasmtest.Program(slices.Repeat([]wasmtest.Func{f}, 16)), vet.Standard()); err != nil {
		t.Error(err)
	}
	if _, err := vet.Check(wasmtest.Program(slices.Repeat([]wasmtest.Func{f}, 17)), vet.Standard()); !errors.As(err, &refusal) || refusal.Measure != vet.Code {
		t.Errorf("%v", err)
	}
}

// The meter appends a function import, globals and a local: a guest must not
// be able to name them. Every index outside its space is refused.
func TestIndexesStayInside(t *testing.T) {
	one := func(code ...byte) []byte {
		return wasmtest.Program([]wasmtest.Func{{Code: code, Locals: []byte{1, 1, 0x7f}}})
	}
	table := wasmtest.Section(wasmbin.TableSection, []byte{1, 0x70, 0, 1})
	for name, wasm := range map[string][]byte{
		"global.get":     one(0x23, 0, 0x1a),
		"global.set":     one(0x42, 0, 0x24, 0),
		"local.get":      one(0x20, 1, 0x1a),
		"local.tee":      one(0x41, 0, 0x22, 1, 0x1a),
		"call":           one(0x10, 1),
		"call 2^32-1":    one(0x10, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"ref.func":       one(0xd2, 1, 0x1a),
		"call_indirect":  one(0x41, 0, 0x11, 0, 0),
		"indirect type":  wasmtest.Program([]wasmtest.Func{{Code: []byte{0x41, 0, 0x11, 1, 0}}}, table),
		"br":             one(0x0c, 1),
		"br_if":          one(0x41, 0, 0x0d, 7),
		"br_table":       one(0x41, 0, 0x0e, 1, 0, 1),
		"block type":     one(0x02, 1, 0x0b),
		"memory.init":    one(0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0),
		"data.drop":      one(0xfc, 9, 0),
		"table.get":      one(0x41, 0, 0x25, 0, 0x1a),
		"table.copy":     wasmtest.Program([]wasmtest.Func{{Code: []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 14, 0, 1}}}, table),
		"table.init":     wasmtest.Program([]wasmtest.Func{{Code: []byte{0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 12, 0, 0}}}, table),
		"elem.drop":      wasmtest.Program([]wasmtest.Func{{Code: []byte{0xfc, 13, 3}}}, table),
		"no memory":      wasmtest.OneFunction([]byte{0, 0x3f, 0, 0x1a, 0x0b}),
		"export":         wasmtest.Module(wasmtest.Section(7, wasmtest.Vec([]byte{1, 'f', 0, 0}))),
		"export global":  wasmtest.Module(wasmtest.Section(7, wasmtest.Vec([]byte{1, 'g', 3, 0}))),
		"start":          wasmtest.Module(wasmtest.Section(8, []byte{0})),
		"element":        wasmtest.Module(wasmtest.Section(4, []byte{1, 0x70, 0, 1}), wasmtest.Section(9, []byte{1, 0, 0x41, 0, 0x0b, 1, 0})),
		"global's init":  wasmtest.Module(wasmtest.Section(6, []byte{1, 0x7f, 0, 0x23, 0, 0x0b})),
		"data offset":    wasmtest.Module(wasmtest.Section(5, []byte{1, 0, 1}), wasmtest.Section(11, []byte{1, 0, 0x23, 0, 0x0b, 0})),
		"function type":  wasmtest.Module(wasmtest.Section(3, []byte{1, 0})),
		"code count":     wasmtest.Module(wasmtest.Section(1, []byte{1, 0x60, 0, 0}), wasmtest.Section(3, []byte{1, 0})),
		"data count":     wasmtest.Module(wasmtest.Section(12, []byte{1})),
		"same exports":   wasmtest.Module(wasmtest.Section(5, []byte{1, 0, 1}), wasmtest.Section(7, []byte{2, 1, 'a', 2, 0, 1, 'a', 2, 0})),
		"reserved name":  wasmtest.Module(wasmtest.Section(5, []byte{1, 0, 1}), wasmtest.Section(7, []byte{1, 5, 'e', 'l', 'f', '.', 'x', 2, 0})),
		"object file":    wasmtest.Module(wasmtest.Section(0, wasmtest.Name("linking"))),
		"table max<min":  wasmtest.Module(wasmtest.Section(4, []byte{1, 0x70, 1, 2, 1})),
		"memory max<min": wasmtest.Module(wasmtest.Section(5, []byte{1, 1, 2, 1})),
	} {
		_, err := vet.Check(wasm, vet.Standard())
		var refusal *vet.Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if _, err := vet.Check(one(0x20, 0, 0x1a), vet.Standard()); err != nil {
		t.Errorf("a good index is refused: %v", err)
	}
}

func TestEveryLimitRefuses(t *testing.T) {
	wasm := wasmtest.Program([]wasmtest.Func{
		{Export: "f", Params: []byte{0x7f}, Locals: []byte{1, 1, 0x7f}, Code: []byte{0x03, 0x40, 0x41, 0, 0x0e, 1, 0, 0, 0x0b}},
		{Code: []byte{0x41, 0, 0x40, 0, 0x1a}},
	},
		wasmtest.Section(wasmbin.TableSection, []byte{1, 0x70, 0, 2}),
		wasmtest.Section(wasmbin.GlobalSection, []byte{1, 0x7f, 1, 0x41, 0, 0x0b}),
		wasmtest.Section(wasmbin.ElementSection, []byte{1, 0, 0x41, 0, 0x0b, 1, 0}),
		wasmtest.Section(wasmbin.DataSection, []byte{1, 0, 0x41, 0, 0x0b, 1, 'x'}))
	full, err := vet.Check(wasm, vet.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if !full.Features.MemoryGrows || full.Features.TableWrites || full.Features.SIMD {
		t.Errorf("features %+v", full.Features)
	}
	if s, ok := full.Export("f"); !ok || s.Type.String() != "(i32) -> ()" {
		t.Errorf("export f: %+v", s)
	}
	for _, u := range full.Usage() {
		if u.Name == "" || u.Measure.Why() == "" || u.Max == 0 {
			t.Errorf("measure %d has no name, reason or limit", u.Measure)
		}
		if u.Used == 0 {
			if u.Measure != vet.Imports && u.Measure != vet.CustomSections {
				t.Errorf("%s was not counted", u.Name)
			}
			continue
		}
		p := vet.Standard()
		p.Max[u.Measure] = u.Used
		if _, err := vet.Check(wasm, p); err != nil {
			t.Errorf("%s at its limit is refused: %v", u.Name, err)
		}
		p.Max[u.Measure] = u.Used - 1
		_, err := vet.Check(wasm, p)
		var refusal *vet.Refusal
		if !errors.As(err, &refusal) || refusal.Got != u.Used || !strings.Contains(err.Error(), u.Name) {
			t.Errorf("%s over its limit: %v", u.Name, err)
		}
	}
}

// WL-11: what the ABI asks of exports can be read from the report.
func TestWL11Exports(t *testing.T) {
	r, err := vet.Check(wasmtest.Module(wasmtest.Section(1, []byte{1, 0x60, 0, 0}), wasmtest.Section(3, []byte{1, 0}),
		wasmtest.Section(7, wasmtest.Vec(wasmtest.Cat(wasmtest.Name("memory"), []byte{0, 0}))),
		wasmtest.Section(10, []byte{1, 2, 0, 0x0b})), vet.Standard())
	if err != nil {
		t.Fatal(err)
	}
	if s, ok := r.Export("memory"); !ok || s.Kind != wasmbin.Function {
		t.Errorf("export memory: %+v %v", s, ok)
	}
	if _, ok := r.Export("elf_call"); ok {
		t.Error("an export that is not there was found")
	}
}

func TestRealModulesPass(t *testing.T) {
	p := vet.Standard()
	p.State = true
	p.Max[vet.MemoryPages] = 1 << 16
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	passed, limits := 0, map[string]int{}
	wasmtest.Corpus(t, func(name string, b []byte) {
		_, err := vet.Check(b, p)
		var refusal *vet.Refusal
		switch {
		case err == nil:
			passed++
		case !typed(err):
			t.Errorf("%s: %T %v", name, err, err)
		case errors.As(err, &refusal) && refusal.Rule == "":
			limits[fmt.Sprintf("%s: %s", name, refusal.Measure)]++
		}
	})
	t.Logf("%d pass; over a limit: %v", passed, limits)
	if passed < 1000 {
		t.Errorf("only %d pass", passed)
	}
}
