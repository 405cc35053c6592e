package wasmbin_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// walk reads everything and encodes it again, element by element.
func walk(m *wasmbin.Module) (*wasmbin.Module, error) {
	n := &wasmbin.Module{}
	same := func(i uint32) uint32 { return i }
	steps := []error{
		copySection(n, wasmbin.TypeSection, m.Types(), func(b []byte, t wasmbin.FuncType) []byte { return t.Append(b) }),
		copySection(n, wasmbin.ImportSection, m.Imports(), func(b []byte, i wasmbin.Import) []byte { return i.Append(b) }),
		copySection(n, wasmbin.FunctionSection, m.Functions(), wasmbin.AppendUint),
		copySection(n, wasmbin.TableSection, m.Tables(), func(b []byte, t wasmbin.Table) []byte { return t.Append(b) }),
		copySection(n, wasmbin.MemorySection, m.Memories(), func(b []byte, l wasmbin.Limits) []byte { return l.Append(b) }),
		copySection(n, wasmbin.GlobalSection, m.Globals(), func(b []byte, g wasmbin.Global) []byte { return g.Append(b) }),
		copySection(n, wasmbin.ExportSection, m.Exports(), func(b []byte, e wasmbin.Export) []byte { return e.Append(b) }),
		copySection(n, wasmbin.ElementSection, m.Elements(), func(b []byte, e wasmbin.Element) []byte { return e.Append(b, same) }),
		copySection(n, wasmbin.DataSection, m.DataSegments(), func(b []byte, d wasmbin.Data) []byte { return d.Append(b) }),
	}
	if err := errors.Join(steps...); err != nil {
		return nil, err
	}
	var out []byte
	var count uint32
	for body, err := range m.Bodies() {
		if err != nil {
			return nil, err
		}
		s := body.Scan()
		for s.Next() {
			if s.In.Op == wasmbin.OpBrTable {
				for range s.In.Targets() {
					continue
				}
			}
		}
		if err := s.Err(); err != nil {
			return nil, err
		}
		out = body.Append(out)
		count++
	}
	n.Set(wasmbin.CodeSection, count, out)
	start, ok, err := m.Start()
	if ok {
		n.SetStart(start)
	}
	return n, err
}

func copySection[T any](n *wasmbin.Module, id wasmbin.SectionID, in func(func(T, error) bool), app func([]byte, T) []byte) error {
	var b []byte
	var count uint32
	for v, err := range in {
		if err != nil {
			return err
		}
		b = app(b, v)
		count++
	}
	n.Set(id, count, b)
	return nil
}

// The runtime's own test modules: what the runtime accepts is read, and reads
// the same after it was written again.
func TestCorpusRoundTrip(t *testing.T) {
	ctx := t.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer rt.Close(ctx)
	read, refused := 0, map[error]int{}
	wasmtest.Corpus(t, func(name string, b []byte) {
		n, err := parseAll(b)
		if err != nil {
			var e *wasmbin.Error
			if !errors.As(err, &e) {
				t.Errorf("%s: %T %v", name, err, err)
				return
			}
			refused[e.Class]++
			c, werr := rt.CompileModule(ctx, b)
			if werr == nil {
				c.Close(ctx)
			}
			// The runtime decodes parts of typed function references with the
			// proposal switched off; here they are refused by name.
			if werr == nil && !strings.Contains(e.Detail, "typed ref") {
				t.Errorf("%s: the runtime accepts what is refused here: %v", name, err)
			}
			return
		}
		read++
		if n2, err := parseAll(n.Encode()); err != nil || !bytes.Equal(n2.Encode(), n.Encode()) {
			t.Errorf("%s: a second round differs (%v)", name, err)
		}
	})
	t.Logf("%d read, refused: %v", read, refused)
	if read < 1000 {
		t.Errorf("only %d modules were read", read)
	}
}

func TestWL12WhatTheFileIs(t *testing.T) {
	const head = "\x00asm\x01\x00\x00\x00"
	for _, c := range []struct {
		in    string
		class error
		want  []string // in the message
	}{
		{"", wasmbin.ErrNotModule, []string{"empty", "wasip1"}},
		{"\x00as", wasmbin.ErrTruncated, []string{"3 bytes", "again"}},
		{"\x7fELF\x02\x01", wasmbin.ErrNotModule, []string{"ELF", "wasip1"}},
		{"MZ\x90", wasmbin.ErrNotModule, []string{"Windows"}},
		{"#!/bin/sh\n", wasmbin.ErrNotModule, []string{"script"}},
		{"  (module (func))", wasmbin.ErrNotModule, []string{"WebAssembly text", "wat2wasm"}},
		{";; comment\n(module)", wasmbin.ErrNotModule, []string{"WebAssembly text"}},
		{"<!doctype html>", wasmbin.ErrNotModule, []string{"HTML", "address"}},
		{"hello, wörld\n", wasmbin.ErrNotModule, []string{"text"}},
		{"PK\x03\x04", wasmbin.ErrNotModule, []string{"zip"}},
		{"\x01\x02\x03\x04", wasmbin.ErrNotModule, []string{"01 02 03 04"}},
		{"\x00asm\x0d\x00\x01\x00", wasmbin.ErrUnsupported, []string{"component", "wasip1"}},
		{"\x00asm\x02\x00\x00\x00", wasmbin.ErrUnsupported, []string{"version"}},
		{head + "\x01\x05\x01", wasmbin.ErrTruncated, []string{"type section", "again"}},
		{head + "\x0d\x01\x00", wasmbin.ErrUnsupported, []string{"exception"}},
		{head + "\x63\x01\x00", wasmbin.ErrMalformed, []string{"unknown section"}},
		{head + "\x03\x01\x00\x01\x01\x00", wasmbin.ErrMalformed, []string{"order"}},
	} {
		_, err := wasmbin.Parse([]byte(c.in))
		if !errors.Is(err, c.class) {
			t.Errorf("%q: %v, want %v", c.in, err, c.class)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %q does not say %q", c.in, err, w)
			}
		}
	}
}

// Every cut of a real module is an error or a shorter module, never a panic.
func TestWL12TruncatedAtEachByte(t *testing.T) {
	whole := sample()
	if _, err := parseAll(whole); err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		_, err := parseAll(whole[:n])
		var e *wasmbin.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("cut at %d: %T %v", n, err, err)
		}
	}
}

func parseAll(b []byte) (*wasmbin.Module, error) {
	m, err := wasmbin.Parse(b)
	if err != nil {
		return nil, err
	}
	return walk(m)
}

func sample() []byte {
	return wasmtest.Program([]wasmtest.Func{
		{Export: "add", Params: []byte{0x7f, 0x7f}, Results: []byte{0x7f}, Code: []byte{0x20, 0, 0x20, 1, 0x6a}},
		{Code: []byte{0x41, 0, 0x0e, 1, 0, 0}, Locals: []byte{2, 3, 0x7e, 1, 0x7b}},
	},
		wasmtest.Section(wasmbin.TableSection, []byte{1, 0x70, 1, 1, 9}),
		wasmtest.Section(wasmbin.GlobalSection, []byte{2, 0x7f, 1, 0x41, 0x7f, 0x0b, 0x70, 0, 0xd2, 1, 0x0b}),
		wasmtest.Section(wasmbin.ElementSection, []byte{2, 0, 0x41, 0, 0x0b, 1, 1, 5, 0x70, 1, 0xd2, 0, 0x0b}),
		wasmtest.Section(wasmbin.DataSection, []byte{1, 0, 0x41, 4, 0x0b, 3, 'a', 'b', 'c'}))
}

// Declared counts cost nothing: WL-01 and WL-02 at this level.
func TestWL01CountsCostNoMemory(t *testing.T) {
	for _, bomb := range wasmtest.Bombs() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := parseAll(bomb.Wasm)
		runtime.ReadMemStats(&after)
		limit := uint64(20*len(bomb.Wasm) + 64<<10)
		if got := after.TotalAlloc - before.TotalAlloc; got > limit {
			t.Errorf("%s %s: %d bytes allocated for %d of input", bomb.Row, bomb.Name, got, len(bomb.Wasm))
		}
		if bomb.Row == "WL-01" && !errors.Is(err, wasmbin.ErrTruncated) && bomb.Name != "data count" {
			t.Errorf("%s %s: %v, want a truncation error", bomb.Row, bomb.Name, err)
		}
	}
}

func TestRefusedProposalsAreNamed(t *testing.T) {
	for _, c := range []struct {
		code []byte
		want string
	}{
		{[]byte{0x12, 0}, "tail calls"},
		{[]byte{0x06, 0x40, 0x0b}, "exception handling"},
		{[]byte{0xfe, 0x10, 2, 0}, "threads"},
		{[]byte{0xfd, 0x80, 0x02}, "relaxed SIMD"},
		{[]byte{0xfb, 0}, "garbage collection"},
		{[]byte{0x14, 0}, "typed function references"},
		{[]byte{0x41, 0, 0x28, 0x42, 0, 0}, "multiple memories"},
		{[]byte{0x40, 1}, "multiple memories"},
	} {
		_, err := parseAll(wasmtest.OneFunction([]byte{0}, c.code, []byte{0x0b}))
		if !errors.Is(err, wasmbin.ErrUnsupported) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("% x: %v, want it refused as %q", c.code, err, c.want)
		}
	}
	for _, c := range [][]byte{{0x27}, {0xc5}, {0xfd, 0x9a, 1}, {0xfd, 0xb4, 1}, {0xfc, 18}, {0x02, 0x10}} {
		if _, err := parseAll(wasmtest.OneFunction([]byte{0}, c, []byte{0x0b})); err == nil {
			t.Errorf("% x: accepted", c)
		}
	}
}

func TestIntegers(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		k, ok := wasmbin.EvalConst(append(wasmbin.AppendInt([]byte{0x42}, v), 0x0b))
		if !ok || k.Value != v {
			t.Errorf("%d reads %d (%v)", v, k.Value, ok)
		}
	}
	for _, bad := range [][]byte{
		{0x41, 0xff, 0xff, 0xff, 0xff, 0x1f, 0x0b}, // i32 with bits beyond the 32nd
		{0x41, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 0x0b},
		{0x42, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7e, 0x0b},
		{0x41, 0}, {0x41, 0, 0x41, 0, 0x0b}, {0x1a, 0x0b}, {},
	} {
		if k, ok := wasmbin.EvalConst(bad); ok {
			t.Errorf("% x: accepted as %+v", bad, k)
		}
	}
}

func TestSetDoesNotTouchTheOriginal(t *testing.T) {
	m, err := wasmbin.Parse(sample())
	if err != nil {
		t.Fatal(err)
	}
	before := m.Encode()
	n := *m
	n.Set(wasmbin.TypeSection, 1, wasmbin.FuncType{}.Append(nil))
	n.Remove(wasmbin.DataSection)
	n.SetStart(1)
	if !bytes.Equal(m.Encode(), before) || bytes.Equal(n.Encode(), before) {
		t.Error("a copy shares its sections' table with the original")
	}
	if n.Has(wasmbin.DataSection) || n.Count(wasmbin.TypeSection) != 1 {
		t.Error("Set and Remove are not visible")
	}
}

func TestCustoms(t *testing.T) {
	b := wasmtest.Module(wasmtest.Section(0, []byte{1, 'a', 7}), wasmtest.Section(1, []byte{0}), wasmtest.Section(0, []byte{2, 'b', 'c'}))
	m, err := wasmbin.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(m.Customs())
	if len(got) != 2 || got[0].Name != "a" || !bytes.Equal(got[0].Data, []byte{7}) || got[1].Name != "bc" {
		t.Errorf("custom sections %v", got)
	}
	if bytes.Contains(m.Encode(), []byte("bc")) {
		t.Error("Encode kept a custom section")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(sample())
	for _, b := range wasmtest.Bombs() {
		if len(b.Wasm) < 4096 {
			f.Add(b.Wasm)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseAll(b)
		if err != nil {
			var e *wasmbin.Error
			if !errors.As(err, &e) {
				t.Fatalf("%T %v", err, err)
			}
			return
		}
		if _, err := parseAll(m.Encode()); err != nil {
			t.Fatalf("encoded again: %v", err)
		}
	})
}
