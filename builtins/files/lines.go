package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"
)

// pageBuffer is one read. It is large enough to make system calls cheap and
// small enough to stay in a core's own cache.
const pageBuffer = 256 << 10

// skip reads past n lines. It returns how many it found, what it had read
// beyond them, and io.EOF when the text ended before. partial is true when
// the text ended in a line without a newline, which is counted.
func skip(ctx context.Context, r io.Reader, n int) (found int, rest []byte, err error) {
	if n == 0 {
		return 0, nil, nil
	}
	buf := make([]byte, pageBuffer)
	partial := false
	for {
		if err := ctx.Err(); err != nil {
			return found, nil, err
		}
		k, err := r.Read(buf)
		b := buf[:k]
		if c := bytes.Count(b, []byte{'\n'}); found+c < n {
			found += c
			if k > 0 {
				partial = b[k-1] != '\n'
			}
		} else {
			for ; found < n; found++ {
				b = b[bytes.IndexByte(b, '\n')+1:]
			}
			return found, b, nil
		}
		if err != nil {
			if partial && errors.Is(err, io.EOF) {
				found++
			}
			return found, nil, err
		}
	}
}

// line is one line of a page: its text without the line end, cut at a rune
// boundary when it is longer than asked for.
type line struct {
	text []byte
	size int // bytes of the whole line
}

// page is a part of a file.
type page struct {
	lines []line
	more  bool // the file goes on
	extra int  // lines that were read past the last one given
	crlf  bool
	bad   bool // some bytes are not UTF-8
}

// bounds limit a page. Zero is no limit.
type bounds struct {
	lines   int
	lineLen int // characters of one line
	total   int // bytes of all lines; the first line is given up to that
}

// readPage reads lines from where r stands.
func readPage(ctx context.Context, r *bufio.Reader, b bounds) (page, error) {
	var p page
	for total := 0; b.lines == 0 || len(p.lines) < b.lines; {
		if err := ctx.Err(); err != nil {
			return p, err
		}
		keep := b.lineLen * utf8.UTFMax
		if b.total > 0 && (keep == 0 || keep > b.total) {
			keep = b.total
		}
		l, ended, err := readLine(ctx, r, keep)
		if err != nil {
			return p, err
		}
		if ended && l.size == 0 {
			return p, nil
		}
		if b.total > 0 && len(p.lines) > 0 && total+len(l.text)+1 > b.total {
			p.more, p.extra = true, 1
			return p, nil
		}
		if n := len(l.text); n > 0 && n == l.size && l.text[n-1] == '\r' {
			p.crlf, l.text, l.size = true, l.text[:n-1], n-1
		}
		p.bad = p.bad || !utf8.Valid(l.text)
		total += len(l.text) + 1
		p.lines = append(p.lines, l)
		if ended {
			return p, nil
		}
	}
	_, err := r.Peek(1)
	p.more = err == nil
	if err != nil && !errors.Is(err, io.EOF) {
		return p, err
	}
	return p, nil
}

// readLine reads one line and keeps at most keep bytes of it. ended is true
// at the end of the text, where a line without a newline may still be given.
func readLine(ctx context.Context, r *bufio.Reader, keep int) (l line, ended bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		done := err == nil
		if done {
			part = part[:len(part)-1]
		}
		l.size += len(part)
		if keep == 0 {
			l.text = append(l.text, part...)
		} else if room := keep + utf8.UTFMax - len(l.text); room > 0 {
			l.text = append(l.text, part[:min(len(part), room)]...)
		}
		switch {
		case done, errors.Is(err, io.EOF):
			if keep > 0 && len(l.text) > keep {
				l.text = cutRune(l.text, keep)
			}
			return l, !done, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return l, true, err
		}
		if err := ctx.Err(); err != nil {
			return l, true, err
		}
	}
}

// countLines counts the lines that are left.
func countLines(ctx context.Context, r *bufio.Reader) (int, error) {
	n, _, err := skip(ctx, r, int(^uint(0)>>1))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
