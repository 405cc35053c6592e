// Package trust remembers which project folders a person trusts. A project's
// files can name programs to start and commands to run; nothing of that takes
// effect before a person has seen it and said yes.
//
// The yes is bound to what was seen: a digest of every file that could run or
// widen anything. When one of them changes, appears or goes, the folder is not
// trusted any more until the person is asked again. What was said lies in the
// user's own state, where no repository can put it.
package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/elfhost/elfhost/internal/config"
)

// Status says where a folder stands.
type Status string

// The statuses.
const (
	Nothing Status = "nothing" // it holds nothing that runs or widens
	Unknown Status = "unknown" // nobody was asked
	Changed Status = "changed" // it is not what was trusted any more
	Trusted Status = "trusted"
)

// Record is what a person said yes to.
type Record struct {
	Dir    string    `toml:"dir" json:"dir"` // absolute, links resolved
	Digest string    `toml:"digest" json:"digest"`
	Given  time.Time `toml:"given" json:"given"`
	Items  []Item    `toml:"item" json:"items"`
}

// Item is one file that could run or widen something.
type Item struct {
	Path   string `toml:"path" json:"path"` // below the project, with slashes
	Digest string `toml:"digest" json:"digest"`
}

// Survey is what a folder held when it was looked at. It keeps the content:
// who reads a file again may find another one in its place.
type Survey struct {
	Dir    string
	Digest string // of all items; it is what a person agrees to
	Items  []Item

	files map[string][]byte
}

// File gives the content of an item that is a file, by its path.
func (s Survey) File(path string) ([]byte, bool) {
	b, ok := s.files[path]
	return b, ok
}

// Holds reports whether an item had this very content.
func (s Survey) Holds(path string, content []byte) bool {
	b, ok := s.files[path]
	return ok && bytes.Equal(b, content)
}

// Check says where a folder stands now, and reads all that counts to do so.
// An error (a file that cannot be read, too many of them) means not trusted.
func Check(p config.Paths, dir string) (Status, Survey, error) {
	s, err := Look(dir)
	if err != nil {
		return Unknown, s, err
	}
	if len(s.Items) == 0 {
		return Nothing, s, nil
	}
	r, err := Load(p, s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Unknown, s, nil
	case err != nil:
		return Unknown, s, err
	case r.Dir != s.Dir || r.Digest != s.Digest:
		return Changed, s, nil
	}
	return Trusted, s, nil
}

// Give remembers that a person trusts what the survey shows. What has changed
// since it was made is not trusted by it.
func Give(p config.Paths, s Survey) error {
	r := Record{Dir: s.Dir, Digest: s.Digest, Given: time.Now().UTC().Truncate(time.Second), Items: s.Items}
	var b bytes.Buffer
	b.WriteString("# Written by elfhost: what a person trusts in this folder. `elfhost trust --revoke` takes it back.\n\n")
	if err := toml.NewEncoder(&b).Encode(r); err != nil {
		return fmt.Errorf("writing the trust in %q: %w", s.Dir, err)
	}
	name := file(p, s.Dir)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("writing the trust in %q: %w", s.Dir, err)
	}
	if err := replace(name, b.Bytes()); err != nil {
		return fmt.Errorf("writing the trust in %q: %w", s.Dir, err)
	}
	return nil
}

// Revoke forgets the trust in a folder and reports whether there was any. The
// folder need not exist any more.
func Revoke(p config.Paths, dir string) (bool, error) {
	err := os.Remove(file(p, canonical(dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Load reads what was said about a folder; fs.ErrNotExist if nothing was.
func Load(p config.Paths, dir string) (Record, error) { return read(file(p, canonical(dir))) }

// List gives all folders that were trusted, by name. Records that cannot be
// read are in err, beside those that can.
func List(p config.Paths) (out []Record, err error) {
	names, err := filepath.Glob(filepath.Join(globbed(p.State), "projects", "*", "trust.toml"))
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range names {
		r, err := read(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Record) int { return strings.Compare(a.Dir, b.Dir) })
	return out, errors.Join(errs...)
}

// Difference names what is not as it was trusted: "+ path" is new, "- path" is
// gone, "~ path" has changed.
func (r Record) Difference(s Survey) (out []string) {
	was := map[string]string{}
	for _, i := range r.Items {
		was[i.Path] = i.Digest
	}
	for _, i := range s.Items {
		switch d, ok := was[i.Path]; {
		case !ok:
			out = append(out, "+ "+i.Path)
		case d != i.Digest:
			out = append(out, "~ "+i.Path)
		}
		delete(was, i.Path)
	}
	for path := range was {
		out = append(out, "- "+path)
	}
	slices.SortFunc(out, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return out
}

// maxRecord bounds a record's file.
const maxRecord = 1 << 20

func read(name string) (Record, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return Record{}, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxRecord {
		return Record{}, fmt.Errorf("%q is not a record of trust", name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return Record{}, err
	}
	var r Record
	d := toml.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("%q: %w", name, err)
	}
	return r, nil
}

// file is where the trust in a folder is kept; dir is absolute, links resolved.
func file(p config.Paths, dir string) string { return filepath.Join(p.ProjectState(dir), "trust.toml") }

// canonical is the one name of a folder.
func canonical(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if r, err := filepath.EvalSymlinks(dir); err == nil {
		return r
	}
	return filepath.Clean(dir)
}

// globbed writes a path so that filepath.Glob takes it literally.
func globbed(path string) string {
	if filepath.Separator == '\\' {
		return path // no escapes there, and no such characters either
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// replace writes a file whole, readable by its owner only.
func replace(name string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".trust-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
