//go:build !linux

package image

import "bytes"

// cow is the portable form: every instance copies the image.
type cow struct{ mem []byte }

func newCOW(m Memory) (*cow, error) {
	c := &cow{make([]byte, m.Size)}
	for _, r := range m.Runs {
		copy(c.mem[r.At:], r.Bytes)
	}
	return c, nil
}

func (c *cow) close() error { return nil }

// memory is the linear memory of one instance.
type memory struct {
	buf   []byte
	image []byte
	most  uint64
}

func (c *cow) allocate(most uint64) *memory {
	m := &memory{buf: make([]byte, len(c.mem)), image: c.mem, most: most}
	copy(m.buf, c.mem)
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if size > m.most {
		return nil
	}
	if n := uint64(len(m.buf)); size > n {
		m.buf = append(m.buf, make([]byte, size-n)...)
	}
	m.buf = m.buf[:size]
	return m.buf
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() { m.buf = nil }

func (m *memory) size() int { return len(m.buf) }

const page = 4096

func (m *memory) begin() {}
func (m *memory) end()   {}
func (m *memory) calm()  {}

// reset copies the image back; the size was compared before.
func (m *memory) reset() error {
	copy(m.buf, m.image)
	return nil
}

// touched counts the pages that differ from the image.
func (m *memory) touched() (n int, err error) {
	for at := 0; at < len(m.buf); at += page {
		end := min(at+page, len(m.buf))
		if at >= len(m.image) || !bytes.Equal(m.buf[at:end], m.image[at:end]) {
			n++
		}
	}
	return n, nil
}
