package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// The limits of Read.
const (
	readLines  = 2000      // of a file over readClip, unless a limit asks for more
	readChars  = 2000      // characters of one line, unless it is asked for alone
	readClip   = 128 << 10 // of text in one answer
	readWhole  = 10 << 20  // larger files need offset or limit
	imageLimit = 5 << 20   // of an image's bytes; models refuse more
)

type readArgs struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

func (r *room) read(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[readArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	if bad := r.badRange(a.Offset, a.Limit); bad != nil {
		return *bad, nil
	}
	t, err := r.locate(a.Path, "")
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	s, res, err := r.source(ctx, c, t)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	if res != nil {
		return *res, nil
	}
	defer s.Close()
	if s.size > readWhole && a.Offset == nil && a.Limit == nil {
		return abi.Errorf("%s is %s. A file over 10 MB needs %s or %s: read a part of it, or find the place with %s first.",
			t.show, kb(s.size), r.names.offset, r.names.limit, r.names.grep), nil
	}
	from, b := 1, bounds{lines: readLines, lineLen: readChars, total: readClip}
	if a.Offset != nil {
		from = *a.Offset
	}
	if a.Limit != nil {
		b.lines = *a.Limit
	} else if s.size <= readClip {
		b.lines = 0
	}
	if b.lines == 1 {
		b.lineLen = 0
	}
	return r.show(ctx, c, s, from, b)
}

// show renders the lines from the given one on, with their numbers.
func (r *room) show(ctx context.Context, c host.Call, s *source, from int, b bounds) (abi.Result, error) {
	p, total, res, err := r.page(ctx, s, from, b)
	if err != nil || res != nil {
		return orEmpty(res), err
	}
	r.state.Saw(s.name, s.stamp())
	var out strings.Builder
	long := 0
	for i, l := range p.lines {
		fmt.Fprintf(&out, "%6d→", from+i)
		text := cutChars(l.text, b.lineLen)
		out.WriteString(strings.ToValidUTF8(string(text), "\uFFFD"))
		if len(text) < l.size {
			fmt.Fprintf(&out, "… (line cut: %s)", kb(int64(l.size)))
			if long == 0 {
				long = from + i
			}
		}
		out.WriteByte('\n')
	}
	for _, n := range r.notes(s, p, from, total, long) {
		out.WriteString("\n" + n)
	}
	return abi.Text(strings.TrimSuffix(out.String(), "\n")), nil
}

// notes are the remarks below a page.
func (r *room) notes(s *source, p page, from, total, long int) []string {
	var notes []string
	last := from + len(p.lines) - 1
	switch {
	case p.more && total > 0:
		notes = append(notes, fmt.Sprintf("(Lines %d-%d of %d. Continue with %s=%d.)", from, last, total, r.names.offset, last+1))
	case p.more:
		notes = append(notes, fmt.Sprintf("(Lines %d-%d of a file of %s. Continue with %s=%d.)", from, last, kb(s.size), r.names.offset, last+1))
	case from > 1:
		notes = append(notes, fmt.Sprintf("(Lines %d-%d, the end of the file.)", from, last))
	}
	if long > 0 {
		notes = append(notes, fmt.Sprintf("(Long lines are cut at %d characters. To see more of line %d, read it alone: %s=%d, %s=1.)",
			readChars, long, r.names.offset, long, r.names.limit))
	}
	if s.verdict.Name != "UTF-8" {
		notes = append(notes, fmt.Sprintf("(The file is %s; edits keep that.)", s.verdict.Name))
	} else if p.bad {
		notes = append(notes, "(Some bytes are not UTF-8 and are shown as \uFFFD; edits elsewhere keep them.)")
	}
	if p.crlf {
		notes = append(notes, "(Lines end in CR LF; edits keep that.)")
	}
	return notes
}

// page reads from the given line on. total is the number of lines of the
// file, or 0 where counting them would mean reading much more.
func (r *room) page(ctx context.Context, s *source, from int, b bounds) (page, int, *abi.Result, error) {
	text := textfile.NewReader(s, s.verdict)
	found, rest, err := skip(ctx, text, from-1)
	if err != nil && !errors.Is(err, io.EOF) {
		return page{}, 0, nil, err
	}
	if err == nil {
		text = io.MultiReader(bytes.NewReader(rest), text)
	} else {
		text = bytes.NewReader(nil)
	}
	br := bufio.NewReaderSize(text, 64<<10)
	p, err := readPage(ctx, br, b)
	if err != nil {
		return page{}, 0, nil, err
	}
	if len(p.lines) == 0 {
		res := abi.Textf("%s is empty.", s.show)
		if found > 0 {
			res = abi.Errorf("%s %d is past the end of %s, which has %s. Valid values are 1 to %d.",
				r.names.offset, from, s.show, plural(found, "line"), found)
		} else if from > 1 {
			res = abi.Errorf("%s %d is past the end of %s: the file is empty.", r.names.offset, from, s.show)
		}
		if found == 0 { // a range past the end shows nothing of the file
			r.state.Saw(s.name, s.stamp())
		}
		return page{}, 0, &res, nil
	}
	total := from - 1 + len(p.lines)
	if p.more && s.size <= readWhole {
		n, err := countLines(ctx, br)
		if err != nil {
			return page{}, 0, nil, err
		}
		return p, total + p.extra + n, nil, nil
	}
	if p.more {
		total = 0
	}
	return p, total, nil, nil
}

func (r *room) badRange(offset, limit *int) *abi.Result {
	for _, v := range []struct {
		name string
		n    *int
	}{{r.names.offset, offset}, {r.names.limit, limit}} {
		if v.n != nil && *v.n < 1 {
			res := abi.Errorf("%s is %d, but must be 1 or more: lines are counted from 1.", v.name, *v.n)
			return &res
		}
	}
	return nil
}

func orEmpty(res *abi.Result) abi.Result {
	if res == nil {
		return abi.Result{}
	}
	return *res
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// cutChars keeps at most n characters.
func cutChars(b []byte, n int) []byte {
	if n == 0 || len(b) <= n {
		return b
	}
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, w := utf8.DecodeRune(b[at:])
		at += w
	}
	return b[:at]
}
