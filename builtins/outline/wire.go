package outline

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The worker speaks frames: a length of four bytes, little-endian, and so many
// bytes. A request is two frames, the language's id and the text; the answer
// is one, JSON of reply. Neither side trusts a length.

// Bounds of frames, in bytes.
const (
	maxID     = 64
	maxSource = 16 << 20
	maxReply  = 32 << 20
)

var errFrame = errors.New("the frame is longer than it may be")

func writeFrame(w io.Writer, b []byte) error {
	var n [4]byte
	binary.LittleEndian.PutUint32(n[:], uint32(len(b)))
	if _, err := w.Write(n[:]); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// readFrame allocates as bytes come in, not as a length says.
func readFrame(r io.Reader, most int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if n > int64(most) {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errFrame, n, most)
	}
	b := make([]byte, 0, min(n, 64<<10))
	for int64(len(b)) < n {
		if len(b) == cap(b) {
			b = append(make([]byte, 0, min(n, int64(4*cap(b)))), b...)
		}
		m, err := r.Read(b[len(b):min(int64(cap(b)), n)])
		b = b[:len(b)+m]
		if err == io.EOF && int64(len(b)) < n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && int64(len(b)) < n {
			return nil, err
		}
	}
	return b, nil
}

// reply is what a parse found.
type reply struct {
	Symbols []Symbol `json:"s,omitempty"`
	// Bad is the line of the first error in the text, from 1; 0: none.
	Bad int `json:"e,omitempty"`
	// Failed says why there is no tree.
	Failed string `json:"f,omitempty"`
}

// decodeReply reads an answer that a parser may have been tricked into. What
// cannot be is dropped.
func decodeReply(b []byte) (reply, error) {
	var r reply
	if err := json.Unmarshal(b, &r); err != nil {
		return reply{}, fmt.Errorf("the parser's answer: %w", err)
	}
	r.Failed = line(r.Failed)
	r.Bad = max(r.Bad, 0)
	kept := r.Symbols[:0]
	depth := -1
	for _, s := range r.Symbols {
		s.Label, s.Name, s.Comment = line(s.Label), clip(s.Name, maxName), line(s.Comment)
		if s.Label == "" || s.First < 1 || s.Last < s.First || s.Depth < 0 || s.Depth > min(depth+1, maxDepth) {
			continue
		}
		depth = s.Depth
		kept = append(kept, s)
	}
	r.Symbols = kept
	return r, nil
}

// answer makes the reply about a tree.
func (l *language) answer(t *tree) reply {
	t.link()
	r := reply{Symbols: l.extract(t)}
	if t.bad {
		r.Bad = int(t.badRow) + 1
	}
	return r
}
