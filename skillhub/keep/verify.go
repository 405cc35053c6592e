package keep

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

// edited lists the files that differ from those of the package, are missing,
// or came to it. The error is fs.ErrNotExist where none are there.
func (s *Store) edited(d skillhub.Digest, c *pack.Contents) ([]string, error) {
	dir := s.Files(d)
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	var bad []string
	want := map[string]pack.File{}
	for _, f := range c.Files {
		if !f.Left {
			want[f.Name] = f
		}
	}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		f, ok := want[name]
		delete(want, name)
		if !ok || !e.Type().IsRegular() || !same(p, f) {
			bad = append(bad, name)
		}
		return nil
	})
	for name := range want {
		bad = append(bad, name)
	}
	slices.Sort(bad)
	return bad, err
}

func same(path string, f pack.File) bool {
	b, err := readFile(path, f.Size)
	return err == nil && skillhub.DigestOf(b) == f.Digest
}

// Verify holds the store against the lock file: the archive's digest, then each
// file against the archive. It lists what differs, and repairs nothing.
func (s *Store) Verify(ctx context.Context, p Pin) (edited []string, err error) {
	b, err := readFile(s.Blob(p.Digest), skillhub.MaxArchive)
	if err != nil {
		return nil, fmt.Errorf("the archive: %w", err)
	}
	if got := skillhub.DigestOf(b); got != p.Digest {
		return nil, fmt.Errorf("%w: the archive is %s, and %s is pinned", ErrEdited, got, p.Digest)
	}
	c, err := pack.Unpack(ctx, bytes.NewReader(b), nil, p.options())
	if err != nil {
		return nil, err
	}
	if edited, err = s.edited(p.Digest, c); err != nil {
		return nil, fmt.Errorf("the files: %w", err)
	}
	if _, err := s.pinned(p); err != nil {
		edited = append(edited, "pins/"+filepath.Base(s.pinFile(p.Digest)))
	}
	return edited, nil
}

func (p Pin) options() pack.Options {
	return pack.Options{WithoutScripts: p.WithoutScripts, Foreign: p.Foreign}
}
