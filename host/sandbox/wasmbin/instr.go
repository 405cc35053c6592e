package wasmbin

import "iter"

// Op is an opcode. One with a prefix byte is prefix<<16 | number.
type Op uint32

// The instructions that later stages look at; the others are passed through.
const (
	OpUnreachable  Op = 0x00
	OpBlock        Op = 0x02
	OpLoop         Op = 0x03
	OpIf           Op = 0x04
	OpElse         Op = 0x05
	OpEnd          Op = 0x0b
	OpBr           Op = 0x0c
	OpBrIf         Op = 0x0d
	OpBrTable      Op = 0x0e
	OpReturn       Op = 0x0f
	OpCall         Op = 0x10
	OpCallIndirect Op = 0x11
	OpLocalGet     Op = 0x20
	OpLocalSet     Op = 0x21
	OpLocalTee     Op = 0x22
	OpGlobalGet    Op = 0x23
	OpGlobalSet    Op = 0x24
	OpTableGet     Op = 0x25
	OpTableSet     Op = 0x26
	OpMemorySize   Op = 0x3f
	OpMemoryGrow   Op = 0x40
	OpI32Const     Op = 0x41
	OpI64Const     Op = 0x42
	OpF32Const     Op = 0x43
	OpF64Const     Op = 0x44
	OpRefNull      Op = 0xd0
	OpRefFunc      Op = 0xd2
	OpMemoryInit   Op = 0xfc<<16 | 8
	OpDataDrop     Op = 0xfc<<16 | 9
	OpMemoryCopy   Op = 0xfc<<16 | 10
	OpMemoryFill   Op = 0xfc<<16 | 11
	OpTableInit    Op = 0xfc<<16 | 12
	OpElemDrop     Op = 0xfc<<16 | 13
	OpTableCopy    Op = 0xfc<<16 | 14
	OpTableGrow    Op = 0xfc<<16 | 15
	OpTableSize    Op = 0xfc<<16 | 16
	OpTableFill    Op = 0xfc<<16 | 17
)

// IsSIMD reports whether op is a vector instruction.
func (op Op) IsSIMD() bool { return op>>16 == 0xfd }

// UsesMemory reports whether op reads, writes or measures linear memory.
func (op Op) UsesMemory() bool {
	switch op {
	case OpMemoryInit, OpMemoryCopy, OpMemoryFill:
		return true
	}
	return op >= 0x28 && op <= 0x40 || op.IsSIMD() && simdMemory(uint32(op&0xffff))
}

// Instr is one instruction. X and Y are its index immediates in encoded order
// (br_table: X is the number of targets without the default; blocks: X is the
// type index when Typed is set).
type Instr struct {
	Op         Op
	Start, End int // in Body.Code
	X, Y       uint32
	Typed      bool    // a block whose type is the type index X
	Result     ValType // a block with one result and no parameters, or 0
	Value      int64   // of i32.const and i64.const
	targets    cursor
}

// Targets yields the labels of a br_table, the default last.
func (in *Instr) Targets() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		c := in.targets
		for k := uint64(in.X) + 1; k > 0 && c.err == nil; k-- {
			if t := c.u32(); c.err != nil || !yield(t) {
				return
			}
		}
	}
}

// Scanner walks the instructions of one body:
//
//	s := body.Scan()
//	for s.Next() { … s.In … }
//	err := s.Err()
type Scanner struct {
	In    Instr
	Depth int // open blocks after the instruction, the body itself included
	c     cursor
	done  bool
}

// Scan starts at the first instruction.
func (b Body) Scan() Scanner {
	return Scanner{Depth: 1, c: cursor{b: b.Code, base: b.Offset}}
}

// Err is the error that ended the walk, if one did.
func (s *Scanner) Err() error { return s.c.failure() }

// Offset is the place of the current instruction in the module.
func (s *Scanner) Offset() int { return s.c.base + s.In.Start }

// Next reads one instruction into In. It is false after the body's last end,
// and at an error.
func (s *Scanner) Next() bool {
	c := &s.c
	if s.done || c.err != nil {
		return false
	}
	s.In = Instr{Start: c.p}
	op := Op(c.byte())
	switch {
	case op >= OpBlock && op <= OpIf:
		s.blockType()
		s.Depth++
	case op == OpEnd:
		if s.Depth--; s.Depth == 0 {
			if s.done = true; c.left() != 0 {
				c.fail(ErrMalformed, "%d bytes after the end of a function", c.left())
			}
		}
	case op <= 0x01 || op == OpElse || op == OpReturn || op == 0x1a || op == 0x1b ||
		op >= 0x45 && op <= 0xc4 || op == 0xd1: // no immediates
	case op == OpBr || op == OpBrIf || op == OpCall || op >= OpLocalGet && op <= OpTableSet || op == OpRefFunc:
		s.In.X = c.u32()
	case op == OpCallIndirect:
		s.In.X, s.In.Y = c.u32(), c.u32()
	case op >= 0x28 && op <= 0x3e:
		s.memArg()
	case op >= OpI32Const && op <= OpF64Const:
		s.In.Value = c.constant(op)
	case op == 0xfc:
		op = s.bulk()
	case op == 0xfd:
		op = s.simd()
	default:
		s.rare(op)
	}
	s.In.Op, s.In.End = op, c.p
	return c.err == nil
}

// rare reads the remaining instructions and names what is refused.
func (s *Scanner) rare(op Op) {
	c := &s.c
	switch {
	case c.err != nil:
	case op == OpBrTable:
		s.In.X = c.count(1)
		s.In.targets = *c
		for k := uint64(s.In.X) + 1; k > 0 && c.err == nil; k-- {
			c.u32()
		}
	case op == OpMemorySize || op == OpMemoryGrow:
		s.memIndex()
	case op == 0x1c: // select with types
		s.In.X = c.count(1)
		for _, t := range c.take(s.In.X) {
			c.known(ValType(t))
		}
	case op == OpRefNull:
		c.refType()
	case op == 0x12 || op == 0x13 || op == 0x15:
		c.unsupported("tail calls")
	case op >= 0x06 && op <= 0x0a || op == 0x18 || op == 0x19 || op == 0x1f:
		c.unsupported("exception handling")
	case op == 0x14 || op >= 0xd3 && op <= 0xd6:
		c.unsupported("typed function references")
	case op == 0xfb:
		c.unsupported("garbage collection")
	case op == 0xfe:
		c.unsupported("threads (an atomic instruction)")
	default:
		c.failAt(s.Offset(), ErrMalformed, "unknown opcode %#x", uint32(op))
	}
}

// constant reads the immediate of a const instruction; floats give zero.
func (c *cursor) constant(op Op) int64 {
	switch op {
	case OpI32Const:
		return c.s64(32)
	case OpI64Const:
		return c.s64(64)
	case OpF32Const:
		c.take(4)
	case OpF64Const:
		c.take(8)
	}
	return 0
}

func (s *Scanner) blockType() {
	c := &s.c
	if c.p < len(c.b) {
		if t := ValType(c.b[c.p]); t == 0x40 || t.known() {
			c.p++
			if t != 0x40 {
				s.In.Result = t
			}
			return
		}
	}
	v := c.s64(33)
	if v < 0 {
		c.known(ValType(v & 0x7f))
		c.fail(ErrMalformed, "block type %d", v)
	}
	s.In.X, s.In.Typed = uint32(v), true
}

func (s *Scanner) memArg() {
	if align := s.c.u32(); align >= 64 {
		s.c.unsupported("multiple memories, or a malformed alignment")
	}
	s.c.u32()
}

func (s *Scanner) memIndex() {
	if s.c.byte() != 0 {
		s.c.unsupported("multiple memories")
	}
}

// bulk reads the instructions behind 0xfc.
func (s *Scanner) bulk() Op {
	c := &s.c
	n := c.u32()
	switch op := Op(0xfc<<16 | n&0xffff); {
	case n < 8: // saturating conversions
	case n > 17:
		c.failAt(s.Offset(), ErrMalformed, "unknown opcode 0xfc %#x", n)
	case op == OpMemoryInit:
		s.In.X = c.u32()
		s.memIndex()
	case op == OpMemoryCopy:
		s.memIndex()
		s.memIndex()
	case op == OpMemoryFill:
		s.memIndex()
	case op == OpTableInit || op == OpTableCopy:
		s.In.X, s.In.Y = c.u32(), c.u32()
	default: // one index
		s.In.X = c.u32()
	}
	return Op(0xfc<<16 | n&0xffff)
}

// simdMemory covers loads and stores, whole and by lane.
func simdMemory(n uint32) bool { return n <= 11 || n >= 84 && n <= 93 }

// simdHoles are the unassigned numbers below 0x100, as a bit set of 4 words.
var simdHoles = [4]uint64{2: 1<<(0x9a&63) | 1<<(0xa2&63) | 1<<(0xa5&63) | 1<<(0xa6&63) | 1<<(0xaf&63) |
	1<<(0xb0&63) | 1<<(0xb2&63) | 1<<(0xb3&63) | 1<<(0xb4&63) | 1<<(0xbb&63),
	3: 1<<(0xc2&63) | 1<<(0xc5&63) | 1<<(0xc6&63) | 1<<(0xcf&63) | 1<<(0xd0&63) | 1<<(0xd2&63) | 1<<(0xd3&63) |
		1<<(0xd4&63) | 1<<(0xe2&63) | 1<<(0xee&63)}

// simd reads the instructions behind 0xfd.
func (s *Scanner) simd() Op {
	c := &s.c
	n := c.u32()
	switch {
	case n > 0xff && n <= 0x113:
		c.unsupported("relaxed SIMD")
	case n > 0xff || simdHoles[n>>6]&(1<<(n&63)) != 0:
		c.failAt(s.Offset(), ErrMalformed, "unknown opcode 0xfd %#x", n)
	case n == 12 || n == 13: // const, shuffle
		c.take(16)
	case n >= 21 && n <= 34: // a lane
		c.byte()
	case simdMemory(n):
		s.memArg()
		if n >= 84 && n <= 91 {
			c.byte()
		}
	}
	return Op(0xfd<<16 | n&0xffff)
}
