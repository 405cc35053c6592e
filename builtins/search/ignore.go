package search

import (
	"path"
	"strings"
)

// ignoreFile is the rules of one ignore file, in the form of gitignore(5).
// They are about names below the folder that the file lies in.
type ignoreFile struct {
	rules []ignoreRule
}

type ignoreRule struct {
	glob    *glob
	negated bool
	dirOnly bool
	byName  bool // the pattern has no slash: it is about the last component
}

// maxRules bounds one ignore file.
const maxRules = 20_000

func parseIgnore(text string) *ignoreFile {
	f := &ignoreFile{}
	for _, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if r, ok := parseRule(strings.TrimSuffix(line, "\r")); ok && len(f.rules) < maxRules {
			f.rules = append(f.rules, r)
		}
	}
	if len(f.rules) == 0 {
		return nil
	}
	return f
}

func parseRule(line string) (r ignoreRule, ok bool) {
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return r, false
	}
	if line[0] == '!' {
		r.negated, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, strings.TrimRight(line, "/")
	}
	if line == "" {
		return r, false
	}
	r.byName = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	g, err := compileGlob(line, globOptions{noBraces: true})
	if err != nil {
		return r, false
	}
	r.glob = g
	return r, true
}

type outcome int

const (
	undecided outcome = iota
	ignored
	kept
)

// match asks about a path relative to the file's folder. The last rule that
// matches decides.
func (f *ignoreFile) match(rel string, name string, dir bool) outcome {
	for i := len(f.rules) - 1; i >= 0; i-- {
		r := &f.rules[i]
		if r.dirOnly && !dir {
			continue
		}
		subject := rel
		if r.byName {
			subject = name
		}
		if r.glob.match(subject) {
			if r.negated {
				return kept
			}
			return ignored
		}
	}
	return undecided
}

// ignores are the rules in force in one folder: its own, then those of the
// folders above. A folder's files outrank those of its parents; in one folder
// .ignore outranks .gitignore, and that .git/info/exclude and the person's own.
type ignores struct {
	parent *ignores
	dir    string // virtual path
	files  []*ignoreFile
}

// ignored asks about a name in the folder dir.
func (s *ignores) ignored(dir, name string, isDir bool) bool {
	full := path.Join(dir, name)
	for ; s != nil; s = s.parent {
		if len(s.files) == 0 {
			continue
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(full, s.dir), "/")
		for _, f := range s.files {
			switch f.match(rel, name, isDir) {
			case ignored:
				return true
			case kept:
				return false
			}
		}
	}
	return false
}

// ignoreNames are the files that hold rules, strongest first.
func ignoreNames(git, dot bool) []string {
	var names []string
	if dot {
		names = append(names, ".rgignore", ".ignore")
	}
	if git {
		names = append(names, ".gitignore")
	}
	return names
}
