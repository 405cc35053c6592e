package skills

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/frontmatter"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/host/policy"
)

// Limits of one look around. A person's folders stay far below them.
const (
	maxSkills  = 1000
	maxFolders = 5000
	maxLevels  = 4 // of folders that only group skills
)

// All gives every skill that is there, those with problems too, in the order
// of names. It asks nobody: what the rights do not cover is not there.
func (s *Shelf) All(ctx context.Context, rights policy.Rights) ([]Skill, error) {
	rights.Decide = nil
	f := &finder{s: s, ctx: ctx, rights: rights, seen: map[string]bool{}}
	folders := slices.Clip(s.o.Folders)
	if s.o.Packages != nil {
		folders = append(folders, s.o.Packages()...)
	}
	for _, source := range []Source{User, Installed, Project} {
		for _, folder := range folders {
			switch {
			case folder.Source != source:
			case folder.Name != "":
				f.found = append(f.found, f.pinned(folder))
			default:
				if err := f.visit(folder.Dir, source, 0); err != nil {
					return nil, err
				}
			}
		}
	}
	taken := map[string]bool{}
	for i := range f.found {
		k := &f.found[i]
		if k.Problem != "" {
			continue
		}
		k.Shadowed = taken[k.Name]
		taken[k.Name] = true
	}
	slices.SortStableFunc(f.found, func(a, b Skill) int { return strings.Compare(a.Name, b.Name) })
	return f.found, nil
}

type finder struct {
	s       *Shelf
	ctx     context.Context
	rights  policy.Rights
	found   []Skill
	visited int
	seen    map[string]bool // folders, by the paths that links lead to
}

// visit looks for a SKILL.md in a folder, and below it where there is none.
func (f *finder) visit(dir string, source Source, level int) error {
	if err := f.ctx.Err(); err != nil {
		return err
	}
	if f.visited++; f.visited > maxFolders || len(f.found) >= maxSkills {
		return nil
	}
	// Links make circles, and other agents' folders are often links to ours: what
	// was found under one name is not found again under another.
	if real, err := f.s.o.Tree.Real(f.ctx, f.rights, dir); err == nil {
		if f.seen[real] {
			return nil
		}
		f.seen[real] = true
	}
	entries, err := f.s.o.Tree.ReadDir(f.ctx, f.rights, dir)
	if err != nil {
		if level > 0 && f.ctx.Err() == nil {
			f.fail(dir, source, err)
		}
		return f.ctx.Err()
	}
	if name, others := skillFile(entries); name != "" && level > 0 {
		f.found = append(f.found, f.open(dir, name, source, others))
		return nil
	}
	if level >= maxLevels {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if e.Type()&fs.ModeSymlink != 0 { // as package managers of skills make them
			st, err := f.s.o.Tree.Stat(f.ctx, f.rights, path.Join(dir, e.Name()))
			if err != nil {
				f.fail(path.Join(dir, e.Name()), source, err)
				continue
			}
			if !st.IsDir() {
				continue
			}
		}
		if err := f.visit(path.Join(dir, e.Name()), source, level+1); err != nil {
			return err
		}
	}
	return nil
}

// fail lists what may be a skill but cannot be reached.
func (f *finder) fail(dir string, source Source, err error) {
	f.found = append(f.found, Skill{Name: slug(path.Base(dir)), Source: source, Dir: dir, Problem: "it cannot be opened: " + short(err)})
}

// skillFile finds the skill's text among the names of a folder: SKILL.md, or
// the same in other letters.
func skillFile(entries []fs.DirEntry) (name string, others int) {
	for _, e := range entries {
		if e.IsDir() || !strings.EqualFold(e.Name(), "SKILL.md") {
			continue
		}
		if name == "" || e.Name() == "SKILL.md" {
			name = e.Name()
		}
		others++
	}
	return name, others - 1
}

// open reads one skill.
func (f *finder) open(dir, name string, source Source, others int) Skill {
	k := Skill{Name: slug(path.Base(dir)), Source: source, Dir: dir, File: path.Join(dir, name)}
	b, err := f.s.o.Tree.ReadFile(f.ctx, f.rights, k.File, frontmatter.MaxFile)
	if err != nil {
		k.Problem = "it cannot be read: " + short(err)
		return k
	}
	if name != "SKILL.md" {
		k.warn("its file is called %s, not SKILL.md", name)
	}
	if others > 0 {
		k.warn("there are several SKILL.md in different letters, %s counts", name)
	}
	k.read(b)
	return k
}

// pinned reads the one skill of an installed package.
func (f *finder) pinned(d Folder) Skill {
	k := Skill{Name: d.Name, Source: d.Source, Dir: d.Dir, File: path.Join(d.Dir, "SKILL.md")}
	b, err := f.s.o.Tree.ReadFile(f.ctx, f.rights, k.File, frontmatter.MaxFile)
	if err != nil {
		k.Problem = "it cannot be read: " + short(err)
		return k
	}
	if sum := sha256.Sum256(b); d.Digest != "" && d.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
		k.Problem = "its SKILL.md was changed after it was installed"
		return k
	}
	k.read(b)
	k.Name = d.Name // what it is installed as
	return k
}

// short is an error in one clause, without the virtual path that is known.
func short(err error) string {
	var d *policy.Denial
	switch {
	case errors.As(err, &d):
		return d.Why
	case errors.Is(err, abi.ErrTooLarge):
		return "it is over 1 MiB"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return plain.Line(err.Error(), 120)
}

// Find gives the usable skill of a name, in whatever letters.
func find(all []Skill, name string) (Skill, bool) {
	want := slug(name)
	for _, k := range all {
		if k.Name == want && k.Problem == "" && !k.Shadowed {
			return k, true
		}
	}
	return Skill{}, false
}
