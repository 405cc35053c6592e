package extism

import (
	"context"
	"encoding/binary"
	"math/bits"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/host/sandbox"
)

// kernel is the memory through which a plugin and its host exchange blocks.
// Offsets are positions in mem; 0 is no block. It belongs to one call.
type kernel struct {
	mem    []byte
	blocks map[uint64]block
	free   [33][]uint64 // offsets of given-back blocks, by the logarithm of their size

	input, output span
	err           uint64
	status        int32
	headers       []byte // JSON, nil before the first response
	max           uint64 // bytes of mem; set at the first allocation
}

type block struct {
	len  uint32
	size uint8 // logarithm of what it takes
}

type span struct{ off, len uint64 }

const smallest = 4 // 16 bytes

// of gives the kernel of a call, bounded like the guest's own memory.
func of(g *sandbox.Guest) *kernel {
	k := g.State.(*kernel)
	if k.max == 0 {
		k.max = uint64(g.Limits().Memory)
		if k.max == 0 {
			k.max = 1 << 32
		}
	}
	return k
}

// alloc gives a block of n bytes, or 0 when n is 0 or there is no more room.
func (k *kernel) alloc(n uint64) uint64 {
	if n == 0 || n > k.max || n > 1<<31 {
		return 0
	}
	class := max(bits.Len64(n-1), smallest)
	if list := k.free[class]; len(list) > 0 {
		off := list[len(list)-1]
		k.free[class] = list[:len(list)-1]
		k.blocks[off] = block{uint32(n), uint8(class)}
		return off
	}
	off := max(uint64(len(k.mem)), 16)
	end := off + 1<<class
	if end > k.max {
		if end = off + (n+15)&^15; end > k.max {
			return 0
		}
		class = 0 // an odd size: it is not used again
	}
	if end > uint64(cap(k.mem)) {
		grown := make([]byte, end, min(max(2*uint64(cap(k.mem)), end, 4096), k.max))
		copy(grown, k.mem)
		k.mem = grown
	}
	k.mem = k.mem[:end]
	if k.blocks == nil {
		k.blocks = map[uint64]block{}
	}
	k.blocks[off] = block{uint32(n), uint8(class)}
	return off
}

func (k *kernel) release(off uint64) {
	b, ok := k.blocks[off]
	if !ok {
		return
	}
	delete(k.blocks, off)
	if b.size > 0 {
		k.free[b.size] = append(k.free[b.size], off)
	}
}

func (k *kernel) length(off uint64) uint64 { return uint64(k.blocks[off].len) }

// holds reports whether n bytes at off lie inside the memory.
func (k *kernel) holds(off, n uint64) bool {
	return off <= uint64(len(k.mem)) && n <= uint64(len(k.mem))-off
}

// read copies the block at off.
func (k *kernel) read(off uint64) []byte {
	n := k.length(off)
	return append(make([]byte, 0, n), k.mem[off:off+n]...)
}

// write makes a block of b; 0 when b is empty or there is no room.
func (k *kernel) write(b []byte) uint64 {
	off := k.alloc(uint64(len(b)))
	if off != 0 {
		copy(k.mem[off:], b)
	}
	return off
}

func (k *kernel) view(s span) []byte {
	if !k.holds(s.off, s.len) {
		return nil
	}
	return k.mem[s.off : s.off+s.len]
}

// Read copies the block whose offset a plugin passed to a host function.
func Read(g *sandbox.Guest, off uint64) []byte {
	k := of(g)
	if _, ok := k.blocks[off]; !ok {
		return nil
	}
	return k.read(off)
}

// Write makes a block for a plugin and returns its offset: 0 when b is empty or
// the plugin's memory is full.
func Write(g *sandbox.Guest, b []byte) uint64 { return of(g).write(b) }

// Free gives a block back.
func Free(g *sandbox.Guest, off uint64) { of(g).release(off) }

const (
	i32 = api.ValueTypeI32
	i64 = api.ValueTypeI64
)

// local makes a function of the kernel.
func local(name string, params, results []api.ValueType, run func(k *kernel, s []uint64)) sandbox.Func {
	return sandbox.Func{Module: EnvModule, Name: name, Params: params, Results: results, Local: true,
		Run: func(_ context.Context, g *sandbox.Guest, stack []uint64) { run(of(g), stack) }}
}

func kernelFunctions() []sandbox.Func {
	type types = []api.ValueType
	one, two := types{i64}, types{i64, i64}
	return []sandbox.Func{
		local("alloc", one, one, func(k *kernel, s []uint64) { s[0] = k.alloc(s[0]) }),
		local("free", one, nil, func(k *kernel, s []uint64) { k.release(s[0]) }),
		local("length", one, one, func(k *kernel, s []uint64) { s[0] = k.length(s[0]) }),
		local("length_unsafe", one, one, func(k *kernel, s []uint64) { s[0] = k.length(s[0]) }),
		local("load_u8", one, types{i32}, func(k *kernel, s []uint64) { s[0] = k.load8(s[0]) }),
		local("load_u64", one, one, func(k *kernel, s []uint64) { s[0] = k.load64(s[0]) }),
		local("store_u8", types{i64, i32}, nil, func(k *kernel, s []uint64) {
			if k.holds(s[0], 1) {
				k.mem[s[0]] = byte(s[1])
			}
		}),
		local("store_u64", two, nil, func(k *kernel, s []uint64) {
			if k.holds(s[0], 8) {
				binary.LittleEndian.PutUint64(k.mem[s[0]:], s[1])
			}
		}),
		local("input_load_u8", one, types{i32}, func(k *kernel, s []uint64) {
			if s[0] >= k.input.len {
				s[0] = 0
				return
			}
			s[0] = k.load8(k.input.off + s[0])
		}),
		local("input_load_u64", one, one, func(k *kernel, s []uint64) {
			if s[0] >= k.input.len || k.input.len-s[0] < 8 {
				s[0] = 0
				return
			}
			s[0] = k.load64(k.input.off + s[0])
		}),
		local("input_set", two, nil, func(k *kernel, s []uint64) {
			if k.holds(s[0], s[1]) {
				k.input = span{s[0], s[1]}
			}
		}),
		local("input_length", nil, one, func(k *kernel, s []uint64) { s[0] = k.input.len }),
		local("input_offset", nil, one, func(k *kernel, s []uint64) { s[0] = k.input.off }),
		local("output_set", two, nil, func(k *kernel, s []uint64) {
			if k.holds(s[0], s[1]) {
				k.output = span{s[0], s[1]}
			}
		}),
		local("output_length", nil, one, func(k *kernel, s []uint64) { s[0] = k.output.len }),
		local("output_offset", nil, one, func(k *kernel, s []uint64) { s[0] = k.output.off }),
		local("reset", nil, nil, func(k *kernel, _ []uint64) { *k = kernel{max: k.max} }),
		local("error_set", one, nil, func(k *kernel, s []uint64) { k.err = s[0] }),
		local("error_get", nil, one, func(k *kernel, s []uint64) { s[0] = k.err }),
		local("memory_bytes", nil, one, func(k *kernel, s []uint64) { s[0] = uint64(len(k.mem)) }),
	}
}

func (k *kernel) load8(off uint64) uint64 {
	if !k.holds(off, 1) {
		return 0
	}
	return uint64(k.mem[off])
}

func (k *kernel) load64(off uint64) uint64 {
	if !k.holds(off, 8) {
		return 0
	}
	return binary.LittleEndian.Uint64(k.mem[off:])
}
