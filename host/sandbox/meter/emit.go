package meter

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Opcodes that only the emitter needs.
const (
	opI64Ne      wasmbin.Op = 0x52
	opI64LtS     wasmbin.Op = 0x53
	opI32And     wasmbin.Op = 0x71
	opI32ShrU    wasmbin.Op = 0x76
	opI64Add     wasmbin.Op = 0x7c
	opI64Sub     wasmbin.Op = 0x7d
	opI64And     wasmbin.Op = 0x83
	opI64Shl     wasmbin.Op = 0x86
	opI64ExtendU wasmbin.Op = 0xad
	emptyBlock              = 0x40
)

// emitter writes one metered body.
type emitter struct {
	*rewriter
	*plan
	typ       uint32
	recursive bool
	free      bool

	out    []byte
	src    []byte
	copied int    // of src
	labels []int  // of the open blocks, the function first: a loop's index in plan.loops, or -1
	loop   int    // the next loop in plan.loops
	turn   int    // the next branch in plan.turns
	length uint32 // the local that holds a bulk operation's length
}

func (e *emitter) op(op wasmbin.Op, imm ...uint32) { e.out = wasmbin.AppendOp(e.out, op, imm...) }

func (e *emitter) i32(v int32) {
	e.out = wasmbin.AppendInt(append(e.out, byte(wasmbin.OpI32Const)), int64(v))
}

func (e *emitter) i64(v int64) {
	e.out = wasmbin.AppendInt(append(e.out, byte(wasmbin.OpI64Const)), v)
}

// upTo copies the source's instructions before position p.
func (e *emitter) upTo(p int) {
	e.out = append(e.out, e.src[e.copied:p]...)
	e.copied = p
}

// change adds a constant to the gauge.
func (e *emitter) change(v int64) {
	e.op(wasmbin.OpGlobalGet, e.gauge)
	e.i64(v)
	e.op(opI64Add)
	e.op(wasmbin.OpGlobalSet, e.gauge)
}

func (e *emitter) charge(units int) { e.change(-int64(max(units, 1)) << fuelShift) }

// tickWhenEmpty calls tick when the fuel is below zero.
func (e *emitter) tickWhenEmpty() {
	e.op(wasmbin.OpGlobalGet, e.gauge)
	e.i64(0)
	e.op(opI64LtS)
	e.tickIf()
}

// tickIf calls tick when the condition on the stack holds.
func (e *emitter) tickIf() {
	e.out = append(e.out, byte(wasmbin.OpIf), emptyBlock)
	e.op(wasmbin.OpCall, e.imported)
	e.op(wasmbin.OpEnd)
}

// body gives the size and the body.
func (e *emitter) body(b wasmbin.Body) ([]byte, error) {
	e.src = b.Code
	e.locals(b)
	slots := int64(len(e.types[e.typ].Params)) + int64(b.NumLocals) + frameSlots
	e.enter(slots)
	e.labels = []int{-1}
	s := b.Scan()
	for s.Next() {
		e.instruction(&s.In)
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	e.upTo(len(e.src)) // with the end, of the function or of the wrapper
	if e.recursive {
		e.change(-slots)
		e.op(wasmbin.OpEnd)
	}
	return append(wasmbin.AppendUint(make([]byte, 0, len(e.out)+5), uint32(len(e.out))), e.out...), nil
}

// locals copies the declarations, and adds one where lengths are charged.
func (e *emitter) locals(b wasmbin.Body) {
	if e.bulk == 0 {
		e.out = append(e.out, b.Locals...)
		return
	}
	e.length = uint32(len(e.types[e.typ].Params)) + uint32(b.NumLocals)
	var groups []byte
	n := uint32(1)
	for k, t := range b.LocalGroups() {
		groups = append(wasmbin.AppendUint(groups, k), byte(t))
		n++
	}
	e.out = append(wasmbin.AppendUint(e.out, n), groups...)
	e.out = append(e.out, 1, byte(wasmbin.I32))
}

// enter charges the entry. A recursive function adds its frame in the same
// step, tests fuel and depth with one mask, and is wrapped into a block that
// all its exits leave through, to take the frame off again.
func (e *emitter) enter(slots int64) {
	if e.free {
		return
	}
	if !e.recursive {
		e.charge(e.entry)
		e.tickWhenEmpty()
		return
	}
	e.change(slots - int64(max(e.entry, 1))<<fuelShift)
	e.op(wasmbin.OpGlobalGet, e.gauge)
	e.i64(trouble)
	e.op(opI64And)
	e.i64(0)
	e.op(opI64Ne)
	e.tickIf()
	e.out = e.resultType(append(e.out, byte(wasmbin.OpBlock)))
}

// resultType appends the type of a block that yields the function's results.
func (e *emitter) resultType(b []byte) []byte {
	results := e.types[e.typ].Results
	switch len(results) {
	case 0:
		return append(b, emptyBlock)
	case 1:
		return append(b, results[0])
	}
	t, ok := e.blockOf[e.typ]
	if !ok {
		t = e.newType(nil, results)
		e.blockOf[e.typ] = t
	}
	return wasmbin.AppendInt(b, int64(t))
}

func (e *emitter) instruction(in *wasmbin.Instr) {
	if n, ok := e.charges[in.Start]; ok {
		e.upTo(in.Start)
		e.charge(n)
		e.stats.Straight++
	}
	switch in.Op {
	case wasmbin.OpBlock, wasmbin.OpIf:
		e.labels = append(e.labels, -1)
	case wasmbin.OpLoop:
		e.openLoop(in)
	case wasmbin.OpEnd:
		e.labels = e.labels[:len(e.labels)-1]
	case wasmbin.OpBr, wasmbin.OpBrIf:
		e.branch(in)
	case wasmbin.OpReturn:
		if e.recursive { // leave through the wrapper
			e.upTo(in.Start)
			e.op(wasmbin.OpBr, uint32(len(e.labels)-1))
			e.copied = in.End
		}
	case wasmbin.OpCall, wasmbin.OpRefFunc:
		if in.X >= e.imported {
			e.upTo(in.Start)
			e.op(in.Op, e.function(in.X))
			e.copied = in.End
		}
	default:
		if by := unitsOf(in.Op); by.shift != 0 && !e.fixed[in.Start] {
			e.upTo(in.Start)
			e.chargeLength(by)
		}
	}
}

func (e *emitter) openLoop(in *wasmbin.Instr) {
	p := e.loops[e.loop]
	e.labels = append(e.labels, e.loop)
	e.loop++
	if p.turns == 0 {
		return
	}
	e.stats.Loops++
	if p.head {
		e.upTo(in.End)
		e.charge(p.weight)
		e.tickWhenEmpty()
	}
}

// branch charges a branch to a loop, where it is taken. Labels keep their
// numbers: the blocks that are added around code close before it, and the
// wrapper takes the function's place.
func (e *emitter) branch(in *wasmbin.Instr) {
	loop := e.labels[len(e.labels)-1-int(in.X)]
	if loop < 0 {
		return
	}
	weight := e.turns[e.turn]
	e.turn++
	if e.loops[loop].head {
		return
	}
	e.upTo(in.Start)
	e.copied = in.End
	if in.Op == wasmbin.OpBr {
		e.charge(weight)
		e.tickWhenEmpty()
		e.op(wasmbin.OpBr, in.X)
		return
	}
	e.conditional(in.X, weight)
}

func (e *emitter) conditional(l uint32, weight int) {
	e.out = append(e.out, byte(wasmbin.OpIf), emptyBlock)
	e.charge(weight)
	e.tickWhenEmpty()
	e.op(wasmbin.OpBr, l+1)
	e.op(wasmbin.OpEnd)
}

// chargeLength charges a bulk operation by the length on top of the stack,
// before it runs.
func (e *emitter) chargeLength(by units) {
	e.stats.Bulk++
	e.op(wasmbin.OpLocalTee, e.length)
	e.op(wasmbin.OpGlobalGet, e.gauge)
	e.op(wasmbin.OpLocalGet, e.length)
	if by.shift > 0 {
		e.i32(int32(by.shift))
		e.op(opI32ShrU)
	} else { // what the mask drops is more than a memory can grow by
		e.i32(1<<16 - 1)
		e.op(opI32And)
	}
	e.op(opI64ExtendU)
	e.i64(int64(fuelShift + max(0, -by.shift)))
	e.op(opI64Shl)
	e.op(opI64Sub)
	e.op(wasmbin.OpGlobalSet, e.gauge)
	e.tickWhenEmpty()
}
