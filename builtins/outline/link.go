package outline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// A pack is a side module as emscripten makes them (tool-conventions,
// DynamicLinking.md): it imports memory, table and C library from a main
// module. Here both are joined into one module that imports nothing, so that
// it is vetted, metered, compiled and limited like any other guest.

// The core leaves this region of its memory to the pack's data (the linker
// flags are in internal/kit/grammars).
const (
	sideBase = 1 << 20
	sideEnd  = 16 << 20
)

// errPack marks modules that are no grammar packs, for people.
var errPack = errors.New("not a grammar pack")

// linker joins a pack to the core. Both were vetted: their indexes are right.
type linker struct {
	core, side *wasmbin.Module
	out        wasmbin.Module

	coreFuncs   map[string]uint32           // exported functions of the core
	coreTypes   map[string]wasmbin.FuncType // and their types
	coreGlobals map[string]uint32

	types, globals, data, elements uint32 // how many the core has
	slots                          uint32 // table entries of the core
	room                           uint32 // and of the pack

	funcs   []uint32          // the pack's function → the joined one
	globs   []uint32          // the pack's global → the joined one
	known   map[uint32]uint32 // the pack's imported global → its value
	want    []string          // functions whose table entries the pack asks for
	newGlob []byte
	nGlob   uint32
}

// link gives the joined module. It exports memory, malloc, the core's
// functions, "language", and "relocate" and "construct" where the pack has them.
func link(core, pack []byte) ([]byte, error) {
	l := &linker{known: map[uint32]uint32{}}
	if err := l.readCore(core); err != nil {
		return nil, fmt.Errorf("the parser's core: %w", err)
	}
	r, err := vet.Check(pack, l.profile())
	if err != nil {
		return nil, err
	}
	l.side = r.Module
	for _, step := range []func() error{
		l.readDylink, l.imports, l.functions, l.code, l.table, l.segments, l.exports,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return l.out.Encode(), nil
}

func (l *linker) readCore(core []byte) error {
	r, err := vet.Check(core, vet.Standard())
	if err != nil {
		return err
	}
	l.core, l.out = r.Module, *r.Module
	l.types, l.globals = l.core.Count(wasmbin.TypeSection), l.core.Count(wasmbin.GlobalSection)
	l.data, l.elements = l.core.Count(wasmbin.DataSection), l.core.Count(wasmbin.ElementSection)
	l.coreFuncs, l.coreTypes, l.coreGlobals = map[string]uint32{}, map[string]wasmbin.FuncType{}, map[string]uint32{}
	for e, err := range l.core.Exports() {
		if err != nil {
			return err
		}
		switch e.Kind {
		case wasmbin.Function:
			l.coreFuncs[e.Name] = e.Index
		case wasmbin.GlobalKind:
			l.coreGlobals[e.Name] = e.Index
		}
	}
	for _, s := range r.Exports {
		if s.Kind == wasmbin.Function {
			l.coreTypes[s.Name] = s.Type
		}
	}
	for t, err := range l.core.Tables() {
		if err != nil {
			return err
		}
		l.slots = t.Min
	}
	if _, ok := l.coreGlobals["__stack_pointer"]; !ok || l.slots == 0 {
		return errors.New("it has no stack pointer or no table")
	}
	return nil
}

// profile accepts a pack whose functions the core has.
func (l *linker) profile() vet.Profile {
	p := vet.Grammars()
	p.Import = func(module, name string, t wasmbin.FuncType) error {
		have, ok := l.coreTypes[name]
		switch {
		case module != "env":
			return fmt.Errorf("%w: a grammar imports from %q alone", errPack, "env")
		case !ok:
			return fmt.Errorf("%w: the parser's core has no function %q", errPack, name)
		case have.String() != t.String():
			return fmt.Errorf("%w: %q is declared as %s and the core's is %s", errPack, name, t, have)
		}
		return nil
	}
	return p
}

func (l *linker) function(i uint32) uint32 { return l.funcs[i] }

// append adds elements behind the core's.
func (l *linker) append(id wasmbin.SectionID, n uint32, elements ...[]byte) {
	l.out.Set(id, l.out.Count(id)+n, append([][]byte{l.out.Raw(id)}, elements...)...)
}

// exported finds a function of the pack by its export, in the joined numbers.
func (l *linker) exported(name string) (uint32, bool) {
	for e, err := range l.side.Exports() {
		if err == nil && e.Kind == wasmbin.Function && e.Name == name {
			return l.funcs[e.Index], true
		}
	}
	return 0, false
}

const languagePrefix = "tree_sitter_"

// exports keeps what the host calls.
func (l *linker) exports() error {
	var b []byte
	n := uint32(0)
	add := func(e wasmbin.Export) {
		b = e.Append(b)
		n++
	}
	for e, err := range l.core.Exports() {
		if err != nil {
			return err
		}
		if e.Name == "memory" || e.Name == "malloc" || strings.HasPrefix(e.Name, "outline_") || strings.HasPrefix(e.Name, "ts_language_") {
			add(e)
		}
	}
	id, err := packID(l.side)
	if err != nil {
		return err
	}
	for _, e := range [][2]string{{languagePrefix + id, "language"}, {"__wasm_apply_data_relocs", "relocate"}, {"__wasm_call_ctors", "construct"}} {
		if f, ok := l.exported(e[0]); ok {
			add(wasmbin.Export{Name: e[1], Kind: wasmbin.Function, Index: f})
		}
	}
	l.out.Set(wasmbin.ExportSection, n, b)
	return nil
}

// packID is the name that a pack's grammar gives itself: of the one export
// tree_sitter_NAME that is no part of its scanner.
func packID(m *wasmbin.Module) (string, error) {
	id := ""
	for e, err := range m.Exports() {
		if err != nil {
			return "", err
		}
		name, ok := strings.CutPrefix(e.Name, languagePrefix)
		if !ok || e.Kind != wasmbin.Function || strings.Contains(name, "_external_scanner_") {
			continue
		}
		if id != "" {
			return "", fmt.Errorf("%w: it has two languages, %q and %q", errPack, id, name)
		}
		id = name
	}
	if !validID(id) {
		return "", fmt.Errorf("%w: it has no export tree_sitter_NAME", errPack)
	}
	return id, nil
}

// validID keeps a name that becomes a file's from being anything else.
func validID(id string) bool {
	return id != "" && len(id) <= maxID && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
