// Package wasmtest holds what the tests of the engine share: a builder for
// small hand-made modules, modules that were seen to exhaust a runtime, real
// guests compiled from testdata, and the runtime's own test modules. It is
// imported by tests only.
package wasmtest

import (
	"bytes"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// U is an unsigned LEB128.
func U(v uint32) []byte { return wasmbin.AppendUint(nil, v) }

// Cat joins byte strings.
func Cat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// Section is a section with its size written correctly.
func Section(id wasmbin.SectionID, parts ...[]byte) []byte {
	b := Cat(parts...)
	return Cat([]byte{byte(id)}, U(uint32(len(b))), b)
}

// Module is the header and the sections.
func Module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), Cat(sections...)...)
}

// Vec is a vector: its count and the elements.
func Vec(elements ...[]byte) []byte { return Cat(U(uint32(len(elements))), Cat(elements...)) }

// Name is a name with its length.
func Name(s string) []byte { return append(U(uint32(len(s))), s...) }

// Func describes one function of Program.
type Func struct {
	Export          string
	Params, Results []byte
	Locals          []byte // encoded declarations; empty: none
	Code            []byte // without the final end
}

// Program is a module of functions, each with a type of its own, a memory of
// one page exported as "memory", and extra sections that come before the code.
func Program(funcs []Func, extra ...[]byte) []byte {
	var types, idx, exports, bodies [][]byte
	exports = append(exports, Cat(Name("memory"), []byte{byte(wasmbin.MemoryKind), 0}))
	for i, f := range funcs {
		types = append(types, wasmbin.FuncType{Params: f.Params, Results: f.Results}.Append(nil))
		idx = append(idx, U(uint32(i)))
		if f.Export != "" {
			exports = append(exports, Cat(Name(f.Export), []byte{byte(wasmbin.Function)}, U(uint32(i))))
		}
		locals := f.Locals
		if len(locals) == 0 {
			locals = []byte{0}
		}
		body := Cat(locals, f.Code, []byte{byte(wasmbin.OpEnd)})
		bodies = append(bodies, Cat(U(uint32(len(body))), body))
	}
	var before, after [][]byte
	for _, s := range extra {
		switch id := wasmbin.SectionID(s[0]); {
		case id == wasmbin.TableSection:
			before = append(before, s)
		default:
			after = append(after, s)
		}
	}
	var globals, rest [][]byte
	for _, s := range after {
		if wasmbin.SectionID(s[0]) == wasmbin.GlobalSection {
			globals = append(globals, s)
		} else {
			rest = append(rest, s)
		}
	}
	parts := [][]byte{Section(wasmbin.TypeSection, Vec(types...)), Section(wasmbin.FunctionSection, Vec(idx...))}
	parts = append(parts, before...)
	parts = append(parts, Section(wasmbin.MemorySection, Vec([]byte{0, 1})))
	parts = append(parts, globals...)
	parts = append(parts, Section(wasmbin.ExportSection, Vec(exports...)))
	var data [][]byte
	for _, s := range rest {
		if wasmbin.SectionID(s[0]) == wasmbin.DataSection {
			data = append(data, s)
		} else {
			parts = append(parts, s)
		}
	}
	parts = append(parts, Section(wasmbin.CodeSection, Vec(bodies...)))
	return Module(append(parts, data...)...)
}
