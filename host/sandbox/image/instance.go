package image

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox/meter"
)

// ErrGrown is Reset's answer when the guest's memory has grown: it cannot
// shrink again, so the instance must be closed.
var ErrGrown = errors.New("the memory of the instance has grown")

// seedLen is what elf_reseed gets.
const seedLen = 32

// reseedFuel bounds elf_reseed and the elf_alloc before it.
const reseedFuel = 1 << 20

// Base is what the instances of one image share. It is safe for concurrent
// use, and must outlive them.
type Base struct {
	img *Image
	cow *cow
}

// NewBase prepares the image's memory for sharing.
func NewBase(img *Image) (*Base, error) {
	c, err := newCOW(img.Memory)
	if err != nil {
		return nil, fmt.Errorf("mapping the image: %w", err)
	}
	shared := *img
	shared.Memory.Runs = nil // they are in the shared memory now
	return &Base{&shared, c}, nil
}

// Close releases the shared memory. Instances must be closed before.
func (b *Base) Close() error { return b.cow.close() }

// Instance is one sandbox in the state of the image. One goroutine at a time
// may use it. After Close, slices of its memory must not be touched: they are
// unmapped.
type Instance struct {
	Module api.Module
	base   *Base
	mem    *memory
	state  []api.MutableGlobal
	reseed [2]api.Function // elf_alloc, elf_reseed
}

// New makes an instance. instantiate must instantiate the compiled image once,
// with the context it gets and without start functions.
func (b *Base) New(ctx context.Context, instantiate func(context.Context) (api.Module, error)) (*Instance, error) {
	in := &Instance{base: b}
	if b.img.Memory.Size > 0 {
		ctx = experimental.WithMemoryAllocator(ctx, experimental.MemoryAllocatorFunc(
			func(_, most uint64) experimental.LinearMemory {
				in.mem = b.cow.allocate(most)
				return in.mem
			}))
	}
	mod, err := instantiate(ctx)
	if err != nil {
		return nil, err
	}
	in.Module = mod
	for _, v := range b.img.State {
		g, ok := mod.ExportedGlobal(v.Export).(api.MutableGlobal)
		if !ok {
			mod.Close(ctx)
			return nil, fmt.Errorf("the instance is not one of the image: it has no mutable global %q", v.Export)
		}
		in.state = append(in.state, g)
	}
	if f := mod.ExportedFunction(abi.ExportReseed); f != nil {
		in.reseed = [2]api.Function{mod.ExportedFunction(abi.ExportAlloc), f}
	}
	if err := in.fresh(ctx); err != nil {
		mod.Close(ctx)
		return nil, err
	}
	return in, nil
}

// Begin and End enclose what a guest does, and what host functions do to its
// memory, where all of it happens on one thread, to which the goroutine is
// locked: Reset then need not ask the kernel for pages that cannot be new.
// Without them nothing is assumed.
func (in *Instance) Begin() {
	if in.mem != nil {
		in.mem.begin()
	}
}

// End belongs to Begin.
func (in *Instance) End() {
	if in.mem != nil {
		in.mem.end()
	}
}

// Reset brings the instance back to the image, with new randomness. After an
// error the instance must be closed.
func (in *Instance) Reset(ctx context.Context) error {
	if in.mem != nil {
		if in.mem.size() != in.base.img.Memory.Size {
			return ErrGrown
		}
		if err := in.mem.reset(); err != nil {
			return fmt.Errorf("resetting an instance: %w", err)
		}
	}
	for i, g := range in.state {
		g.Set(in.base.img.State[i].Value)
	}
	if in.mem != nil && (len(in.base.img.Reseed) > 0 || in.reseed[1] != nil) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		in.mem.begin()
		defer func() { in.mem.end(); in.mem.calm() }()
	}
	return in.fresh(ctx)
}

// Touched counts the pages of 4 KiB that hold something else than the image,
// its reseeding included. The guest must not run between it and Reset, which
// relies on what it found. Before Linux 6.7 it is errors.ErrUnsupported.
func (in *Instance) Touched() (int, error) {
	if in.mem == nil {
		return 0, nil
	}
	n, err := in.mem.touched()
	if err != nil {
		err = fmt.Errorf("counting touched pages: %w", err)
	}
	return n, err
}

// Close ends the instance and unmaps its memory.
func (in *Instance) Close(ctx context.Context) error { return in.Module.Close(ctx) }

// fresh gives the instance randomness of its own.
func (in *Instance) fresh(ctx context.Context) error {
	for _, s := range in.base.img.Reseed {
		b, ok := in.Module.Memory().Read(s.Offset, s.Len)
		if !ok {
			return errors.New("a region to reseed lies outside the memory")
		}
		rand.Read(b)
	}
	if in.reseed[0] == nil || in.reseed[1] == nil {
		return nil
	}
	ctx, budget := meter.Start(ctx, meter.Limits{Fuel: reseedFuel})
	if err := budget.Arm(in.Module); err != nil {
		return err
	}
	stack := [2]uint64{seedLen}
	if err := in.reseed[0].CallWithStack(ctx, stack[:]); err != nil {
		return fmt.Errorf("%s: %w", abi.ExportAlloc, err)
	}
	ptr := uint32(stack[0])
	b, ok := in.Module.Memory().Read(ptr, seedLen)
	if !ok {
		return fmt.Errorf("%s gave %#x, which lies outside the memory", abi.ExportAlloc, ptr)
	}
	rand.Read(b)
	stack = [2]uint64{uint64(ptr), seedLen}
	if err := in.reseed[1].CallWithStack(ctx, stack[:]); err != nil {
		return fmt.Errorf("%s: %w", abi.ExportReseed, err)
	}
	return nil
}
