package search

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// filter says which files of a tree are looked at.
type filter struct {
	globs    []string // "*.go", "!vendor/**": a file must match one, and none with "!"
	iglobs   []string // the same, in either case
	types    []string // of the table of types
	notTypes []string
	hidden   bool // names with a leading dot too
	vcs      bool // .git and its like too
	noIgnore bool // no rules of ignore files
	noVCS    bool // none of .gitignore, but those of .ignore
	maxDepth int  // 0: no limit
}

// sieve is a compiled filter, with the rules of ignore files as it meets them.
type sieve struct {
	filter
	tree    *reach.Tree
	rights  policy.Rights
	ctx     context.Context
	only    []override
	typed   []*glob
	untyped []*glob
	global  *ignoreFile
	top     string // virtual folder that globs with a slash are relative to
	want    func(rel string) bool

	droppedFiles, droppedDirs atomic.Int64
}

// override is a glob of the filter.
type override struct {
	rule     ignoreRule
	excludes bool
}

func (r *room) sieve(ctx context.Context, rights policy.Rights, f filter, top string) (*sieve, error) {
	rights.Decide = nil // rules are read where that is allowed; nobody is asked
	s := &sieve{filter: f, tree: r.tree, rights: rights, ctx: ctx, top: top, global: r.global}
	for _, set := range []struct {
		globs []string
		fold  bool
	}{{f.globs, false}, {f.iglobs, true}} {
		for _, text := range set.globs {
			o := override{excludes: strings.HasPrefix(text, "!")}
			text = strings.TrimPrefix(text, "!")
			o.rule.dirOnly = strings.HasSuffix(text, "/")
			text = strings.TrimSuffix(text, "/")
			o.rule.byName = !strings.Contains(text, "/")
			g, err := compileGlob(strings.TrimPrefix(strings.TrimPrefix(text, "./"), "/"), globOptions{fold: set.fold})
			if err != nil {
				return nil, err
			}
			o.rule.glob = g
			s.only = append(s.only, o)
		}
	}
	var err error
	if s.typed, err = typeGlobs(f.types); err != nil {
		return nil, err
	}
	s.untyped, err = typeGlobs(f.notTypes)
	return s, err
}

var vcsDirs = map[string]bool{".git": true, ".hg": true, ".svn": true, ".jj": true}

// folder is the Folder callback of a walk: it reads the folder's rules and
// drops what they, and the filter, leave out.
func (s *sieve) folder(f *reach.Folder) error {
	rules := s.rules(f)
	f.State = rules
	keep := f.Entries[:0]
	for _, e := range f.Entries {
		if s.keeps(f, rules, e) {
			keep = append(keep, e)
		}
	}
	f.Entries = keep
	return nil
}

func (s *sieve) keeps(f *reach.Folder, rules *ignores, e reach.Entry) bool {
	dir := e.Type.IsDir()
	if !dir && !e.Type.IsRegular() {
		return false
	}
	if dir && (s.maxDepth > 0 && f.Depth+1 >= s.maxDepth || !s.vcs && vcsDirs[e.Name]) {
		return false
	}
	rel := s.rel(f.Name, e.Name)
	picked, decided := s.overridden(rel, e.Name, dir)
	if decided && !picked {
		return false
	}
	if !dir && (len(s.typed) > 0 && !anyMatch(s.typed, e.Name) || anyMatch(s.untyped, e.Name)) {
		return false
	}
	if decided && picked {
		return s.wanted(rel, dir)
	}
	if !s.hidden && e.Name[0] == '.' {
		return false
	}
	if !s.noIgnore && rules.ignored(f.Name, e.Name, dir) {
		if dir {
			s.droppedDirs.Add(1)
		} else if s.wanted(rel, false) {
			s.droppedFiles.Add(1)
		}
		return false
	}
	return s.wanted(rel, dir)
}

func (s *sieve) wanted(rel string, dir bool) bool { return dir || s.want == nil || s.want(rel) }

func (s *sieve) rel(dir, name string) string {
	if len(dir) == len(s.top) {
		return name
	}
	return strings.TrimPrefix(dir[min(len(dir), len(s.top)):], "/") + "/" + name
}

// overridden asks the filter's globs. The last that matches decides. A file
// that none matches is out when there is one that includes; a folder is not.
func (s *sieve) overridden(rel, name string, dir bool) (picked, decided bool) {
	includes := false
	for i := len(s.only) - 1; i >= 0; i-- {
		o := &s.only[i]
		includes = includes || !o.excludes
		if o.rule.dirOnly && !dir {
			continue
		}
		subject := rel
		if o.rule.byName {
			subject = name
		}
		if o.rule.glob.match(subject) {
			return !o.excludes, true
		}
	}
	return false, includes && !dir
}

func anyMatch(globs []*glob, name string) bool {
	for _, g := range globs {
		if g.match(name) {
			return true
		}
	}
	return false
}

// rules finds the ignore files among a folder's entries.
func (s *sieve) rules(f *reach.Folder) *ignores {
	if s.noIgnore {
		return nil
	}
	var parent *ignores
	if f.Parent != nil {
		parent, _ = f.Parent.State.(*ignores)
	} else {
		parent = s.above(f.Name)
	}
	var files []*ignoreFile
	for _, name := range ignoreNames(!s.noVCS, true) {
		for _, e := range f.Entries {
			if e.Name == name {
				files = s.add(files, f.Name+"/"+name)
			}
		}
	}
	for _, e := range f.Entries {
		if e.Name == ".git" && e.Type.IsDir() && !s.noVCS {
			files = s.add(files, f.Name+"/.git/info/exclude")
		}
	}
	if len(files) == 0 {
		return parent
	}
	return &ignores{parent: parent, dir: f.Name, files: files}
}

func (s *sieve) add(files []*ignoreFile, name string) []*ignoreFile {
	text, err := s.tree.ReadFile(s.ctx, s.rights, name, 1<<20)
	if err != nil {
		return files
	}
	if f := parseIgnore(string(text)); f != nil {
		files = append(files, f)
	}
	return files
}

// above collects the rules of the folders that a walk's root lies in, up to
// the mount, under the person's own.
func (s *sieve) above(dir string) *ignores {
	parts := strings.Split(strings.Trim(dir, "/"), "/")
	var stack *ignores
	if s.global != nil && !s.noVCS {
		stack = &ignores{dir: "/" + parts[0], files: []*ignoreFile{s.global}}
	}
	for i := 1; i < len(parts); i++ {
		at := "/" + path.Join(parts[:i]...)
		var files []*ignoreFile
		for _, name := range ignoreNames(!s.noVCS, true) {
			files = s.add(files, at+"/"+name)
		}
		if !s.noVCS {
			files = s.add(files, at+"/.git/info/exclude")
		}
		if len(files) > 0 {
			stack = &ignores{parent: stack, dir: at, files: files}
		}
	}
	return stack
}

// dropped says how much ignore rules left out; "" for nothing.
func (s *sieve) dropped() string {
	files, dirs := s.droppedFiles.Load(), s.droppedDirs.Load()
	switch {
	case files > 0 && dirs > 0:
		return fmt.Sprintf("%s and %s are hidden by ignore rules.", plural(files, "file"), plural(dirs, "folder"))
	case files > 0:
		return fmt.Sprintf("%s hidden by ignore rules.", isAre(files, "file"))
	case dirs > 0:
		return fmt.Sprintf("%s hidden by ignore rules.", isAre(dirs, "folder"))
	}
	return ""
}

func isAre(n int64, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return plural(n, what) + " are"
}

func plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// unreadable counts what a walk could not look into.
type unreadable struct {
	n     atomic.Int64
	first atomic.Pointer[string]
}

func (u *unreadable) note(name string, err error) {
	if u.n.Add(1) == 1 {
		text := err.Error()
		if pe, ok := err.(*fs.PathError); ok {
			text = fmt.Sprintf("%s: %v", pe.Path, pe.Err)
		}
		u.first.Store(&text)
	}
}
