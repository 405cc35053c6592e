package files

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// The limits of ReadFile.
const (
	rawWhole = 100 << 10 // larger files need a range, or force
	rawMost  = 64 << 20  // of one answer: what the host is ready to hold in memory
)

type readRawArgs struct {
	Path  string `json:"path"`
	Line  *int   `json:"line"`
	Limit *int   `json:"limit"`
	Cwd   string `json:"cwd"`
	Force bool   `json:"force"`
}

// readRaw is ReadFile: the text as it is, without numbers.
func (r *room) readRaw(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[readRawArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	if bad := r.badRange(a.Line, a.Limit); bad != nil {
		return *bad, nil
	}
	t, err := r.locate(a.Path, a.Cwd)
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
	if a.Line != nil || a.Limit != nil {
		return r.rawRange(ctx, s, a)
	}
	switch {
	case s.size > rawWhole && !a.Force:
		return abi.Errorf("%s is %s, over the 100 KB that are read whole. Look at its structure with file_outline first, then read the part you need with line and limit, or set force=true.",
			t.show, kb(s.size)), nil
	case s.size > rawMost:
		return abi.Errorf("%s is %s, more than fits into one answer even with force (64 MB). Read a part of it with line and limit.", t.show, kb(s.size)), nil
	}
	var out strings.Builder
	if _, err := io.Copy(&out, textfile.NewReader(io.LimitReader(s, rawMost), s.verdict)); err != nil {
		return abi.Result{}, err
	}
	r.state.Saw(s.name, s.stamp())
	if out.Len() == 0 {
		return abi.Textf("%s is empty.", t.show), nil
	}
	return r.raw(s, out.String()), nil
}

func (r *room) rawRange(ctx context.Context, s *source, a readRawArgs) (abi.Result, error) {
	from := 1
	if a.Line != nil {
		from = *a.Line
	}
	text := textfile.NewReader(s, s.verdict)
	found, rest, err := skip(ctx, text, from-1)
	if err != nil && err != io.EOF {
		return abi.Result{}, err
	}
	br := bufio.NewReaderSize(io.MultiReader(strings.NewReader(string(rest)), text), 64<<10)
	if _, peek := br.Peek(1); err == io.EOF || peek == io.EOF && found > 0 {
		return abi.Errorf("line %d is past the end of %s, which has %s.", from, s.show, plural(found, "line")), nil
	}
	var out strings.Builder
	for n := 0; a.Limit == nil || n < *a.Limit; n++ {
		part, err := br.ReadSlice('\n')
		for err == bufio.ErrBufferFull && out.Len() < rawMost && ctx.Err() == nil {
			out.Write(part)
			part, err = br.ReadSlice('\n')
		}
		out.Write(part)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && out.Len() > rawMost {
			err = fmt.Errorf("the lines asked for are over 64 MB: ask for fewer with limit: %w", abi.ErrTooLarge)
		}
		if err != nil {
			return abi.Result{}, err
		}
	}
	r.state.Saw(s.name, s.stamp())
	if out.Len() == 0 {
		return abi.Textf("%s is empty.", s.show), nil
	}
	return r.raw(s, out.String()), nil
}

// raw answers with the text alone in its first block; a remark about the
// encoding comes in a second one.
func (r *room) raw(s *source, text string) abi.Result {
	clean := strings.ToValidUTF8(text, "\uFFFD")
	res := abi.Text(clean)
	switch {
	case s.verdict.Name != "UTF-8":
		res.Content = append(res.Content, abi.TextBlock(fmt.Sprintf("(The file is %s; edits keep that.)", s.verdict.Name)))
	case clean != text:
		res.Content = append(res.Content, abi.TextBlock("(Some bytes are not UTF-8 and are shown as \uFFFD; edits elsewhere keep them.)"))
	}
	return res
}
