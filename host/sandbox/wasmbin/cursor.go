package wasmbin

import (
	"fmt"
	"unicode/utf8"
)

// cursor reads with a sticky error: after the first failure every read gives
// zero and consumes nothing, so that callers look at err once per turn.
type cursor struct {
	b    []byte
	p    int
	base int // module offset of b[0]
	err  *Error
}

func (c *cursor) left() int   { return len(c.b) - c.p }
func (c *cursor) offset() int { return c.base + c.p }

func (c *cursor) fail(class error, format string, args ...any) {
	c.failAt(c.offset(), class, format, args...)
}

func (c *cursor) failAt(off int, class error, format string, args ...any) {
	if c.err != nil {
		return
	}
	c.err = &Error{Class: class, Offset: off, Detail: fmt.Sprintf(format, args...)}
	if class == ErrTruncated {
		c.err.Hint = hintAgain
	}
}

func (c *cursor) unsupported(feature string) {
	c.fail(ErrUnsupported, "%s", feature)
	c.err.Hint = "rebuild the plugin without it"
}

// failure is err as an error interface, nil when there is none.
func (c *cursor) failure() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

func (c *cursor) byte() byte {
	if c.err != nil || c.p >= len(c.b) {
		c.fail(ErrTruncated, "a byte is missing")
		return 0
	}
	v := c.b[c.p]
	c.p++
	return v
}

// u32 reads an unsigned LEB128 of at most 5 bytes and 32 bits.
func (c *cursor) u32() uint32 {
	if c.err == nil && c.p < len(c.b) && c.b[c.p] < 0x80 { // one byte: the common case
		c.p++
		return uint32(c.b[c.p-1])
	}
	var v uint64
	for i := 0; i < 5; i++ {
		x := c.byte()
		v |= uint64(x&0x7f) << (7 * i)
		if x < 0x80 {
			if v>>32 != 0 {
				break
			}
			return uint32(v)
		}
	}
	c.fail(ErrMalformed, "an integer is longer than 32 bits")
	return 0
}

// s64 reads a signed LEB128 of the given width in bits: 32, 33 or 64.
func (c *cursor) s64(bits int) int64 {
	var v int64
	for i := 0; 7*i < bits; i++ {
		x := c.byte()
		v |= int64(x&0x7f) << (7 * i)
		if x >= 0x80 {
			continue
		}
		if s := 7 * (i + 1); s < 64 && x&0x40 != 0 {
			v |= -1 << s
		}
		// The unused high bits of the last byte must repeat the sign.
		if top := bits - 7*i; top < 7 {
			if sign := int8(x<<1) >> top; sign != 0 && sign != -1 {
				break
			}
		}
		return v
	}
	c.fail(ErrMalformed, "an integer is longer than %d bits", bits)
	return 0
}

// take gives the next n bytes as a slice of the input.
func (c *cursor) take(n uint32) []byte {
	if c.err != nil || uint64(n) > uint64(c.left()) {
		c.fail(ErrTruncated, "%d bytes are declared where %d are left", n, c.left())
		return nil
	}
	s := c.b[c.p : c.p+int(n) : c.p+int(n)]
	c.p += int(n)
	return s
}

// count reads a vector's length and refuses one that cannot fit, as every
// element takes at least size bytes.
func (c *cursor) count(size int) uint32 {
	n := c.u32()
	if c.err == nil && uint64(n)*uint64(size) > uint64(c.left()) {
		c.fail(ErrTruncated, "%d elements are declared where %d bytes are left", n, c.left())
		return 0
	}
	return n
}

// name reads a name and checks that it is UTF-8, as the specification demands.
func (c *cursor) name() string {
	b := c.take(c.u32())
	if !utf8.Valid(b) {
		c.failAt(c.offset()-len(b), ErrMalformed, "a name is not UTF-8")
	}
	return string(b)
}
