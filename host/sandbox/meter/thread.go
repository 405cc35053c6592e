package meter

import (
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Go compiles every jump inside a function, forward ones included, to a turn
// of one loop around the whole body, whose br_table leads to the target:
//
//	loop block … block  local.get $pc  br_table …  end … end … end
//	                                     i32.const 7  local.set $pc  br $loop
//
// Machine code made of that keeps all variables alive around the loop, jumps
// indirectly, and is charged a turn for each if. Where the target lies ahead,
// the block that ends there is still open, and a branch to it does the same.

// dispatch is a loop that begins with blocks and a branch by a local.
type dispatch struct {
	blocks   uint32
	local    uint32
	targets  []uint32 // labels at the br_table, the default last
	complete bool
}

// label is an open block. Those that a dispatch opened, its loop first, share it.
type label struct {
	*dispatch
	loop bool
}

// thread sends forward jumps through a dispatch straight to their target. The
// result does what b does, instruction for instruction but for the detour.
func thread(b wasmbin.Body) (wasmbin.Body, error) {
	var (
		out     []byte
		copied  int
		labels  = []label{{}}
		opening *dispatch // the dispatch whose beginning is being read
		last    [2]wasmbin.Instr
	)
	s := b.Scan()
	for s.Next() {
		in := s.In
		opening = opening.next(&in)
		switch in.Op {
		case wasmbin.OpLoop:
			if !in.Typed && in.Result == 0 {
				opening = &dispatch{}
			}
			labels = append(labels, label{opening, true})
		case wasmbin.OpBlock, wasmbin.OpIf:
			labels = append(labels, label{opening, false})
		case wasmbin.OpEnd:
			labels = labels[:len(labels)-1]
		case wasmbin.OpBr:
			if l, ok := ahead(labels, in.X, last); ok {
				out = append(out, b.Code[copied:in.Start]...)
				out = wasmbin.AppendOp(out, in.Op, l)
				copied = in.End
			}
		}
		last = [2]wasmbin.Instr{last[1], in}
	}
	if err := s.Err(); err != nil || copied == 0 {
		return b, err
	}
	b.Code = append(out, b.Code[copied:]...)
	return b, nil
}

// next follows the beginning of a dispatch: nil when it is over.
func (d *dispatch) next(in *wasmbin.Instr) *dispatch {
	switch {
	case d == nil || d.complete:
		return nil
	case in.Op == wasmbin.OpBlock && !in.Typed && in.Result == 0 && d.targets == nil:
		d.blocks++
	case in.Op == wasmbin.OpLocalGet && d.blocks > 0 && d.targets == nil:
		d.local, d.targets = in.X, []uint32{}
	case in.Op == wasmbin.OpBrTable && d.targets != nil:
		for l := range in.Targets() {
			d.targets = append(d.targets, l)
		}
		d.complete = true
	default:
		return nil
	}
	return d
}

// ahead finds the open block where a branch to label l leads in the end, when
// the instructions before it choose the target.
func ahead(labels []label, l uint32, before [2]wasmbin.Instr) (uint32, bool) {
	loop := len(labels) - 1 - int(l)
	d := labels[loop].dispatch
	if d == nil || !labels[loop].loop || !d.complete ||
		before[0].Op != wasmbin.OpI32Const || before[1].Op != wasmbin.OpLocalSet || before[1].X != d.local {
		return 0, false
	}
	i := min(uint64(uint32(before[0].Value)), uint64(len(d.targets)-1))
	if d.targets[i] >= d.blocks {
		return 0, false
	}
	at := loop + int(d.blocks-d.targets[i])
	if at >= len(labels) || labels[at].dispatch != d { // ended: the target lies behind
		return 0, false
	}
	return uint32(len(labels) - 1 - at), true
}
