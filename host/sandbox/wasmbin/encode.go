package wasmbin

// AppendUint appends an unsigned LEB128.
func AppendUint(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// AppendInt appends a signed LEB128.
func AppendInt(b []byte, v int64) []byte {
	for {
		x := byte(v & 0x7f)
		v >>= 7
		if v == 0 && x&0x40 == 0 || v == -1 && x&0x40 != 0 {
			return append(b, x)
		}
		b = append(b, x|0x80)
	}
}

// AppendOp appends an opcode and its unsigned immediates.
func AppendOp(b []byte, op Op, immediates ...uint32) []byte {
	if prefix := op >> 16; prefix != 0 {
		b = AppendUint(append(b, byte(prefix)), uint32(op&0xffff))
	} else {
		b = append(b, byte(op))
	}
	for _, v := range immediates {
		b = AppendUint(b, v)
	}
	return b
}

func appendName(b []byte, s string) []byte { return append(AppendUint(b, uint32(len(s))), s...) }

// Append encodes the type.
func (t FuncType) Append(b []byte) []byte {
	b = append(AppendUint(append(b, 0x60), uint32(len(t.Params))), t.Params...)
	return append(AppendUint(b, uint32(len(t.Results))), t.Results...)
}

// Append encodes the limits.
func (l Limits) Append(b []byte) []byte {
	if !l.HasMax {
		return AppendUint(append(b, 0), l.Min)
	}
	return AppendUint(AppendUint(append(b, 1), l.Min), l.Max)
}

// Append encodes the table type.
func (t Table) Append(b []byte) []byte { return t.Limits.Append(append(b, byte(t.Elem))) }

// Append encodes the global with its initial value.
func (g Global) Append(b []byte) []byte { return append(g.appendType(b), g.Init...) }

func (g Global) appendType(b []byte) []byte {
	if g.Mutable {
		return append(b, byte(g.Type), 1)
	}
	return append(b, byte(g.Type), 0)
}

// Append encodes the import.
func (im Import) Append(b []byte) []byte {
	b = append(appendName(appendName(b, im.Module), im.Name), byte(im.Kind))
	switch im.Kind {
	case Function:
		return AppendUint(b, im.Type)
	case TableKind:
		return im.Table.Append(b)
	case MemoryKind:
		return im.Table.Limits.Append(b)
	default:
		return im.Global.appendType(b)
	}
}

// Append encodes the export.
func (e Export) Append(b []byte) []byte {
	return AppendUint(append(appendName(b, e.Name), byte(e.Kind)), e.Index)
}

// Append encodes the segment with each function index i replaced by fn(i).
func (e Element) Append(b []byte, fn func(uint32) uint32) []byte {
	b = AppendUint(b, e.Flags)
	if e.Flags&3 == 2 {
		b = AppendUint(b, e.Table)
	}
	b = append(b, e.Offset...)
	if e.Flags&3 != 0 {
		if e.Exprs() {
			b = append(b, byte(e.Type))
		} else {
			b = append(b, 0)
		}
	}
	b = AppendUint(b, e.Count)
	for f, x := range e.Items() {
		if e.Exprs() {
			b = AppendConst(b, x, fn)
		} else {
			b = AppendUint(b, fn(f))
		}
	}
	return b
}

// AppendConst copies a constant expression with the function index of a
// ref.func replaced by fn.
func AppendConst(b, expr []byte, fn func(uint32) uint32) []byte {
	if k, ok := EvalConst(expr); ok && k.Op == OpRefFunc {
		return append(AppendOp(b, OpRefFunc, fn(k.Index)), byte(OpEnd))
	}
	return append(b, expr...)
}

// Append encodes the segment.
func (d Data) Append(b []byte) []byte {
	if d.Passive {
		b = append(b, 1)
	} else {
		b = append(append(b, 0), d.Offset...)
	}
	return append(AppendUint(b, uint32(len(d.Init))), d.Init...)
}

// Append encodes the body with its size.
func (b Body) Append(dst []byte) []byte {
	dst = AppendUint(dst, uint32(len(b.Locals)+len(b.Code)))
	return append(append(dst, b.Locals...), b.Code...)
}
