// Package search has the tools that find files and text in them: Glob and
// Grep, and the search and rg of Fello's Search server. One engine serves all:
// RE2 expressions, files read in parallel, ignore rules as git and ripgrep
// have them. Patterns are data: nothing in them is an option, and no program
// is ever started.
package search

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
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
	// Cwd is the virtual folder that relative paths start from. Nil: "/ws".
	Cwd func() string
	// GlobalIgnore is the text of the person's own ignore file, which git calls
	// core.excludesFile.
	GlobalIgnore string
}

// room is what the tools of one session share.
type room struct {
	tree   *reach.Tree
	cwd    func() string
	global *ignoreFile
}

// Tools makes Glob, Grep, search and rg.
func Tools(o Options) []host.Tool {
	r := &room{tree: o.Tree, cwd: o.Cwd, global: parseIgnore(o.GlobalIgnore)}
	if r.cwd == nil {
		r.cwd = func() string { return "" }
	}
	make := func(name string, run func(context.Context, host.Call) (abi.Result, error)) host.Tool {
		s := tool.Spec(texts, name, host.KindSearch)
		s.Parallel = true
		return &tool.Func{S: s, Run: run}
	}
	return []host.Tool{
		make("Glob", r.glob), make("Grep", r.grep), make("search", r.search), make("rg", r.rg),
	}
}

// folder resolves a path argument and what it is relative to. The empty path
// is the folder itself.
func (r *room) folder(p, cwd string) (name, base string, err error) {
	base = r.cwd()
	if cwd != "" {
		if base, err = r.tree.Virtual(base, cwd); err != nil {
			return "", "", err
		}
	}
	if base == "" {
		if base, err = r.tree.Virtual("", "."); err != nil {
			return "", "", err
		}
	}
	if p == "" {
		p = "."
	}
	name, err = r.tree.Virtual(base, p)
	return name, base, err
}

// failure is what the model is told when a search could not begin.
func failure(ctx context.Context, p string, err error) (abi.Result, error) {
	switch {
	case strings.Contains(p, "..") && outside(err):
		return abi.Errorf("%s is outside the workspace. Only what is in the workspace is searched: paths are relative to it, or absolute inside it.", p), nil
	case errors.Is(err, abi.ErrDenied), ctx.Err() != nil:
		return abi.Result{}, err
	case errors.Is(err, fs.ErrNotExist):
		if p == "" {
			p = "The folder"
		}
		if filepath.IsAbs(p) || strings.HasPrefix(p, "file:") {
			return abi.Errorf("%s does not exist, or is outside the workspace. Only what is in the workspace is searched: paths are relative to it, or absolute inside it.", p), nil
		}
		return abi.Errorf("%s does not exist in the workspace.", p), nil
	case errors.Is(err, reach.ErrNotRegular):
		return abi.Errorf("%s is a pipe, a socket or a device. Only regular files and folders are searched.", p), nil
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return abi.Result{}, fmt.Errorf("%s %q: %w", pe.Op, p, pe.Err)
	}
	return abi.Errorf("%s", sentence(err.Error())), nil
}

// outside reports a relative path that climbs out of the workspace.
func outside(err error) bool {
	d, ok := errors.AsType[*policy.Denial](err)
	return ok && d.Layer == "files"
}

// sentence gives a clause a capital and a period.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if c := s[0]; 'a' <= c && c <= 'z' {
		s = string(c-'a'+'A') + s[1:]
	}
	if last := s[len(s)-1]; last != '.' && last != '!' && last != '?' {
		s += "."
	}
	return s
}
