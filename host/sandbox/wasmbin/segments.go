package wasmbin

import "iter"

// Element is an element segment. Its items are function indexes, or constant
// expressions when Exprs is set.
type Element struct {
	Flags  uint32 // as encoded: bit 0 passive or declarative, 1 explicit, 2 expressions
	Table  uint32
	Offset []byte  // the constant expression of an active segment
	Type   ValType // the reference type, funcref where it is implied
	Count  uint32
	items  cursor
}

// Active reports whether the segment is copied into its table at instantiation.
func (e Element) Active() bool { return e.Flags&1 == 0 }

// Exprs reports whether the items are constant expressions.
func (e Element) Exprs() bool { return e.Flags&4 != 0 }

// Items yields each item: a function index, or its constant expression. The
// segment was read once before, so no error can occur.
func (e Element) Items() iter.Seq2[uint32, []byte] {
	return func(yield func(uint32, []byte) bool) {
		c := e.items
		for range e.Count {
			var f uint32
			var x []byte
			if e.Exprs() {
				x = c.constExpr()
			} else {
				f = c.u32()
			}
			if c.err != nil || !yield(f, x) {
				return
			}
		}
	}
}

// Elements yields the element segments.
func (m *Module) Elements() iter.Seq2[Element, error] {
	return vector(m, ElementSection, 2, func(c *cursor, _ uint32) Element {
		e := Element{Flags: c.u32(), Type: FuncRef}
		if e.Flags > 7 {
			c.fail(ErrMalformed, "element segment flags %#x", e.Flags)
		}
		if e.Active() {
			if e.Flags&2 != 0 {
				e.Table = c.u32()
			}
			e.Offset = c.constExpr()
		}
		if e.Flags&3 != 0 {
			if e.Exprs() {
				e.Type = c.refType()
			} else if k := c.byte(); k != 0 {
				c.fail(ErrMalformed, "element kind %#x", k)
			}
		}
		e.Count = c.count(1)
		e.items = *c
		for i := uint32(0); i < e.Count && c.err == nil; i++ {
			if e.Exprs() {
				c.constExpr()
			} else {
				c.u32()
			}
		}
		e.items.b = c.b[:c.p]
		return e
	})
}

// Data is a data segment. Passive ones have no Offset.
type Data struct {
	Passive bool
	Offset  []byte // constant expression with its end
	Init    []byte
}

// DataSegments yields the data segments.
func (m *Module) DataSegments() iter.Seq2[Data, error] {
	return vector(m, DataSection, 2, func(c *cursor, _ uint32) (d Data) {
		switch flags := c.u32(); flags {
		case 0:
			d.Offset = c.constExpr()
		case 1:
			d.Passive = true
		case 2:
			if c.u32() != 0 {
				c.unsupported("multiple memories")
			}
			d.Offset = c.constExpr()
		default:
			c.fail(ErrMalformed, "data segment flags %#x", flags)
		}
		d.Init = c.take(c.u32())
		return d
	})
}

// Body is one function body.
type Body struct {
	Locals    []byte // the declarations as encoded, their count included
	NumLocals uint64 // declared locals, parameters not counted
	Code      []byte // instructions with the final end
	Offset    int    // of Code in the module
}

// Bodies yields the function bodies, in the order of Functions.
func (m *Module) Bodies() iter.Seq2[Body, error] {
	return vector(m, CodeSection, 3, func(c *cursor, _ uint32) Body {
		raw := c.take(c.u32())
		in := cursor{b: raw, base: c.offset() - len(raw)}
		var b Body
		for n := in.count(2); n > 0 && in.err == nil; n-- {
			b.NumLocals += uint64(in.u32())
			in.known(ValType(in.byte()))
		}
		if in.err == nil && b.NumLocals > 1<<32-1 {
			in.fail(ErrMalformed, "%d locals", b.NumLocals)
		}
		if c.err == nil {
			c.err = in.err
		}
		b.Locals, b.Code, b.Offset = raw[:in.p], raw[in.p:], in.offset()
		return b
	})
}

// LocalGroups yields the number and the type of each group of locals.
func (b Body) LocalGroups() iter.Seq2[uint32, ValType] {
	return func(yield func(uint32, ValType) bool) {
		c := cursor{b: b.Locals}
		for n := c.u32(); n > 0 && c.err == nil; n-- {
			if k, t := c.u32(), ValType(c.byte()); c.err != nil || !yield(k, t) {
				return
			}
		}
	}
}
