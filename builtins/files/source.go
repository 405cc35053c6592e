package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/host"
)

// source is a text file that is open for reading.
type source struct {
	target
	io.Reader
	io.Closer
	size    int64
	verdict textfile.Verdict
	info    fs.FileInfo
	sum     func() []byte // the whole content, for small files; else nil
}

// stamp is what the session remembers of the file.
func (s *source) stamp() Stamp { return stamp(s.info, s.sum()) }

// source opens a file and looks at its head. A Result in place of a source
// is the answer: an image, or why the file cannot be shown.
func (r *room) source(ctx context.Context, c host.Call, t target) (*source, *abi.Result, error) {
	f, info, res, err := r.open(ctx, c, t)
	if errors.Is(err, fs.ErrNotExist) && r.tree.Editor != nil {
		return r.unsaved(ctx, c, t, err)
	}
	if err != nil || res != nil {
		return nil, res, err
	}
	s := &source{target: t, Closer: f, size: info.Size(), info: info}
	var at io.ReaderAt = f
	var whole []byte
	if s.size <= hashMax {
		// Small enough to hold; an editor may also hold a newer text than the disk.
		if whole, err = r.reveal.ReadFile(ctx, c.Rights, t.name, 2*hashMax); err != nil {
			f.Close()
			return nil, nil, err
		}
		at, s.size = bytes.NewReader(whole), int64(len(whole))
	}
	s.sum = func() []byte { return whole }
	head := make([]byte, textfile.HeadSize)
	n, err := at.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		f.Close()
		return nil, nil, err
	}
	s.verdict = textfile.Sniff(head[:n], int64(n) == s.size)
	if !s.verdict.Text() {
		defer f.Close()
		res, err := r.notText(s, at)
		return nil, &res, err
	}
	s.Reader = io.NewSectionReader(at, 0, 1<<62)
	return s, nil, nil
}

// unsaved is the source of a file that only an editor holds, or missing.
func (r *room) unsaved(ctx context.Context, c host.Call, t target, missing error) (*source, *abi.Result, error) {
	text, info, err := r.tree.Unsaved(ctx, c.Rights, t.name)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing
	}
	if err != nil {
		return nil, nil, err
	}
	s := &source{target: t, Closer: io.NopCloser(nil), size: info.Size(), info: info, verdict: textfile.Sniff(text, true), sum: func() []byte { return text }}
	at := bytes.NewReader(text)
	if !s.verdict.Text() {
		res, err := r.notText(s, at)
		return nil, &res, err
	}
	s.Reader = at
	return s, nil, nil
}

func (r *room) notText(s *source, at io.ReaderAt) (abi.Result, error) {
	v := s.verdict
	switch {
	case v.MIME != "" && s.size > imageLimit:
		return abi.Errorf("%s is a %s of %s, more than the 5 MB that can be shown. ImageAnalysis can describe it.", s.show, v.Name, kb(s.size)), nil
	case v.MIME != "":
		data := make([]byte, s.size)
		if _, err := at.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
			return abi.Result{}, err
		}
		r.state.Saw(s.name, s.stamp())
		return abi.Result{Content: []abi.Content{
			abi.TextBlock(fmt.Sprintf("%s: %s, %s.", s.show, v.Name, kb(s.size))),
			{Type: abi.TypeImage, Data: data, MIMEType: v.MIME},
		}}, nil
	case v.Encoding == textfile.Legacy:
		from := "CHARSET"
		if !strings.Contains(v.Name, " ") {
			from = v.Name
		}
		return abi.Errorf("%s looks like text in %s. Only UTF-8 and UTF-16 can be read and edited. Convert it first, for example with iconv -f %s -t UTF-8.", s.show, v.Name, from), nil
	}
	return abi.Errorf("%s is not text: %s, %s. It cannot be shown.", s.show, v.Name, kb(s.size)), nil
}
