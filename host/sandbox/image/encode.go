package image

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// The file of an image: the magic, then the module, the globals, the spans and
// the memory's runs of non-zero pages, each with its length (unsigned varint),
// then the SHA-256 of everything before.
const magic = "elfhost image 1\n"

// ErrDamaged is returned for bytes that Encode did not write.
var ErrDamaged = errors.New("the image file is damaged")

// Encode gives the image as a file.
func (img *Image) Encode() []byte {
	b := append([]byte(magic), nil...)
	u := func(v uint64) { b = binary.AppendUvarint(b, v) }
	text := func(p []byte) { u(uint64(len(p))); b = append(b, p...) }
	text(img.Module)
	u(uint64(len(img.State)))
	for _, v := range img.State {
		text([]byte(v.Export))
		u(v.Value)
	}
	u(uint64(len(img.Reseed)))
	for _, s := range img.Reseed {
		u(uint64(s.Offset))
		u(uint64(s.Len))
	}
	u(uint64(img.Memory.Size))
	at := 0
	for _, r := range img.Memory.Runs {
		u(uint64(r.At - at))
		text(r.Bytes)
		at = r.At + len(r.Bytes)
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Decode reads what Encode wrote. maxMemory bounds the memory in bytes. The
// memory's runs are parts of b.
func Decode(b []byte, maxMemory int) (*Image, error) {
	if len(b) < len(magic)+sha256.Size || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin like one", ErrDamaged)
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return nil, fmt.Errorf("%w: its checksum differs", ErrDamaged)
	}
	d := &decoder{b: body[len(magic):]}
	img := &Image{Module: bytes.Clone(d.text())}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		img.State = append(img.State, Var{string(d.text()), d.uint()})
	}
	for n := d.count(); n > 0 && d.err == nil; n-- {
		img.Reseed = append(img.Reseed, Span{uint32(d.uint()), uint32(d.uint())})
	}
	size := d.uint()
	if size > uint64(max(maxMemory, 0)) {
		d.fail()
	}
	if d.err != nil {
		return nil, d.err
	}
	img.Memory.Size = int(size)
	for at := uint64(0); len(d.b) > 0 && d.err == nil; {
		skip, p := d.uint(), d.text()
		if skip > size-at || uint64(len(p)) > size-at-skip {
			d.fail()
			break
		}
		if at += skip; len(p) > 0 {
			img.Memory.Runs = append(img.Memory.Runs, Run{int(at), p})
		}
		at += uint64(len(p))
	}
	if d.err != nil {
		return nil, d.err
	}
	return img, nil
}

type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = fmt.Errorf("%w: its lengths do not add up", ErrDamaged)
	}
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a number of elements of at least one byte each.
func (d *decoder) count() uint64 {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) text() []byte {
	n := d.count()
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}
