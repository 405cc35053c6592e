package reach

import (
	"context"
	"errors"
	"io"
	"os"
)

// Piece is a part of a text: bytes in memory, or, with From, Len bytes of an
// open file from Off on, which the kernel copies by itself where it can.
type Piece struct {
	Data []byte
	From *File
	Off  int64
	Len  int64
}

type pieces struct {
	parts []Piece
	at    int   // part
	off   int64 // in it
}

// Pieces is a text in parts, in order, for WriteFile: a change to a large text is
// written without putting the whole together first. Neither the memory nor the
// files may change while they are read. It is used by one goroutine at a time.
func Pieces(parts ...Piece) io.ReadSeeker {
	for i := range parts {
		if parts[i].From == nil {
			parts[i].Len = int64(len(parts[i].Data))
		}
	}
	return &pieces{parts: parts}
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	for p.at < len(p.parts) {
		x := &p.parts[p.at]
		left := x.Len - p.off
		if left == 0 {
			p.at, p.off = p.at+1, 0
			continue
		}
		n := int(min(int64(len(b)), left))
		if x.From == nil {
			n = copy(b, x.Data[p.off:])
		} else if m, err := x.From.f.ReadAt(b[:n], x.Off+p.off); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF // it is shorter than it was
			}
			return m, err
		}
		p.off += int64(n)
		return n, nil
	}
	return 0, io.EOF
}

// Seek implements io.Seeker. It goes back to the start, for a second reader; it can do no more.
func (p *pieces) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	p.at, p.off = 0, 0
	return 0, nil
}

func (p *pieces) writeTo(ctx context.Context, f *os.File) error {
	for ; p.at < len(p.parts); p.at, p.off = p.at+1, 0 {
		x := &p.parts[p.at]
		var err error
		if x.From == nil {
			_, err = contextWriter{ctx, f}.Write(x.Data[p.off:])
		} else {
			err = copyRange(ctx, f, x.From.f, x.Off+p.off, x.Len-p.off)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRange copies a part of a file. The standard library uses
// copy_file_range where the system has it, which shares the blocks on file
// systems that can.
func copyRange(ctx context.Context, to, from *os.File, off, n int64) error {
	if _, err := from.Seek(off, io.SeekStart); err != nil {
		return err
	}
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, err := to.ReadFrom(&io.LimitedReader{R: from, N: min(n, copiedAtOnce)})
		if err != nil {
			return err
		}
		if m == 0 {
			return io.ErrUnexpectedEOF // it is shorter than it was
		}
		n -= m
	}
	return nil
}

// copiedAtOnce is how much is copied before the context is looked at again.
const copiedAtOnce = 64 << 20
