package textfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// wide tells UTF-16 without a mark from binary data. Text has its zero bytes
// on one side only, apart from a few characters such as U+4E00, and decodes
// to printable characters throughout.
func wide(head []byte) (Encoding, bool) {
	even, odd := 0, 0
	for i, c := range head {
		if c == 0 {
			if i%2 == 0 {
				even++
			} else {
				odd++
			}
		}
	}
	enc, right, wrong := UTF16LE, odd, even
	if even > odd {
		enc, right, wrong = UTF16BE, even, odd
	}
	if len(head) < 4 || wrong*10 > right || !printable(head, enc) {
		return 0, false
	}
	return enc, !bytePairs(head)
}

// bytePairs reports ASCII with a few zero bytes in it: two letters side by side
// are a Chinese character, too.
func bytePairs(head []byte) bool {
	pairs, narrow := 0, 0
	for i := 0; i+1 < len(head); i += 2 {
		a, b := head[i], head[i+1]
		switch {
		case a == 0 || b == 0:
			narrow++
		case a < 0x80 && b < 0x80:
			pairs++
		default:
			return false
		}
	}
	return pairs >= narrow && pairs > 0
}

func printable(b []byte, enc Encoding) bool {
	order := byteOrder(enc)
	units := len(b) / 2
	for i := 0; i < units; i++ {
		r := rune(order.Uint16(b[2*i:]))
		switch {
		case r >= 0xDC00 && r < 0xE000:
			return false
		case r >= 0xD800 && r < 0xDC00:
			i++
			if i == units {
				return true // cut by the end of the head
			}
			if low := rune(order.Uint16(b[2*i:])); low < 0xDC00 || low >= 0xE000 {
				return false
			}
		case r == '\n' || r == '\r' || r == '\t' || r == '\f' || r == 0xFEFF || r == 0x1b:
		case !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && !unicode.Is(unicode.Cf, r):
			return false
		}
	}
	return true
}

func byteOrder(enc Encoding) binary.ByteOrder {
	if enc == UTF16BE {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Decode returns the whole of a text file as UTF-8, without its mark. For
// UTF-16 it fails unless Encode gives back the same bytes: a caller that edits
// relies on that.
func Decode(b []byte, v Verdict) ([]byte, error) {
	b = b[min(v.BOMLen(), len(b)):]
	if !v.Wide() {
		return b, nil
	}
	if len(b)%2 != 0 {
		return nil, fmt.Errorf("%s text with an odd number of bytes", v.Name)
	}
	order := byteOrder(v.Encoding)
	out := make([]byte, 0, len(b)+len(b)/2)
	for i := 0; i < len(b); i += 2 {
		r := rune(order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			low := rune(0)
			if i+4 <= len(b) {
				low = rune(order.Uint16(b[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return nil, fmt.Errorf("%s text with half a surrogate pair at byte %d", v.Name, i+v.BOMLen())
			}
			i += 2
		}
		out = utf8.AppendRune(out, r)
	}
	return out, nil
}

// Encode is the inverse of Decode: the mark, then text in the file's encoding.
func Encode(text []byte, v Verdict) []byte {
	if !v.Wide() {
		if !v.BOM {
			return text
		}
		return append([]byte{0xEF, 0xBB, 0xBF}, text...)
	}
	order := byteOrder(v.Encoding)
	out := make([]byte, 0, 2*len(text)+2)
	put := func(u uint16) {
		var p [2]byte
		order.PutUint16(p[:], u)
		out = append(out, p[:]...)
	}
	if v.BOM {
		put(0xFEFF)
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if r1, r2 := utf16.EncodeRune(r); r1 != utf8.RuneError {
			put(uint16(r1))
			put(uint16(r2))
			continue
		}
		put(uint16(r))
	}
	return out
}

// NewReader streams r, which stands at the start of the file, as UTF-8
// without the mark. Bad UTF-16 comes out as U+FFFD; bad UTF-8 passes through.
func NewReader(r io.Reader, v Verdict) io.Reader {
	if n := v.BOMLen(); n > 0 {
		if _, err := io.CopyN(io.Discard, r, int64(n)); err != nil {
			return &failed{err}
		}
	}
	if !v.Wide() {
		return r
	}
	return &wideReader{r: r, order: byteOrder(v.Encoding), raw: make([]byte, 64<<10)}
}

type failed struct{ err error }

func (f *failed) Read([]byte) (int, error) { return 0, f.err }

// wideReader transcodes UTF-16 to UTF-8.
type wideReader struct {
	r     io.Reader
	order binary.ByteOrder
	raw   []byte
	have  int    // bytes of raw that wait for the rest of their unit or pair
	out   []byte // transcoded, not yet given out
	err   error
}

func (w *wideReader) Read(p []byte) (int, error) {
	for len(w.out) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		n, err := w.r.Read(w.raw[w.have:])
		w.err = err
		w.transcode(w.raw[:w.have+n])
	}
	n := copy(p, w.out)
	w.out = w.out[n:]
	return n, nil
}

func (w *wideReader) transcode(b []byte) {
	w.out = w.out[:0]
	i := 0
	for ; i+2 <= len(b); i += 2 {
		r := rune(w.order.Uint16(b[i:]))
		if utf16.IsSurrogate(r) {
			if i+4 > len(b) && w.err == nil {
				break
			}
			low := rune(0)
			if i+4 <= len(b) {
				low = rune(w.order.Uint16(b[i+2:]))
			}
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				i += 2
			}
		}
		w.out = utf8.AppendRune(w.out, r)
	}
	if w.err != nil && i < len(b) {
		w.out = utf8.AppendRune(w.out, utf8.RuneError)
		i = len(b)
	}
	w.have = copy(w.raw, b[i:])
}
