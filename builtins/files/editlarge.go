package files

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// A large file is mostly edited in one place. It is searched in pieces, and
// what lies before and after the place is copied from file to file: neither the
// old text nor the new one is held. Whatever is not as plain as that, an answer
// that explains a failure above all, is left to the general way.
const (
	largeEdit  = 8 << 20
	editPiece  = 1 << 20
	editAround = 64 << 10 // bytes on each side of the place, for line ends and the diff
	editNeedle = 64 << 10
)

// editLarge edits a large file, or answers nothing where it is not for it.
func (r *room) editLarge(ctx context.Context, c host.Call, t target, a editArgs) (*abi.Result, error) {
	if a.all || r.tree.Editor != nil || len(a.old) > editNeedle || bytes.IndexByte(a.old, '\r') >= 0 {
		return nil, nil
	}
	info, err := r.tree.Stat(ctx, c.Rights, t.name)
	if err != nil || info.IsDir() || info.Size() < largeEdit || info.Size() > editMost {
		return nil, nil
	}
	if seen, known := r.state.Seen(t.name); !known || !seen.same(stamp(info, nil)) {
		return nil, nil
	}
	f, err := r.tree.Open(ctx, c.Rights, t.name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil
	}
	defer f.Close()
	p, ok, err := locateOnce(ctx, f, a.old)
	if err != nil || !ok {
		return nil, err
	}
	return r.applyLarge(ctx, c, t, a, f, info, p)
}

// found is the only place of a text in a file, and the lines before it.
type found struct {
	at    int64
	lines int
}

// locateOnce looks for a text that a plain UTF-8 file holds once. ok is false
// where the file is something else, where the text is not there once, or where
// the file's line ends would have to be folded to tell.
func locateOnce(ctx context.Context, f io.Reader, old []byte) (p found, ok bool, err error) {
	p.at = -1
	buf := make([]byte, editPiece+len(old))
	folds := bytes.IndexByte(old, '\n') >= 0
	base, have := int64(0), 0 // buf holds have bytes from base on
	var n needle
	for last := false; !last; {
		if err := ctx.Err(); err != nil {
			return p, false, err
		}
		got, err := io.ReadFull(f, buf[have:])
		if last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); err != nil && !last {
			return p, false, err
		}
		text := buf[:have+got]
		if base == 0 {
			n = newNeedle(old, text)
		}
		if base == 0 && !plainText(text) || folds && bytes.IndexByte(text, '\r') >= 0 {
			return p, false, nil
		}
		from := 0
		if i := n.index(text); i >= 0 && p.at < 0 {
			p.at, p.lines = base+int64(i), p.lines+bytes.Count(text[:i], []byte{'\n'})
			from = i + len(old)
		}
		if p.at >= 0 {
			if from = max(from, int(p.at-base)+len(old)); from < len(text) && n.index(text[from:]) >= 0 {
				return p, false, nil
			}
		}
		keep := min(len(old)-1, len(text)) // a match may be cut in two
		if p.at >= 0 {
			keep = min(keep, len(text)-min(from, len(text)))
		} else {
			p.lines += bytes.Count(text[:len(text)-keep], []byte{'\n'})
		}
		base += int64(len(text) - keep)
		have = copy(buf, text[len(text)-keep:])
	}
	return p, p.at >= 0, nil
}

// needle is looked for by the byte of it that the text has least of: the first
// bytes of a line, which bytes.Index goes by, are often those of all lines.
type needle struct {
	text []byte
	rare int // its offset
}

func newNeedle(text, sample []byte) needle {
	var count [256]int
	for _, c := range sample[:min(len(sample), textfile.HeadSize)] {
		count[c]++
	}
	n := needle{text: text}
	for i, c := range text {
		if count[c] < count[text[n.rare]] {
			n.rare = i
		}
	}
	return n
}

// index is bytes.Index, to which it leaves texts in which the byte is not rare.
func (n needle) index(text []byte) int {
	tries := len(text)/32 + 16
	for at := n.rare; at < len(text) && tries > 0; tries-- {
		i := bytes.IndexByte(text[at:], n.text[n.rare])
		start := at + i - n.rare
		if i < 0 || start+len(n.text) > len(text) {
			return -1
		}
		if bytes.Equal(text[start:start+len(n.text)], n.text) {
			return start
		}
		at += i + 1
	}
	if tries > 0 {
		return -1
	}
	return bytes.Index(text, n.text)
}

func plainText(head []byte) bool {
	v := textfile.Sniff(head, false)
	return v.Encoding == textfile.UTF8 && !v.BOM
}

func (r *room) applyLarge(ctx context.Context, c host.Call, t target, a editArgs, f *reach.File, info fs.FileInfo, p found) (*abi.Result, error) {
	from, to := max(p.at-editAround, 0), min(p.at+int64(len(a.old))+editAround, info.Size())
	near := make([]byte, to-from)
	if _, err := f.ReadAt(near, from); err != nil {
		return nil, err
	}
	at := []span{{int(p.at - from), int(p.at-from) + len(a.old)}}
	enough := func(text []byte, whole bool) bool { return whole || bytes.Count(text, []byte{'\n'}) > diffContext+1 }
	if !bytes.Equal(near[at[0].from:at[0].to], a.old) || !enough(near[:at[0].from], from == 0) || !enough(near[at[0].to:], to == info.Size()) {
		return nil, nil
	}
	parts, put := replace(near, at, a.new)
	if unchanged(near, at, parts) {
		return nil, nil
	}
	after := p.at + int64(len(a.old))
	written, err := r.tree.WriteFile(ctx, c.Rights, t.name, reach.Pieces(
		reach.Piece{From: f, Len: p.at}, reach.Piece{Data: parts[1]}, reach.Piece{From: f, Off: after, Len: info.Size() - after},
	), reach.WriteOptions{Before: stillThere(t, info)})
	if err != nil {
		return nil, err
	}
	r.state.Saw(t.name, stampWritten(written, nil))
	line := p.lines + 1
	res := abi.Textf("Edited %s at line %d.\n\n%s", t.show, line, diffOf(t.show, near, parts, at, put, line))
	return &res, nil
}
