package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// writeDiff is the largest text, old or new, of which Write shows a diff.
const writeDiff = 256 << 10

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Cwd     string `json:"cwd"`
}

func (r *room) write(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[writeArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	t, err := r.locate(a.Path, a.Cwd)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	old, err := r.existing(ctx, c, t)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	if old.refusal != "" {
		return abi.Errorf("%s", old.refusal), nil
	}
	raw := textfile.Encode([]byte(strings.TrimPrefix(a.Content, "\ufeff")), old.verdict)
	if !old.verdict.BOM {
		raw = textfile.Encode([]byte(a.Content), old.verdict)
	}
	info, err := r.tree.WriteFile(ctx, c.Rights, t.name, bytes.NewReader(raw), reach.WriteOptions{Parents: true, Before: old.unchanged(t)})
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	r.state.Saw(t.name, stampWritten(info, raw))
	return abi.Text(written(t, old, a.Content)), nil
}

// earlier is the file that a Write replaces. info is nil where there is none.
type earlier struct {
	info    fs.FileInfo
	text    []byte // UTF-8; nil when it is not text or too large to show
	verdict textfile.Verdict
	refusal string
}

// existing looks at what a Write would replace. Where fs.read is not granted
// the file counts as never read.
func (r *room) existing(ctx context.Context, c host.Call, t target) (earlier, error) {
	quiet := c.Rights
	quiet.Decide = nil
	info, err := r.stat(ctx, quiet, t)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, abi.ErrDenied):
		return earlier{}, nil
	case err != nil:
		return earlier{}, err
	case info.IsDir():
		return earlier{refusal: fmt.Sprintf("%s is a folder, so no file can be written there.", t.show)}, nil
	}
	old := earlier{info: info}
	seen, known := r.state.Seen(t.name)
	now := stamp(info, nil)
	if info.Size() <= hashMax {
		if raw, err := r.tree.ReadFile(ctx, quiet, t.name, 2*hashMax); err == nil {
			now = stamp(info, raw)
			v := textfile.Sniff(raw, true)
			if v.Text() && len(raw) > 0 {
				if old.text, err = textfile.Decode(raw, v); err == nil {
					old.verdict = v
				}
			}
		}
	}
	if known && !seen.same(now) {
		old.refusal = fmt.Sprintf("%s changed on disk since it was read. Read it again with %s, so that nobody's change is lost, then write it.", t.show, r.names.read)
	}
	return old, nil
}

// unchanged refuses to replace a file that changed after it was looked at.
func (e earlier) unchanged(t target) func(fs.FileInfo) error {
	if e.info == nil {
		return nil
	}
	return func(now fs.FileInfo) error {
		if now != nil && (now.Size() != e.info.Size() || !now.ModTime().Equal(e.info.ModTime())) {
			return fmt.Errorf("%s changed while it was written; nothing was written: read it again", t.show)
		}
		return nil
	}
}

// written says what a Write did.
func written(t target, old earlier, content string) string {
	var b strings.Builder
	lines := strings.Count(content, "\n")
	if content != "" && !strings.HasSuffix(content, "\n") {
		lines++
	}
	verb := "Created"
	if old.info != nil {
		verb = "Replaced"
	}
	fmt.Fprintf(&b, "%s %s: %s, %s.", verb, t.show, plural(lines, "line"), kb(int64(len(content))))
	if old.verdict.Wide() || old.verdict.BOM {
		fmt.Fprintf(&b, " The file stays %s.", old.verdict.Name)
	}
	if old.verdict.CRLF && !strings.Contains(content, "\r\n") && lines > 0 {
		b.WriteString(" Its lines ended in CR LF before and end in LF now.")
	}
	switch {
	case old.text == nil || len(old.text) > writeDiff || len(content) > writeDiff || !utf8.Valid(old.text):
	case string(old.text) == content:
		b.WriteString(" The content is the same as before.")
	default:
		name := t.show
		fmt.Fprintf(&b, "\n\n--- %s\n+++ %s\n%s", name, name, hunks(old.text, []byte(content), 1, 1))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
