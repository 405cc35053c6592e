package wasmbin

// constExpr reads a constant expression and returns it with its end.
func (c *cursor) constExpr() []byte {
	start := c.p
	for c.err == nil {
		at := c.offset()
		switch op := Op(c.byte()); {
		case c.err != nil:
		case op == OpEnd:
			return c.b[start:c.p:c.p]
		case op >= OpI32Const && op <= OpF64Const:
			c.constant(op)
		case op == OpGlobalGet || op == OpRefFunc:
			c.u32()
		case op == OpRefNull:
			c.refType()
		case op == 0xfd:
			if n := c.u32(); n != 12 {
				c.failAt(at, ErrMalformed, "opcode 0xfd %#x in a constant expression", n)
			}
			c.take(16)
		case op == 0x6a || op == 0x6b || op == 0x6c || op == 0x7c || op == 0x7d || op == 0x7e:
			c.unsupported("extended constant expressions")
		default:
			c.failAt(at, ErrMalformed, "opcode %#x in a constant expression", uint32(op))
		}
	}
	return nil
}

// Const is the meaning of a constant expression of one instruction.
type Const struct {
	Op    Op
	Value int64  // of i32.const and i64.const
	Index uint32 // of global.get and ref.func
}

// EvalConst decodes a constant expression that this package has read. ok is
// false when it is not a single instruction.
func EvalConst(expr []byte) (k Const, ok bool) {
	c := cursor{b: expr}
	switch k.Op = Op(c.byte()); k.Op {
	case OpI32Const, OpI64Const, OpF32Const, OpF64Const:
		k.Value = c.constant(k.Op)
	case OpGlobalGet, OpRefFunc:
		k.Index = c.u32()
	case OpRefNull:
		c.byte()
	case 0xfd:
		c.u32()
		c.take(16)
		k.Op = 0xfd<<16 | 12
	default:
		return k, false
	}
	return k, c.err == nil && c.left() == 1 && c.b[c.p] == byte(OpEnd)
}
