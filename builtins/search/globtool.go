package search

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// globResults is how many names Glob shows.
const globResults = 500

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (r *room) glob(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[globArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	from, base, err := r.folder(a.Path, "")
	if err != nil {
		return failure(ctx, a.Path, err)
	}
	if a.Path != "" {
		if _, err := r.tree.Stat(ctx, c.Rights, from); err != nil {
			return failure(ctx, a.Path, err)
		}
	}
	if len(a.Pattern) > maxGlob {
		return abi.Errorf("The glob is %d bytes long; at most %d are allowed.", len(a.Pattern), maxGlob), nil
	}
	patterns, err := expandBraces(a.Pattern, maxBraces)
	if err != nil {
		return abi.Errorf("%s", sentence(err.Error())), nil
	}
	l := &lister{room: r, ctx: ctx, call: c, base: from, seen: make(map[string]bool)}
	if err := l.all(patterns); err != nil {
		return failure(ctx, a.Path, err)
	}
	return l.result(func(n string) string { return r.tree.Display(base, n) }), nil
}

// lister collects the names that some patterns match.
type lister struct {
	*room
	ctx  context.Context
	call host.Call
	base string // virtual folder that the patterns are relative to

	mu      sync.Mutex
	names   []named
	seen    map[string]bool
	refused []string // patterns that lead out of the workspace
	dropped []string
	skipped unreadable
}

type named struct {
	name string
	time time.Time
}

// all runs the alternatives of a pattern. Those that begin in the same folder
// share one walk.
func (l *lister) all(patterns []string) error {
	walks := make(map[string][]string)
	var order []string
	for _, p := range patterns {
		root, rest, err := l.split(p)
		if err != nil {
			l.refused = append(l.refused, p)
			continue
		}
		if rest == "" {
			if err := l.exact(root); err != nil {
				return err
			}
			continue
		}
		if walks[root] == nil {
			order = append(order, root)
		}
		walks[root] = append(walks[root], rest)
	}
	for _, root := range order {
		if err := l.walk(root, walks[root]); err != nil {
			return err
		}
	}
	return nil
}

var errOutside = errors.New("it leads out of the workspace")

// split divides a pattern into the folder that it begins in and the rest,
// which has the first wildcard. A pattern with ".." after a wildcard leads
// nowhere that a walk goes.
func (l *lister) split(p string) (root, rest string, err error) {
	parts := splitGlob(p)
	n := 0
	for n < len(parts) && !strings.ContainsAny(parts[n], "*?[") {
		n++
	}
	for _, part := range parts[n:] {
		if part == ".." {
			return "", "", errOutside
		}
	}
	fixed := strings.ReplaceAll(strings.Join(parts[:n], "/"), `\`, "")
	if n > 0 && fixed == "" {
		fixed = "/"
	}
	if fixed == "" {
		fixed = "."
	}
	root, err = l.tree.Virtual(l.base, fixed)
	if err != nil {
		return "", "", errOutside
	}
	return root, strings.Join(parts[n:], "/"), nil
}

// exact finds a path without wildcards, whatever the ignore rules say.
func (l *lister) exact(name string) error {
	info, err := l.tree.Stat(l.ctx, l.call.Rights, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	l.add(name, info)
	return nil
}

func (l *lister) add(name string, info fs.FileInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[name] {
		l.seen[name] = true
		l.names = append(l.names, named{name, info.ModTime()})
	}
}

func (l *lister) walk(root string, rests []string) error {
	if info, err := l.tree.Stat(l.ctx, l.call.Rights, root); err != nil || !info.IsDir() {
		if errors.Is(err, fs.ErrNotExist) || err == nil {
			return nil
		}
		return err
	}
	var globs []*glob
	depth := 0
	for _, rest := range rests {
		g, err := compileGlob(rest, globOptions{noBraces: true})
		if err != nil {
			return err
		}
		globs = append(globs, g)
		depth = max(depth, reachOf(rest))
	}
	want := func(rel string) bool {
		for _, g := range globs {
			if g.match(rel) {
				return true
			}
		}
		return false
	}
	s, err := l.sieve(l.ctx, l.call.Rights, filter{hidden: true, maxDepth: depth}, root)
	if err != nil {
		return err
	}
	s.want = want
	err = l.tree.Walk(l.ctx, l.call.Rights, root, reach.Walk{
		Folder: s.folder,
		File: func(f *reach.Folder, e reach.Entry) error {
			info, err := f.Info(e.Name)
			if err == nil {
				l.add(f.Name+"/"+e.Name, info)
			}
			return l.ctx.Err()
		},
		Skipped: l.skipped.note,
	})
	if d := s.dropped(); d != "" {
		l.dropped = append(l.dropped, d)
	}
	return err
}

// reachOf is how many folders deep a pattern can match; 0 is no limit.
func reachOf(rest string) int {
	parts := splitGlob(rest)
	for _, p := range parts {
		if p == "**" {
			return 1 << 30
		}
	}
	return len(parts)
}

func (l *lister) result(display func(string) string) abi.Result {
	var notes []string
	if len(l.refused) > 0 {
		notes = append(notes, fmt.Sprintf("%s leads out of the workspace and was not followed.", path.Clean(l.refused[0])))
	}
	for _, d := range l.dropped {
		notes = append(notes, sentence(d))
	}
	if n := l.skipped.n.Load(); n > 0 {
		notes = append(notes, fmt.Sprintf("%s could not be read (%s).", plural(n, "name"), *l.skipped.first.Load()))
	}
	if len(l.names) == 0 {
		return abi.Text(strings.Join(append([]string{"No files match."}, notes...), " "))
	}
	sort.Slice(l.names, func(i, j int) bool {
		a, b := l.names[i], l.names[j]
		if !a.time.Equal(b.time) {
			return a.time.After(b.time)
		}
		return a.name < b.name
	})
	var b strings.Builder
	for _, n := range l.names[:min(len(l.names), globResults)] {
		b.WriteString(clean([]byte(display(n.name))))
		b.WriteByte('\n')
	}
	sum := plural(len(l.names), "file") + ", newest first."
	if len(l.names) > globResults {
		sum = fmt.Sprintf("The newest %d of %d files. Narrow the pattern to see others.", globResults, len(l.names))
	}
	b.WriteString("\n" + strings.Join(append([]string{sum}, notes...), " "))
	return abi.Text(b.String())
}
