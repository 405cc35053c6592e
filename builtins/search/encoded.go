package search

import (
	"bytes"
	"errors"
	"io"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
)

// whole searches a file that is in memory.
func (c *collector) whole(data []byte) {
	v := textfile.Verdict{}
	marked := bytes.HasPrefix(data, bom16LE) || bytes.HasPrefix(data, bom16BE)
	if head := data[:min(len(data), textfile.HeadSize)]; marked || !c.asText && bytes.IndexByte(head, 0) >= 0 {
		v = textfile.Sniff(data, len(data) <= textfile.HeadSize)
	} else {
		data = bytes.TrimPrefix(data, bom8)
	}
	if v.Wide() {
		text, err := io.ReadAll(textfile.NewReader(bytes.NewReader(data), v))
		if err != nil {
			return
		}
		data, c.out.note = text, v.Name
	} else if !c.asText && !v.Text() && bytes.IndexByte(data[:min(len(data), textfile.HeadSize)], 0) >= 0 {
		c.skip()
		return
	}
	c.search(data, true)
}

var (
	bom8    = []byte{0xEF, 0xBB, 0xBF}
	bom16LE = []byte{0xFF, 0xFE}
	bom16BE = []byte{0xFE, 0xFF}
)

// stream searches a file that is too large for memory, in pieces that end at
// a line's end. What context may need of a piece stays for the next.
func (c *collector) stream(file io.Reader, head []byte) error {
	v := textfile.Sniff(head, false)
	if c.asText && !(v.Wide() && v.BOM) { // a mark is believed: so does ripgrep
		v = textfile.Verdict{}
	}
	if !v.Text() && bytes.IndexByte(head, 0) >= 0 {
		c.skip()
		return nil
	}
	if v.Encoding == textfile.Legacy || v.Encoding == textfile.Binary {
		v = textfile.Verdict{}
	}
	if v.Wide() {
		c.out.note = v.Name
	}
	r := textfile.NewReader(file, v)
	buf := make([]byte, 0, chunk+chunk/8)
	for last := false; !last; {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if cap(buf)-len(buf) < chunk/2 {
			buf = append(make([]byte, 0, 2*cap(buf)), buf...)
		}
		n, err := io.ReadFull(r, buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		last = errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		end := len(buf)
		if !last {
			if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
				end = i + 1
			} else if len(buf) < longest {
				continue
			}
		}
		if !c.search(buf[:end], last) {
			return nil
		}
		buf = append(buf[:0], buf[c.carry(end):]...)
	}
	return nil
}
