// Package files has the tools that read and change single files: Read, Write,
// Edit and ListDir, and the same three under the names and parameters of ACP
// clients, ReadFile, WriteFile and EditFile. There is one implementation; a
// dialect is a table of names.
//
// Every effect goes through reach.Tree with the rights of the call.
package files

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

//go:embed tools/*.md tools/*.json
var texts embed.FS

// Options say what the tools work on.
type Options struct {
	Tree *reach.Tree
	// ACP selects ReadFile, WriteFile and EditFile in place of Read, Write and
	// Edit. ListDir is made for both; a session of acp does not offer it.
	ACP bool
	// State remembers what was read. Nil: a Memory of these tools' own.
	State State
	// Cwd is the virtual folder that relative paths start from. Nil: "/ws".
	Cwd func() string
}

// names are the words of a dialect, for messages.
type names struct {
	read, write, edit      string // tools
	offset, limit          string // parameters
	old, new, all, outline string
	list, find, grep       string // how to list a folder, look for files, search in them
}

var (
	tinyelf = names{"Read", "Write", "Edit", "offset", "limit", "old_string", "new_string", "replace_all", "file_outline", "ListDir", "Glob or ListDir", "Grep"}
	fello   = names{"ReadFile", "WriteFile", "EditFile", "line", "limit", "oldText", "newText", "replaceAll", "file_outline", "search and its listFiles", "search and its listFiles", "search"}
)

// room is what the tools of one session share.
type room struct {
	tree   *reach.Tree
	reveal *reach.Tree // also shows where clipped outputs lie
	state  State
	cwd    func() string
	names  names
}

// Tools makes the tools of one session.
func Tools(o Options) []host.Tool {
	r := &room{tree: o.Tree, reveal: o.Tree.Reveal(), state: o.State, cwd: o.Cwd, names: tinyelf}
	if r.state == nil {
		r.state = new(Memory)
	}
	if r.cwd == nil {
		r.cwd = func() string { return "" }
	}
	if o.ACP {
		r.names = fello
	}
	reader := tool.Spec(texts, r.names.read, host.KindRead)
	reader.MaxOutput, reader.Parallel = -1, true
	list := tool.Spec(texts, "ListDir", host.KindRead)
	list.Parallel = true
	run := r.read
	if o.ACP {
		run = r.readRaw
	}
	return []host.Tool{
		&tool.Func{S: reader, Run: run},
		&tool.Func{S: tool.Spec(texts, r.names.write, host.KindEdit), Run: r.write},
		&tool.Func{S: tool.Spec(texts, r.names.edit, host.KindEdit), Run: r.edit},
		&tool.Func{S: list, Run: r.list},
	}
}

// target is a path argument, resolved.
type target struct {
	name string // virtual
	show string // as people and models are told
}

// locate resolves a path argument. cwd, where a dialect has it, is itself a
// path argument.
func (r *room) locate(p, cwd string) (target, error) {
	base := r.cwd()
	if cwd != "" {
		b, err := r.reveal.Virtual(base, cwd)
		if err != nil {
			return target{}, err
		}
		base = b
	}
	if p == "" {
		return target{}, errors.New("the path is empty")
	}
	if strings.IndexByte(p, 0) >= 0 {
		return target{}, fmt.Errorf("the path %q contains a NUL byte: %w", p, fs.ErrInvalid)
	}
	name, err := r.reveal.Virtual(base, p)
	if err != nil {
		return target{}, err
	}
	return target{name, r.reveal.Display(base, name)}, nil
}

// failure turns an error of a file operation into what the model is told.
// Denials and cancellations stay Go errors: Invoke knows what to add to them.
func (r *room) failure(ctx context.Context, c host.Call, p string, t target, err error) (abi.Result, error) {
	switch {
	case t.name == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, abi.ErrDenied)): // it has no place in the tree
		return abi.Errorf("%s is outside the workspace. Paths are relative to the workspace, or absolute inside it.", p), nil
	case errors.Is(err, abi.ErrDenied), ctx.Err() != nil:
		return abi.Result{}, err
	case errors.Is(err, fs.ErrNotExist):
		hint := r.near(ctx, c.Rights, t)
		if hint == "" {
			hint = " Look for it with " + r.names.find + "."
		}
		return abi.Errorf("%s does not exist.%s", t.show, hint), nil
	}
	if errors.Is(err, reach.ErrNotRegular) {
		return abi.Errorf("%s is %s. Only regular files and folders are opened here: reading or writing it could wait for ever or reach a device.", t.show, r.kind(ctx, c, t)), nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && t.show != "" {
		return abi.Result{}, fmt.Errorf("%s %q: %w", pe.Op, t.show, pe.Err)
	}
	return abi.Result{}, err
}

// stat describes a file, be it one that only an editor holds.
func (r *room) stat(ctx context.Context, rights policy.Rights, t target) (fs.FileInfo, error) {
	info, err := r.tree.Stat(ctx, rights, t.name)
	if errors.Is(err, fs.ErrNotExist) && r.tree.Editor != nil {
		if _, held, uerr := r.tree.Unsaved(ctx, rights, t.name); uerr == nil {
			return held, nil
		}
	}
	return info, err
}

// kind names what is neither a file nor a folder.
func (r *room) kind(ctx context.Context, c host.Call, t target) string {
	info, err := r.tree.Stat(ctx, c.Rights, t.name)
	switch {
	case err != nil:
	case info.Mode()&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case info.Mode()&fs.ModeSocket != 0:
		return "a socket"
	case info.Mode()&fs.ModeDevice != 0:
		return "a device"
	}
	return "neither a file nor a folder"
}

// open opens a regular file and says what it is when it is not one.
func (r *room) open(ctx context.Context, c host.Call, t target) (*reach.File, fs.FileInfo, *abi.Result, error) {
	f, err := r.reveal.Open(ctx, c.Rights, t.name, os.O_RDONLY, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, nil, err
	}
	if info.IsDir() {
		f.Close()
		res := abi.Errorf("%s is a folder. List it with %s.", t.show, r.names.list)
		return nil, nil, &res, nil
	}
	return f, info, nil, nil
}

func kb(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
