package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Outside returns the paths in the command that lie outside root, as written,
// when it starts in cwd (root when empty). Both are folders of the host. It is
// lexical: links are the file broker's and the kernel's business. A folder
// that a cd could not be followed into is named "cd".
func (c *Command) Outside(root, cwd string) []string {
	if cwd == "" {
		cwd = root
	}
	var out []string
	seen := map[string]bool{}
	add := func(s string) {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for i := range c.Segments {
		g := &c.Segments[i]
		if g.lost {
			add("cd")
		}
		for _, d := range g.dirs {
			dir := absolute(cwd, d)
			if !inside(root, dir) {
				add(d)
			}
			for _, p := range g.paths() {
				if strings.HasPrefix(p, "~") || !harmless(p) && !inside(root, absolute(dir, p)) {
					add(p)
				}
			}
		}
	}
	return out
}

func absolute(dir, p string) string {
	if path.IsAbs(p) || filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(dir, p)
}

func inside(root, p string) bool {
	rel, err := filepath.Rel(filepath.Clean(root), p)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func harmless(p string) bool {
	switch p {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/zero", "/dev/urandom", "/dev/tty":
		return true
	}
	return strings.HasPrefix(p, "/dev/fd/")
}

// paths are the words that name files, the program aside.
func (g *Segment) paths() []string {
	out := slices.Concat(g.Writes, g.allRead)
	for i, a := range g.Argv {
		if i == 0 || g.dyn[i] {
			continue
		}
		if strings.HasPrefix(a, "-") {
			if _, v, ok := strings.Cut(a, "="); ok {
				a = v
			} else if j := strings.IndexAny(a, "/~"); j == 2 {
				a = a[2:] // -C/etc
			} else {
				continue
			}
		} else if _, v, ok := strings.Cut(a, "="); ok && strings.HasPrefix(v, "/") {
			a = v // if=/etc/shadow
		}
		if strings.Contains(a, "://") || strings.ContainsAny(a, "\n") {
			continue
		}
		if strings.HasPrefix(a, "~") && (g.tilde[i] || i == 0) || a == ".." || strings.Contains(a, "/") {
			out = append(out, a)
		}
	}
	return out
}
