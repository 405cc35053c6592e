package agents

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/builtins/internal/frontmatter"
	"github.com/elfhost/elfhost/builtins/internal/plain"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Folder is one place where definitions lie, as NAME.md. It need not exist.
type Folder struct {
	Dir     string // virtual path
	Project bool   // not a person's own
}

// Shelf finds definitions. It keeps nothing and is safe for concurrent use.
type Shelf struct {
	Tree    *reach.Tree
	Folders []Folder // the first that has a name wins
	ACP     bool
	// Trusted tells of a project's file, by its virtual path, whether what it
	// starts may take effect with this very content. It is asked for once a
	// listing; nil, or a nil answer: nothing may.
	Trusted func() func(file string, content []byte) bool
}

// maxDefinitions is how many are read of one folder.
const maxDefinitions = 200

// All gives the definitions by name. It asks nobody: what the rights do not
// cover is not there.
func (s *Shelf) All(ctx context.Context, rights policy.Rights) ([]Definition, error) {
	rights.Decide = nil
	var out []Definition
	taken := map[string]bool{}
	for _, folder := range s.Folders {
		entries, err := s.Tree.ReadDir(ctx, rights, folder.Dir)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			continue // not there, or not for this session
		}
		n := 0
		var trusted func(string, []byte) bool
		if folder.Project && s.Trusted != nil && len(entries) > 0 {
			trusted = s.Trusted()
		}
		for _, e := range entries {
			name, md := strings.CutSuffix(e.Name(), ".md")
			if !md || name == "" || strings.HasPrefix(name, ".") || strings.EqualFold(name, "README") || n >= maxDefinitions {
				continue
			}
			n++
			d := s.open(ctx, rights, folder, name, trusted)
			if key := strings.ToLower(d.Name); !taken[key] {
				taken[key] = true
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (s *Shelf) open(ctx context.Context, rights policy.Rights, folder Folder, name string, trusted func(string, []byte) bool) Definition {
	file := path.Join(folder.Dir, name+".md")
	b, err := s.Tree.ReadFile(ctx, rights, file, frontmatter.MaxFile)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return Definition{Name: plain.Line(name, 64), File: file, Project: folder.Project, Problem: "it cannot be read: " + plain.Line(err.Error(), 120)}
	}
	d := ParseDefinition(b, name, s.ACP)
	d.File, d.Project = file, folder.Project
	if folder.Project && len(d.Direct) > 0 && (trusted == nil || !trusted(file, b)) {
		d.Direct = nil
		d.warn("its directMcpServers have no effect: this folder is not trusted")
	}
	return d
}
