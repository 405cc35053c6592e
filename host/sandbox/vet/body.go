package vet

import (
	"errors"
	"fmt"
	"math"

	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

func (c *checker) bodies(m *wasmbin.Module) error {
	i := c.imported
	for b, err := range m.Bodies() {
		if err != nil {
			return err
		}
		f := function{checker: c, scan: b.Scan()}
		err := f.check(b, len(c.types[c.funcTypes[i]].Params))
		if r := (*Refusal)(nil); errors.As(err, &r) {
			r.Function, r.Offset = i, f.scan.Offset()
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// function is the walk over one body. Limits are checked while scanning, so
// that a hostile body is dropped as soon as it crosses one.
type function struct {
	*checker
	scan                                wasmbin.Scanner
	locals                              int // parameters included
	instrs, blocks, loops, edges, depth int
	bulk                                int
}

func (f *function) check(b wasmbin.Body, params int) error {
	if err := f.limit(BodyBytes, len(b.Locals)+len(b.Code)); err != nil {
		return err
	}
	f.locals = params + int(min(b.NumLocals, math.MaxInt32-math.MaxUint16))
	if err := f.limit(Locals, f.locals); err != nil {
		return err
	}
	for f.scan.Next() {
		f.instrs++
		if err := f.instruction(&f.scan.In); err != nil {
			return err
		}
	}
	if err := f.scan.Err(); err != nil {
		return err
	}
	if err := f.limit(Edges, f.edges); err != nil {
		return err
	}
	if err := f.limit(BulkOperations, f.bulk); err != nil {
		return err
	}
	if err := f.limit(Instructions, f.instrs); err != nil {
		return err
	}
	return f.add(Code, f.instrs)
}

func (f *function) instruction(in *wasmbin.Instr) error {
	ft := &f.r.Features
	switch op := in.Op; op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		return f.block(in)
	case wasmbin.OpBr, wasmbin.OpBrIf:
		f.edges++
		return index("label", in.X, uint32(f.scan.Depth))
	case wasmbin.OpBrTable:
		return f.branchTable(in)
	case wasmbin.OpLocalGet, wasmbin.OpLocalSet, wasmbin.OpLocalTee:
		return index("local", in.X, uint32(f.locals))
	case wasmbin.OpGlobalGet, wasmbin.OpGlobalSet:
		return index("global", in.X, f.nGlobals)
	case wasmbin.OpCall, wasmbin.OpRefFunc:
		return index("function", in.X, uint32(len(f.funcTypes)))
	case wasmbin.OpCallIndirect:
		ft.Indirect = true
		if err := index("type", in.X, uint32(len(f.types))); err != nil {
			return err
		}
		return index("table", in.Y, f.nTables)
	default:
		if op >= 0xfc<<16 || op >= wasmbin.OpTableGet && op <= wasmbin.OpMemoryGrow {
			return f.state(in)
		}
	}
	return nil
}

func (f *function) block(in *wasmbin.Instr) error {
	f.blocks++
	f.edges++
	f.depth += f.scan.Depth
	if in.Typed {
		f.r.Features.MultiValue = true
		if err := index("type", in.X, uint32(len(f.types))); err != nil {
			return err
		}
	}
	if in.Op == wasmbin.OpLoop {
		f.loops++
		if err := f.limit(Loops, f.loops); err != nil {
			return err
		}
		if err := f.limit(LoopLocals, f.loops*f.locals); err != nil {
			return err
		}
	}
	for _, l := range [...]struct {
		m Measure
		v int
	}{{Nesting, f.scan.Depth}, {Blocks, f.blocks}, {BlockLocals, int(min(int64(f.blocks)*int64(f.locals), math.MaxInt))}, {NestingWork, f.depth}} {
		if err := f.limit(l.m, l.v); err != nil {
			return err
		}
	}
	return nil
}

func (f *function) branchTable(in *wasmbin.Instr) error {
	f.edges += count(in.X)
	if err := f.limit(BranchTable, count(in.X)); err != nil {
		return err
	}
	for l := range in.Targets() {
		if err := index("label", l, uint32(f.scan.Depth)); err != nil {
			return err
		}
	}
	return nil
}

// state checks instructions on memories, tables and segments.
func (f *function) state(in *wasmbin.Instr) error {
	ft := &f.r.Features
	var err error
	if in.Op >= wasmbin.OpMemoryInit && in.Op <= wasmbin.OpTableFill || in.Op == wasmbin.OpMemoryGrow {
		f.bulk++
	}
	switch op := in.Op; op {
	case wasmbin.OpTableGet, wasmbin.OpTableSize:
		err = index("table", in.X, f.nTables)
	case wasmbin.OpTableSet, wasmbin.OpTableFill:
		ft.TableWrites = true
		err = index("table", in.X, f.nTables)
	case wasmbin.OpTableGrow:
		ft.TableWrites, ft.TableGrows = true, true
		err = index("table", in.X, f.nTables)
	case wasmbin.OpTableCopy:
		ft.TableWrites = true
		err = either(index("table", in.X, f.nTables), index("table", in.Y, f.nTables))
	case wasmbin.OpTableInit:
		ft.TableWrites = true
		err = either(index("element segment", in.X, f.nElements), index("table", in.Y, f.nTables))
	case wasmbin.OpElemDrop:
		// Dropping is invisible unless the segment is used again, which is
		// a write; but the state of an instance changes.
		ft.TableWrites = true
		err = index("element segment", in.X, f.nElements)
	case wasmbin.OpMemoryInit, wasmbin.OpDataDrop:
		ft.BulkMemory = true
		ft.DataDrops = ft.DataDrops || op == wasmbin.OpDataDrop
		err = index("data segment", in.X, f.nData)
	case wasmbin.OpMemoryCopy, wasmbin.OpMemoryFill:
		ft.BulkMemory = true
	case wasmbin.OpMemoryGrow:
		ft.MemoryGrows = true
	default:
		ft.SIMD = ft.SIMD || op.IsSIMD()
	}
	if err == nil && in.Op.UsesMemory() {
		err = index("memory", 0, f.nMemories)
	}
	return err
}

func either(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// quote shows a name that the module chose, shortened.
func quote(s string) string {
	if len(s) > 64 {
		return fmt.Sprintf("%q…", s[:64])
	}
	return fmt.Sprintf("%q", s)
}
