// Package outline has file_outline: the declarations of a source file with
// their lines, nesting and comments, and the headings of Markdown.
//
// Parsers are not trusted with the host's memory. Tree-sitter's native ones
// (cgo) run in a worker process of the same program, which has no files, no
// network and bounded memory ([Child]); grammar packs ([Packs]) are WebAssembly
// modules and run in the sandbox. Where both know a language, the pack wins: a
// person installed it because it is newer. What a parser answers is checked
// like any other foreign bytes.
package outline

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/textfile"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// Options say what the tool works on.
type Options struct {
	Tree *reach.Tree
	// Cwd is the virtual folder that relative paths start from. Nil: "/ws".
	Cwd func() string
	// Self is the program whose first argument Verb leads to Child. Empty: there
	// is none, and the native parsers are not used.
	Self string
	// Packs are the grammars in the sandbox; nil: none. The tool does not close them.
	Packs *Packs
	// Timeout is how long one file may be parsed; 0 is 30 s.
	Timeout time.Duration
}

// Outline is the tool of one session with its worker. Nothing is started
// before the first file needs it. Close it.
type Outline struct {
	tree    *reach.Tree
	cwd     func() string
	timeout time.Duration
	worker  *worker // nil: none
	packs   *Packs
}

// New makes the tool of a session.
func New(o Options) *Outline {
	s := &Outline{tree: o.Tree, cwd: o.Cwd, timeout: o.Timeout, packs: o.Packs}
	if o.Self != "" {
		s.worker = newWorker(o.Self, o.Timeout)
	}
	if s.cwd == nil {
		s.cwd = func() string { return "" }
	}
	return s
}

// Tools gives file_outline.
func (o *Outline) Tools() []host.Tool {
	s := tool.Spec(texts, "file_outline", host.KindSearch)
	s.Parallel = true
	return []host.Tool{&tool.Func{S: s, Run: o.outline}}
}

// Close ends the worker, also in the middle of a file.
func (o *Outline) Close() error {
	if o.worker == nil {
		return nil
	}
	return o.worker.close()
}

type args struct {
	Path string `json:"path"`
	Cwd  string `json:"cwd"`
}

func (o *Outline) outline(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[args](c)
	if err != nil {
		return abi.Result{}, err
	}
	base := o.cwd()
	if a.Cwd != "" {
		if base, err = o.tree.Virtual(base, a.Cwd); err != nil {
			return failure(ctx, a.Cwd, err)
		}
	}
	name, err := o.tree.Virtual(base, a.Path)
	if err != nil {
		return failure(ctx, a.Path, err)
	}
	show := o.tree.Display(base, name)
	src, err := o.tree.ReadFile(ctx, c.Rights, name, maxSource)
	if errors.Is(err, abi.ErrTooLarge) {
		return o.tooLarge(ctx, c, name, show)
	}
	if err != nil {
		return failure(ctx, show, err)
	}
	v := textfile.Sniff(src, len(src) <= textfile.HeadSize)
	if !v.Text() {
		return abi.Errorf("%s is not text (%s): it has no outline.", show, v.Name), nil
	}
	var text bytes.Buffer
	if _, err := io.Copy(&text, textfile.NewReader(bytes.NewReader(src), v)); err != nil {
		return abi.Result{}, err
	}
	return o.describe(ctx, show, name, text.Bytes())
}

// describe makes the answer about a text.
func (o *Outline) describe(ctx context.Context, show, name string, src []byte) (abi.Result, error) {
	if path.Ext(name) == ".h" && looksLikeCPP(src) {
		name += "h" // .hh
	}
	l, parse := o.parser(name)
	p := page{file: show, language: "Unknown", lines: countLines(src)}
	if l == nil {
		return abi.Text(p.unsupported(path.Ext(name))), nil
	}
	p.language = l.name
	if parse == nil {
		return abi.Text(p.missing(l)), nil
	}
	r, err := parse(ctx, src)
	switch {
	case ctx.Err() != nil:
		return abi.Result{}, context.Cause(ctx)
	case err != nil:
		return abi.Text(p.failed(err.Error())), nil
	case r.Failed != "":
		return abi.Text(p.failed(r.Failed)), nil
	}
	return abi.Text(p.render(r)), nil
}

// parser finds the language of a file, and what parses it: a pack before the
// worker. Nil: nothing does.
func (o *Outline) parser(name string) (*language, func(context.Context, []byte) (reply, error)) {
	l := byPath(name)
	if g, ok := o.packs.find(strings.ToLower(path.Ext(name))); ok {
		return g.language(), func(ctx context.Context, src []byte) (reply, error) {
			return o.packs.parse(ctx, g, src, o.timeout)
		}
	}
	switch {
	case l == nil:
		return nil, nil
	case l.kinds == nil:
		return l, func(_ context.Context, src []byte) (reply, error) { return reply{Symbols: markdown(src)}, nil }
	case o.worker != nil && native(l.id):
		return l, func(ctx context.Context, src []byte) (reply, error) { return o.worker.parse(ctx, l.id, src) }
	}
	return l, nil
}

// tooLarge still answers what can be said without the text in memory.
func (o *Outline) tooLarge(ctx context.Context, c host.Call, name, show string) (abi.Result, error) {
	f, err := o.tree.Open(ctx, c.Rights, name, os.O_RDONLY, 0)
	if err != nil {
		return failure(ctx, show, err)
	}
	defer f.Close()
	p := page{file: show, language: "Unknown"}
	if l, _ := o.parser(name); l != nil {
		p.language = l.name
	}
	buf := make([]byte, 256<<10)
	last := byte('\n')
	for {
		n, err := f.Read(buf)
		p.lines += bytes.Count(buf[:n], []byte{'\n'})
		if n > 0 {
			last = buf[n-1]
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return failure(ctx, show, err)
		}
	}
	if last != '\n' {
		p.lines++
	}
	return abi.Text(p.failed(fmt.Sprintf("the file is over the %d MB that are parsed", maxSource>>20))), nil
}

// failure is what the model is told when a file cannot be read. Denials and
// cancellations stay Go errors: Invoke knows what to add to them.
func failure(ctx context.Context, show string, err error) (abi.Result, error) {
	switch {
	case errors.Is(err, abi.ErrDenied), ctx.Err() != nil:
		return abi.Result{}, err
	case errors.Is(err, fs.ErrNotExist):
		return abi.Errorf("%s does not exist in the workspace. Find the file with Glob.", show), nil
	case errors.Is(err, reach.ErrNotRegular):
		return abi.Errorf("%s is a pipe, a socket or a device. Only regular files are parsed.", show), nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		if errors.Is(err, syscall.EISDIR) || pe.Err.Error() == "is a directory" {
			return abi.Errorf("%s is a folder. List it with ListDir.", show), nil
		}
		return abi.Result{}, fmt.Errorf("%s %q: %w", pe.Op, show, pe.Err)
	}
	return abi.Result{}, err
}

func countLines(src []byte) int {
	n := bytes.Count(src, []byte{'\n'})
	if len(src) > 0 && !strings.HasSuffix(string(src[len(src)-1:]), "\n") {
		n++
	}
	return n
}
