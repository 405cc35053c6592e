package sandbox_test

import (
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Bytes of hand-made modules.
const (
	i32, i64   = 0x7f, 0x7e
	opEnd      = 0x0b
	opI32Const = 0x41
	opI64Const = 0x42
)

// tiny is the smallest plugin, to be varied: elf_alloc gives 1,000,000, elf_call
// answers what lies at 16.
type tiny struct {
	types   [][]byte // of functions 0 and on; nil: those of the ABI
	imports []byte   // a whole section, or nil
	alloc   []byte   // bodies
	call    []byte
	exports [][]byte // nil: the ABI's
	extra   []byte   // sections before the code
	data    string   // at 16
	noMem   bool
	pages   uint32 // of memory; 0 is 17
}

func fn(params, results string) []byte {
	b := append([]byte{0x60}, wasmtest.Name(params)...)
	return append(b, wasmtest.Name(results)...)
}

func export(name string, kind, index byte) []byte { return append(wasmtest.Name(name), kind, index) }

func body(code ...byte) []byte {
	b := append([]byte{0}, code...) // no locals
	b = append(b, opEnd)
	return append(wasmtest.U(uint32(len(b))), b...)
}

func constI32(v int32) []byte { return append([]byte{opI32Const}, wasmbin.AppendInt(nil, int64(v))...) }
func constI64(v int64) []byte { return append([]byte{opI64Const}, wasmbin.AppendInt(nil, v)...) }

func (m tiny) bytes() []byte {
	if m.types == nil {
		m.types = [][]byte{fn("\x7f", "\x7f"), fn("\x7f\x7f\x7f\x7f", "\x7e")}
	}
	if m.alloc == nil {
		m.alloc = constI32(1_000_000)
	}
	if m.call == nil {
		m.call = constI64(16<<32 | int64(len(m.data)))
	}
	if m.exports == nil {
		m.exports = [][]byte{export("elf_alloc", 0, 0), export("elf_call", 0, 1)}
		if !m.noMem {
			m.exports = append(m.exports, export("memory", 2, 0))
		}
	}
	sections := [][]byte{wasmtest.Section(1, wasmtest.Vec(m.types...))}
	if m.imports != nil {
		sections = append(sections, m.imports)
	}
	sections = append(sections, wasmtest.Section(3, []byte{2, 0, 1}))
	if !m.noMem {
		if m.pages == 0 {
			m.pages = 17
		}
		sections = append(sections, wasmtest.Section(5, []byte{1, 0}, wasmtest.U(m.pages)))
	}
	sections = append(sections, wasmtest.Section(7, wasmtest.Vec(m.exports...)), m.extra,
		wasmtest.Section(10, wasmtest.Vec(body(m.alloc...), body(m.call...))))
	if m.data != "" {
		seg := append([]byte{0}, constI32(16)...)
		seg = append(seg, opEnd)
		seg = append(seg, wasmtest.Name(m.data)...)
		sections = append(sections, wasmtest.Section(11, []byte{1}, seg))
	}
	return wasmtest.Module(sections...)
}

// replies is a plugin that always gives this reply.
func replies(reply string) []byte { return tiny{data: reply}.bytes() }
