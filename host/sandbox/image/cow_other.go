//go:build !linux

package image

import "errors"

// cow is the portable form: every instance copies the image.
type cow struct{ mem []byte }

func newCOW(mem []byte) (*cow, error) { return &cow{mem}, nil }

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

// reset copies the image back; the size was compared before.
func (m *memory) reset() error {
	copy(m.buf, m.image)
	return nil
}

func (m *memory) touched() (int, error) { return 0, errors.ErrUnsupported }
