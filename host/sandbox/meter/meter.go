// Package meter rewrites a vetted module so that it accounts for its own work,
// and runs what was rewritten within a budget.
//
// # The rewriting
//
// [Rewrite] adds one mutable i64 global, the gauge, which holds the fuel that
// is left (upper 42 bits, signed) and the call depth in use (lower 22 bits).
// Fuel is charged where control flow cannot avoid it: at every loop's turn, at
// the entry of every function that is not trivial, every 250 instructions of
// straight code, and before each bulk operation by its length. One unit is
// about one instruction: the charge is the longest path since the last one, so
// the sum is never below the instructions executed, but it is no instruction
// count. It depends on the module, its input and what the host answers, on
// nothing else: not on time, machine or platform.
//
// Before that, jumps that Go's compiler sends around a loop are sent straight
// ahead where their target lies ahead: guests in Go run faster for it, and are
// charged for less.
//
// At loop turns, function entries and bulk operations the code calls the
// imported function elf.tick when the fuel is below zero. Functions that can
// take part in a recursion also count their frames, and call elf.tick when the
// depth is over its bound. Calls that cannot recurse nest at most as deep as
// the module has functions.
//
// # The guarantee
//
// Between two ticks a guest spends at most the fuel that was granted, plus one
// stretch of straight code, plus one bulk operation, whose length the memory's
// maximum bounds. So a deadline, a cancellation or an exhausted budget ends
// every loop and every recursion, start functions and initialisation included,
// and the Go scheduler and collector get their turn at each tick. What a host
// function does in between is its own affair: it must take its context.
//
// # Running
//
//	meter.Instantiate(ctx, runtime)               // the host module "elf", once
//	ctx, b := meter.Start(ctx, meter.Limits{})    // one per call
//	b.Arm(instance)                               // not for instantiation: it arms itself
//	fn.CallWithStack(ctx, …)
//	b.Spent()
package meter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Names of what the rewriting adds. Package vet keeps guests from using them.
const (
	TickModule  = vet.ReservedModule
	TickName    = "tick"
	GaugeExport = vet.ReservedPrefix + "gauge"
	// StateExport begins the names under which the module's own mutable
	// globals are exported, for snapshots: the index among the defined
	// globals follows. Globals that hold references or vectors are left out.
	StateExport = vet.ReservedPrefix + "g"
)

// Options change the rewriting. The zero value is what the host uses.
type Options struct {
	// TableMax is written into tables that declare no maximum, or a larger
	// one: entries. Zero is vet's standard limit.
	TableMax uint32
}

// Stats say what was added.
type Stats struct {
	Functions int // defined in the module
	Free      int // of them: trivial, charged by their callers
	Recursive int // of them: count their depth
	Loops     int // with a charge
	Straight  int // charges in straight code
	Bulk      int // operations charged by length
	CodeIn    int // bytes of code before and after
	CodeOut   int
}

// ErrReserved is returned for a module that already uses a name of the meter.
var ErrReserved = errors.New("the module uses a name that is reserved for the meter")

// The layout of the gauge. The constants of common charges fit 32 bits, which
// is what x86 adds in one instruction.
const (
	fuelShift  = 22
	deep       = 1 << 21       // set when the depth is over its bound
	trouble    = -1<<63 | deep // fuel below zero, or too deep
	frameSlots = 16            // of a frame, beside parameters and locals
)

// Rewrite returns the metered module; m is not changed. m must have passed
// vet.Check: indexes are not checked again.
func Rewrite(m *wasmbin.Module, o Options) (*wasmbin.Module, Stats, error) {
	if o.TableMax == 0 {
		o.TableMax = uint32(vet.Standard().Max[vet.TableEntries])
	}
	w := &rewriter{in: m, out: *m, options: o, blockOf: map[uint32]uint32{}}
	for _, step := range []func() error{
		w.readTypes, w.readImports, w.tables, w.globals, w.exports, w.elements, w.readFunctions, w.code, w.writeTypes,
	} {
		if err := step(); err != nil {
			return nil, w.stats, fmt.Errorf("metering: %w", err)
		}
	}
	return &w.out, w.stats, nil
}

type rewriter struct {
	in      *wasmbin.Module
	out     wasmbin.Module
	options Options
	stats   Stats

	types    []wasmbin.FuncType
	newTypes [][]byte
	blockOf  map[uint32]uint32 // function type → the type of a block with its results

	imported uint32   // functions; the index of tick in the new module
	funcs    []uint32 // type of every function, imports first
	nGlobals uint32   // imported globals
	gauge    uint32   // index of the gauge
}

// function maps a function index to the new index space, where tick follows
// the imports.
func (w *rewriter) function(i uint32) uint32 {
	if i >= w.imported {
		return i + 1
	}
	return i
}

func (w *rewriter) readTypes() error {
	for t, err := range w.in.Types() {
		if err != nil {
			return err
		}
		w.types = append(w.types, t)
	}
	return nil
}

func (w *rewriter) newType(params, results []byte) uint32 {
	w.newTypes = append(w.newTypes, wasmbin.FuncType{Params: params, Results: results}.Append(nil))
	return uint32(len(w.types) + len(w.newTypes) - 1)
}

func (w *rewriter) writeTypes() error {
	all := append([][]byte{w.in.Raw(wasmbin.TypeSection)}, w.newTypes...)
	w.out.Set(wasmbin.TypeSection, uint32(len(w.types)+len(w.newTypes)), all...)
	return nil
}

func (w *rewriter) readImports() error {
	for im, err := range w.in.Imports() {
		if err != nil {
			return err
		}
		if im.Module == TickModule {
			return fmt.Errorf("%w: it imports from %q", ErrReserved, im.Module)
		}
		switch im.Kind {
		case wasmbin.Function:
			w.funcs = append(w.funcs, im.Type)
		case wasmbin.GlobalKind:
			w.nGlobals++
		}
	}
	w.imported = uint32(len(w.funcs))
	tick := wasmbin.Import{Module: TickModule, Name: TickName, Kind: wasmbin.Function, Type: w.newType(nil, nil)}
	w.out.Set(wasmbin.ImportSection, w.in.Count(wasmbin.ImportSection)+1, w.in.Raw(wasmbin.ImportSection), tick.Append(nil))
	return nil
}

func (w *rewriter) readFunctions() error {
	for t, err := range w.in.Functions() {
		if err != nil {
			return err
		}
		w.funcs = append(w.funcs, t)
	}
	w.stats.Functions = len(w.funcs) - int(w.imported)
	if start, ok, err := w.in.Start(); err != nil {
		return err
	} else if ok {
		w.out.SetStart(w.function(start))
	}
	return nil
}

// tables gives every table a maximum.
func (w *rewriter) tables() error {
	var b []byte
	for t, err := range w.in.Tables() {
		if err != nil {
			return err
		}
		if most := max(w.options.TableMax, t.Min); !t.HasMax || t.Max > most {
			t.HasMax, t.Max = true, most
		}
		b = t.Append(b)
	}
	w.out.Set(wasmbin.TableSection, w.in.Count(wasmbin.TableSection), b)
	return nil
}

func (w *rewriter) globals() error {
	var b []byte
	for g, err := range w.in.Globals() {
		if err != nil {
			return err
		}
		g.Init = wasmbin.AppendConst(nil, g.Init, w.function)
		b = g.Append(b)
	}
	n := w.in.Count(wasmbin.GlobalSection)
	w.gauge = w.nGlobals + n
	// An instance begins without fuel: its first charge calls tick.
	init := append(wasmbin.AppendInt([]byte{byte(wasmbin.OpI64Const)}, deep-DefaultDepth), byte(wasmbin.OpEnd))
	w.out.Set(wasmbin.GlobalSection, n+1, b, wasmbin.Global{Type: wasmbin.I64, Mutable: true, Init: init}.Append(nil))
	return nil
}

func (w *rewriter) exports() error {
	var b []byte
	n := w.in.Count(wasmbin.ExportSection)
	for e, err := range w.in.Exports() {
		if err != nil {
			return err
		}
		if strings.HasPrefix(e.Name, vet.ReservedPrefix) {
			return fmt.Errorf("%w: it exports %q", ErrReserved, e.Name)
		}
		if e.Kind == wasmbin.Function {
			e.Index = w.function(e.Index)
		}
		b = e.Append(b)
	}
	i := uint32(0)
	for g, err := range w.in.Globals() {
		if err != nil {
			return err
		}
		if g.Mutable && g.Type != wasmbin.V128 && !g.Type.IsRef() {
			b = wasmbin.Export{Name: fmt.Sprint(StateExport, i), Kind: wasmbin.GlobalKind, Index: w.nGlobals + i}.Append(b)
			n++
		}
		i++
	}
	b = wasmbin.Export{Name: GaugeExport, Kind: wasmbin.GlobalKind, Index: w.gauge}.Append(b)
	w.out.Set(wasmbin.ExportSection, n+1, b)
	return nil
}

func (w *rewriter) elements() error {
	var b []byte
	for e, err := range w.in.Elements() {
		if err != nil {
			return err
		}
		b = e.Append(b, w.function)
	}
	w.out.Set(wasmbin.ElementSection, w.in.Count(wasmbin.ElementSection), b)
	return nil
}
