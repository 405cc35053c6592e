package outline

import (
	"encoding/binary"
	"fmt"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// readDylink finds how much memory and table the pack asks for, in the present
// form of the section or in that of 2019.
func (l *linker) readDylink() error {
	for s := range l.side.Customs() {
		b := s.Data
		switch s.Name {
		case "dylink.0":
			for len(b) > 0 {
				kind := b[0]
				size, rest, ok := uvarint(b[1:])
				if !ok || uint64(size) > uint64(len(rest)) {
					return fmt.Errorf("%w: its dylink.0 section is malformed", errPack)
				}
				if kind == 1 {
					return l.needs(rest[:size])
				}
				b = rest[size:]
			}
		case "dylink":
			return l.needs(b)
		}
	}
	return fmt.Errorf("%w: it has no dylink.0 section; build it with `tree-sitter build --wasm`", errPack)
}

func (l *linker) needs(b []byte) error {
	var v [4]uint32 // bytes, alignment, entries, alignment
	for i := range v {
		n, rest, ok := uvarint(b)
		if !ok {
			return fmt.Errorf("%w: its dylink section is malformed", errPack)
		}
		v[i], b = n, rest
	}
	if v[0] > sideEnd-sideBase || v[1] > 16 || v[2] > 1<<12 || v[3] > 16 {
		return fmt.Errorf("%w: it asks for %d bytes of data and %d table entries, more than a grammar may have (%d and %d)",
			errPack, v[0], v[2], sideEnd-sideBase, 1<<12)
	}
	l.slots = (l.slots + 1<<v[3] - 1) &^ (1<<v[3] - 1)
	l.room = v[2]
	return nil
}

func uvarint(b []byte) (v uint32, rest []byte, ok bool) {
	n, k := binary.Uvarint(b)
	if k <= 0 || n > 1<<31 {
		return 0, nil, false
	}
	return uint32(n), b[k:], true
}

// imports resolves what the pack imports, and appends its types and globals.
func (l *linker) imports() error {
	l.append(wasmbin.TypeSection, l.side.Count(wasmbin.TypeSection), l.side.Raw(wasmbin.TypeSection))
	for im, err := range l.side.Imports() {
		if err != nil {
			return err
		}
		switch im.Kind {
		case wasmbin.Function:
			l.funcs = append(l.funcs, l.coreFuncs[im.Name])
		case wasmbin.GlobalKind:
			if err := l.importGlobal(im); err != nil {
				return err
			}
		}
	}
	for g, err := range l.side.Globals() {
		if err != nil {
			return err
		}
		l.globs = append(l.globs, l.globals+l.nGlob)
		if g.Init, err = l.constant(g.Init); err != nil {
			return err
		}
		l.global(g)
	}
	l.append(wasmbin.GlobalSection, l.nGlob, l.newGlob)
	return nil
}

func (l *linker) global(g wasmbin.Global) {
	l.newGlob = g.Append(l.newGlob)
	l.nGlob++
}

func (l *linker) importGlobal(im wasmbin.Import) error {
	bad := fmt.Errorf("%w: the global %q of %q is not known", errPack, im.Name, im.Module)
	if im.Global.Type != wasmbin.I32 {
		return bad
	}
	var v uint32
	switch {
	case im.Module == "env" && im.Name == "__stack_pointer" && im.Global.Mutable:
		l.globs = append(l.globs, l.coreGlobals[im.Name])
		return nil
	case im.Module == "env" && im.Name == "__memory_base" && !im.Global.Mutable:
		v = sideBase
	case im.Module == "env" && im.Name == "__table_base" && !im.Global.Mutable:
		v = l.slots
	case im.Module == "GOT.func" && im.Global.Mutable:
		v = l.slots + l.room + uint32(len(l.want))
		l.want = append(l.want, im.Name)
	case im.Module == "GOT.mem" && im.Global.Mutable:
		at, ok := l.address(im.Name)
		if !ok {
			return bad
		}
		v = at
	default:
		return bad
	}
	l.known[uint32(len(l.globs))] = v
	l.globs = append(l.globs, l.globals+l.nGlob)
	l.global(wasmbin.Global{Type: wasmbin.I32, Mutable: im.Global.Mutable, Init: i32(v)})
	return nil
}

// address is where an exported object of the pack lies.
func (l *linker) address(name string) (uint32, bool) {
	imported := uint32(0)
	for im, err := range l.side.Imports() {
		if err == nil && im.Kind == wasmbin.GlobalKind {
			imported++
		}
	}
	for e, err := range l.side.Exports() {
		if err != nil || e.Kind != wasmbin.GlobalKind || e.Name != name || e.Index < imported {
			continue
		}
		i := imported
		for g, err := range l.side.Globals() {
			if k, ok := wasmbin.EvalConst(g.Init); err == nil && i == e.Index && ok && k.Op == wasmbin.OpI32Const {
				return sideBase + uint32(k.Value), true
			}
			i++
		}
	}
	return 0, false
}

// constant puts the values of imported globals in their place.
func (l *linker) constant(expr []byte) ([]byte, error) {
	k, ok := wasmbin.EvalConst(expr)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: a constant expression of more than one instruction", errPack)
	case k.Op == wasmbin.OpGlobalGet:
		v, ok := l.known[k.Index]
		if !ok {
			return nil, fmt.Errorf("%w: a constant refers to global %d", errPack, k.Index)
		}
		return i32(v), nil
	case k.Op == wasmbin.OpRefFunc:
		return wasmbin.AppendConst(nil, expr, l.function), nil
	}
	return expr, nil
}

func i32(v uint32) []byte {
	return append(wasmbin.AppendInt([]byte{byte(wasmbin.OpI32Const)}, int64(int32(v))), byte(wasmbin.OpEnd))
}
