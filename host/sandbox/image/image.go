// Package image takes a snapshot of a metered module after initialisation and
// warm-up, and makes instances that start from it and return to it.
//
// It guarantees: a new or reset instance holds exactly the state of the
// snapshot (linear memory, mutable globals, tables, dropped segments), so
// nothing that one call left behind is visible in the next; memory is shared
// copy-on-write where the platform can (memory files on Linux) and copied
// elsewhere. What cannot be brought back is refused instead: a module whose
// state lies outside these ([Suitable]), an instance whose memory has grown
// ([ErrGrown]); an instance that trapped must be closed by its owner.
//
// Random numbers: instances of one snapshot would share the generators that
// were seeded before it. The state of standard Go's generator is found and
// overwritten with fresh bytes in each instance and after each reset; other
// guests export elf_reseed(ptr, len). Hash keys and values that were made at
// initialisation stay shared by all calls of one install. Two installs share
// nothing: initialisation draws from a stream with a seed of its own.
//
//	rnd := image.NewRandom()           // the guest's random source while it is prepared
//	mod := …                           // instantiated, _initialize has run
//	spans := rnd.FindGo(mod.Memory())  // before the warm-up
//	…                                  // warm-up
//	img, err := image.Snapshot(metered, mod, spans)
//	base, err := image.NewBase(img)    // compile img.Module, then for each instance:
//	inst, err := base.New(ctx, func(ctx context.Context) (api.Module, error) { return rt.InstantiateModule(ctx, code, cfg) })
//	…                                  // one call
//	err = inst.Reset(ctx)
package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// ErrUnsuitable marks modules that run, but only as fresh plain instances.
var ErrUnsuitable = errors.New("the module cannot be snapshotted")

// Image is a snapshot.
type Image struct {
	Module []byte // starts in the snapshot's state, linear memory excepted
	Memory Memory
	State  []Var
	Reseed []Span
}

// Var is a mutable global and its value in the snapshot.
type Var struct {
	Export string
	Value  uint64
}

// Span is a region of linear memory that each instance fills with fresh random
// bytes.
type Span struct{ Offset, Len uint32 }

// Suitable says whether a snapshot keeps the meaning of a module. Its error
// wraps ErrUnsuitable and gives the reason.
func Suitable(r *vet.Report) error {
	why := ""
	switch f := r.Features; {
	case f.ImportsState:
		why = "it imports a memory, a table or a global"
	case f.TableWrites:
		why = "it changes a table while it runs"
	case f.DataDrops:
		why = "it drops data segments while it runs"
	case f.OpaqueGlobals:
		why = "a mutable global holds a vector or a reference"
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrUnsuitable, why)
}

// Snapshot reads the state of inst, an instance of the metered module m that
// is not running. The image's module has no start function, no _initialize and
// _start, and no active data: that has happened.
// keep names exports of the start-up that callers will use all the same.
func Snapshot(m *wasmbin.Module, inst api.Module, reseed []Span, keep ...string) (*Image, error) {
	img := &Image{Reseed: reseed}
	exports := func(n *wasmbin.Module, _ api.Module) error { return img.exports(n, keep) }
	n := *m
	n.Remove(wasmbin.StartSection)
	if err := img.memory(&n, inst); err != nil {
		return nil, err
	}
	for _, step := range []func(*wasmbin.Module, api.Module) error{img.globals, exports, img.data} {
		if err := step(&n, inst); err != nil {
			return nil, fmt.Errorf("taking a snapshot: %w", err)
		}
	}
	img.Module = n.Encode()
	return img, nil
}

// memory copies linear memory, and declares its present size.
func (img *Image) memory(n *wasmbin.Module, inst api.Module) error {
	if n.Count(wasmbin.MemorySection) == 0 { // inst.Memory() is not nil even then
		return nil
	}
	mem := inst.Memory()
	view, ok := mem.Read(0, mem.Size())
	if !ok {
		return errors.New("taking a snapshot: the memory cannot be read")
	}
	img.Memory = memoryOf(view)
	for l, err := range n.Memories() {
		if err != nil {
			return err
		}
		l.Min = uint32(len(view) >> 16)
		n.Set(wasmbin.MemorySection, 1, l.Append(nil))
	}
	return nil
}

// globals makes mutable ones begin with their present value. The meter's gauge
// is not exported as state and keeps its own.
func (img *Image) globals(n *wasmbin.Module, inst api.Module) error {
	state, err := stateExports(n)
	if err != nil {
		return err
	}
	var b []byte
	i := 0
	for g, err := range n.Globals() {
		if err != nil {
			return err
		}
		if name, ok := state[i]; ok {
			v := inst.ExportedGlobal(name)
			if v == nil {
				return fmt.Errorf("the instance has no global %q", name)
			}
			img.State = append(img.State, Var{name, v.Get()})
			g.Init = constant(g.Type, v.Get())
		}
		b = g.Append(b)
		i++
	}
	n.Set(wasmbin.GlobalSection, uint32(i), b)
	return nil
}

// stateExports finds, by index among the defined globals, the names under
// which the meter exports the module's mutable globals.
func stateExports(n *wasmbin.Module) (map[int]string, error) {
	state := map[int]string{}
	metered := false
	for e, err := range n.Exports() {
		if err != nil {
			return nil, err
		}
		metered = metered || e.Name == meter.GaugeExport
		if digits, ok := strings.CutPrefix(e.Name, meter.StateExport); ok && e.Kind == wasmbin.GlobalKind {
			if i, err := strconv.Atoi(digits); err == nil {
				state[i] = e.Name
			}
		}
	}
	if !metered {
		return nil, errors.New("the module is not metered")
	}
	return state, nil
}

func (img *Image) exports(n *wasmbin.Module, keep []string) error {
	var b []byte
	var count uint32
	for e, err := range n.Exports() {
		if err != nil {
			return err
		}
		if e.Name != abi.ExportInitialize && e.Name != "_start" || slices.Contains(keep, e.Name) {
			b = e.Append(b)
			count++
		}
	}
	n.Set(wasmbin.ExportSection, count, b)
	return nil
}

// data empties active segments, which counts as dropped after instantiation
// anyway, and keeps passive ones: memory.init may still use them.
func (img *Image) data(n *wasmbin.Module, _ api.Module) error {
	if !n.Has(wasmbin.DataCountSection) { // nothing can refer to a segment
		n.Remove(wasmbin.DataSection)
		return nil
	}
	var b []byte
	for d, err := range n.DataSegments() {
		if err != nil {
			return err
		}
		if !d.Passive {
			d = wasmbin.Data{Passive: true}
		}
		b = d.Append(b)
	}
	n.Set(wasmbin.DataSection, n.Count(wasmbin.DataSection), b)
	return nil
}

func constant(t wasmbin.ValType, v uint64) []byte {
	var b []byte
	switch t {
	case wasmbin.I32:
		b = wasmbin.AppendInt([]byte{byte(wasmbin.OpI32Const)}, int64(int32(v)))
	case wasmbin.I64:
		b = wasmbin.AppendInt([]byte{byte(wasmbin.OpI64Const)}, int64(v))
	case wasmbin.F32:
		b = binary.LittleEndian.AppendUint32([]byte{byte(wasmbin.OpF32Const)}, uint32(v))
	default:
		b = binary.LittleEndian.AppendUint64([]byte{byte(wasmbin.OpF64Const)}, v)
	}
	return append(b, byte(wasmbin.OpEnd))
}
