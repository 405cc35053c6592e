package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// The limits of Edit.
const (
	editMost    = 512 << 20 // of a file: it is held in memory
	editMatches = 1_000_000
	editListed  = 100 // places named when an edit is ambiguous
)

// editArgs has the parameters of both dialects; a schema lets one set through.
type editArgs struct {
	Path       string `json:"path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`

	OldText  string `json:"oldText"`
	NewText  string `json:"newText"`
	Every    bool   `json:"replaceAll"`
	Cwd      string `json:"cwd"`
	old, new []byte
	all      bool
}

func (r *room) edit(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[editArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	a.old, a.new, a.all = []byte(a.OldString+a.OldText), []byte(a.NewString+a.NewText), a.ReplaceAll || a.Every
	if len(a.old) == 0 {
		return abi.Errorf("%s is empty, so there is nothing to find. To make a new file or replace a whole one, use %s.", r.names.old, r.names.write), nil
	}
	if bytes.Equal(a.old, a.new) {
		return abi.Errorf("%s and %s are the same; nothing would change.", r.names.old, r.names.new), nil
	}
	t, err := r.locate(a.Path, a.Cwd)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	if res, err := r.editLarge(ctx, c, t, a); res != nil || err != nil {
		if err != nil {
			return r.failure(ctx, c, a.Path, t, err)
		}
		return *res, nil
	}
	d, res, err := r.load(ctx, c, t)
	if err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	if res != nil {
		return *res, nil
	}
	if res, err = r.apply(ctx, c, d, a); err != nil {
		return r.failure(ctx, c, a.Path, t, err)
	}
	return *res, nil
}

// document is a whole text file in memory.
type document struct {
	target
	text    []byte // UTF-8 without a mark
	raw     []byte // as on disk
	verdict textfile.Verdict
	info    fs.FileInfo
}

// load reads the file that an edit is about, and refuses what may not be
// edited: folders, what is not text, and what was not read or changed since.
func (r *room) load(ctx context.Context, c host.Call, t target) (*document, *abi.Result, error) {
	info, err := r.stat(ctx, c.Rights, t)
	if err != nil {
		return nil, nil, err
	}
	refuse := func(format string, args ...any) (*document, *abi.Result, error) {
		res := abi.Errorf(format, args...)
		return nil, &res, nil
	}
	if info.IsDir() {
		return refuse("%s is a folder. List it with %s.", t.show, r.names.list)
	}
	seen, known := r.state.Seen(t.name)
	if !known {
		return refuse("%s was not read in this session. Read it with %s first, then edit it.", t.show, r.names.read)
	}
	raw, err := r.tree.ReadFile(ctx, c.Rights, t.name, editMost)
	if errors.Is(err, abi.ErrTooLarge) {
		return refuse("%s is %s. Files over 512 MB cannot be edited in place.", t.show, kb(info.Size()))
	}
	if err != nil {
		return nil, nil, err
	}
	if !seen.same(stamp(info, raw)) {
		return refuse("%s changed on disk since it was read. Read it again with %s, then edit it.", t.show, r.names.read)
	}
	d := &document{target: t, raw: raw, info: info, verdict: textfile.Sniff(raw, true)}
	if !d.verdict.Text() {
		return refuse("%s cannot be edited: it is %s. Only UTF-8 and UTF-16 text can.", t.show, d.verdict.Name)
	}
	if d.text, err = textfile.Decode(raw, d.verdict); err != nil {
		return refuse("%s cannot be edited without damage: %s.", t.show, err)
	}
	return d, nil, nil
}

// apply finds, replaces and saves.
func (r *room) apply(ctx context.Context, c host.Call, d *document, a editArgs) (*abi.Result, error) {
	limit := editListed
	if a.all {
		limit = editMatches
	}
	at := find(fold(d.text), a.old, limit)
	var res abi.Result
	switch {
	case len(at) == 0:
		res = abi.Errorf("%s", notFound(d.text, a.old, r.names))
		return &res, nil
	case len(at) > 1 && !a.all:
		more := ""
		if len(at) == limit {
			more = " or more"
		}
		res = abi.Errorf("%s occurs %d%s times in %s, at lines %s. The file is unchanged. Add lines before or after to make it unique, or set %s to change all.",
			r.names.old, len(at), more, d.show, join(linesOf(d.text, at)), r.names.all)
		return &res, nil
	case len(at) == editMatches:
		res = abi.Errorf("%s occurs more than a million times in %s. The file is unchanged.", r.names.old, d.show)
		return &res, nil
	}
	parts, put := replace(d.text, at, a.new)
	if unchanged(d.text, at, parts) {
		res = abi.Errorf("%s and %s differ only in line ends, and the file keeps its own; nothing would change.", r.names.old, r.names.new)
		return &res, nil
	}
	if err := r.save(ctx, c, d, parts); err != nil {
		return nil, err
	}
	lines := linesOf(d.text, at)
	where := fmt.Sprintf("at line %s", join(lines))
	if len(at) > 1 {
		where = fmt.Sprintf("in %d places, at lines %s", len(at), join(lines))
	}
	res = abi.Textf("Edited %s %s.\n\n%s", d.show, where, diffOf(d.show, d.text, parts, at, put, lines[0]))
	return &res, nil
}

// diffOf shows a change without putting the whole new text together: only the
// surroundings of what changed matter. first is the line of the first change.
func diffOf(name string, text []byte, parts [][]byte, at, put []span, first int) string {
	from := backward(text, at[0].from, diffContext+1)
	to := forward(text, at[len(at)-1].to, diffContext+1)
	shift := func(list []span) []span {
		out := make([]span, len(list))
		for i, s := range list {
			out[i] = span{s.from - from, s.to - from}
		}
		return out
	}
	near := bytes.Join(append([][]byte{text[from:at[0].from]}, parts[1:len(parts)-1]...), nil)
	near = append(near, text[at[len(at)-1].to:to]...)
	before := first - bytes.Count(text[from:at[0].from], []byte{'\n'})
	return diffAt(name, text[from:to], near, shift(at), shift(put), before)
}

// save replaces the file, unless it is no longer the one that was read.
func (r *room) save(ctx context.Context, c host.Call, d *document, parts [][]byte) error {
	raw, size := encode(parts, d.verdict)
	pieces := make([]reach.Piece, len(raw))
	for i := range raw {
		pieces[i].Data = raw[i]
	}
	info, err := r.tree.WriteFile(ctx, c.Rights, d.name, reach.Pieces(pieces...), reach.WriteOptions{Before: stillThere(d.target, d.info)})
	if err != nil {
		return err
	}
	var whole []byte // for the sum, which only small files have
	if size <= hashMax {
		whole = bytes.Join(raw, nil)
	}
	r.state.Saw(d.name, stampWritten(info, whole))
	return nil
}

// stillThere refuses to replace a file that is no longer the one that was read.
func stillThere(t target, was fs.FileInfo) func(fs.FileInfo) error {
	return func(now fs.FileInfo) error {
		if now == nil {
			return fmt.Errorf("%s was removed while it was edited; nothing was written: read it again", t.show)
		}
		if now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
			return fmt.Errorf("%s changed while it was edited; nothing was written: read it again", t.show)
		}
		return nil
	}
}

// encode gives the parts the file's encoding.
func encode(parts [][]byte, v textfile.Verdict) (raw [][]byte, size int) {
	if v.Wide() {
		parts = [][]byte{textfile.Encode(bytes.Join(parts, nil), v)}
	} else if v.BOM {
		parts = append([][]byte{textfile.Encode(nil, v)}, parts...)
	}
	for _, p := range parts {
		size += len(p)
	}
	return parts, size
}
