package reach

import (
	"context"
	"errors"
	"io"
	"os"
)

// Pieces is a text in parts that lie in memory, for WriteFile: a change to a
// large text is written without putting the whole together first.
type Pieces struct {
	parts [][]byte
	at    int // part
	off   int // in it
}

// NewPieces takes the parts as they are: they must not change while they are read.
func NewPieces(parts ...[]byte) *Pieces { return &Pieces{parts: parts} }

// Read implements io.Reader.
func (p *Pieces) Read(b []byte) (int, error) {
	for p.at < len(p.parts) {
		if rest := p.parts[p.at][p.off:]; len(rest) > 0 {
			n := copy(b, rest)
			p.off += n
			return n, nil
		}
		p.at, p.off = p.at+1, 0
	}
	return 0, io.EOF
}

// Seek goes back to the start, for a second reader; it can do no more.
func (p *Pieces) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	p.at, p.off = 0, 0
	return 0, nil
}

func (p *Pieces) writeTo(ctx context.Context, f *os.File) error {
	w := contextWriter{ctx, f}
	for ; p.at < len(p.parts); p.at, p.off = p.at+1, 0 {
		if _, err := w.Write(p.parts[p.at][p.off:]); err != nil {
			return err
		}
	}
	return nil
}
