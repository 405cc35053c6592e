package wasi

import (
	"encoding/binary"

	"github.com/tetratelabs/wazero/api"
)

// Memory is a guest's linear memory as a host function sees it. Every access
// is checked, in 64 bits, before anything is allocated or written. Writes go
// through it alone, so that Tap sees all that a host function answers.
type Memory struct {
	mem api.Memory
	tap func(off uint32, b []byte)
}

// MemoryOf returns the memory of mod. tap, which may be nil, is told of every
// write after it was made; it must not keep b.
func MemoryOf(mod api.Module, tap func(off uint32, b []byte)) Memory {
	return Memory{mod.Memory(), tap}
}

// View returns the guest's own bytes. They change under a later write, and
// are gone when the memory grows: never keep them past the host function, and
// Copy what is checked before it is used.
func (m Memory) View(off, n uint32) ([]byte, bool) {
	if m.mem == nil {
		return nil, false
	}
	return m.mem.Read(off, n)
}

// Copy returns a copy of n bytes.
func (m Memory) Copy(off, n uint32) ([]byte, bool) {
	b, ok := m.View(off, n)
	if !ok {
		return nil, false
	}
	return append(make([]byte, 0, n), b...), true
}

// Write copies b into the guest, all of it or nothing.
func (m Memory) Write(off uint32, b []byte) bool {
	if m.mem == nil || !m.mem.Write(off, b) {
		return false
	}
	if m.tap != nil && len(b) > 0 {
		m.tap(off, b)
	}
	return true
}

// wrote reports bytes that were put into a View.
func (m Memory) wrote(off uint32, b []byte) {
	if m.tap != nil && len(b) > 0 {
		m.tap(off, b)
	}
}

func (m Memory) putU32(off, v uint32) bool {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	return m.Write(off, b[:])
}

func (m Memory) putU64(off uint32, v uint64) bool {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	return m.Write(off, b[:])
}

// has reports whether off and the n bytes after it lie inside the memory.
func (m Memory) has(off uint32, n uint64) bool {
	return m.mem != nil && uint64(off)+n <= uint64(m.mem.Size())
}

// iovec is one buffer of a scattered read or write.
type iovec struct{ off, len uint32 }

// maxIovecs bounds one call (IOV_MAX of Linux).
const maxIovecs = 1024

// iovecs reads and checks a vector of n buffers.
func (m Memory) iovecs(off, n uint32) ([]iovec, Errno) {
	if n > maxIovecs {
		return nil, eINVAL
	}
	b, ok := m.View(off, n*8)
	if !ok {
		return nil, eFAULT
	}
	list := make([]iovec, n)
	var sum uint64
	for i := range list {
		list[i] = iovec{binary.LittleEndian.Uint32(b[i*8:]), binary.LittleEndian.Uint32(b[i*8+4:])}
		if !m.has(list[i].off, uint64(list[i].len)) {
			return nil, eFAULT
		}
		if sum += uint64(list[i].len); sum > 1<<31-1 {
			return nil, eINVAL
		}
	}
	return list, success
}
