package keep

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/skillhub"
)

// Pinned is what a session needs of a package before it is used.
type Pinned struct {
	Manifest abi.Manifest   `json:"manifest"`
	Tools    []abi.ToolDecl `json:"tools,omitempty"`
}

// Installed is a package of the lock file with what is pinned of it.
type Installed struct {
	Package
	Pinned
	Broken string // why it cannot be used; "" otherwise
}

// indexFile is index.json.
type indexFile struct {
	Lock skillhub.Digest   `json:"lock"` // of the lock file's bytes
	Pins map[string]Pinned `json:"pins"` // by the archive's hex digest
}

const maxPinned = 4 << 20

// State is what is installed, and the digest of the lock file that says so.
type State struct {
	Lock      *Lock
	Digest    skillhub.Digest
	Installed []Installed // in the order of their names
}

// Load reads what is installed, without opening any package: two files, however
// many there are. Definitions are held against the lock file's digests.
func (s *Store) Load() (*State, error) {
	l, digest, err := readLock(s.Lock)
	if err != nil {
		return nil, err
	}
	st := &State{Lock: l, Digest: digest}
	if len(l.Packages) == 0 {
		return st, nil
	}
	index := s.readIndex(digest)
	fresh := index == nil
	if fresh {
		index = s.gather(l)
	}
	for _, p := range l.Packages {
		in := Installed{Package: p}
		pinned, ok := index[p.Digest.Hex()]
		if ok {
			err = p.Pin.check(p.Name, pinned)
		} else {
			pinned, err = s.pinned(p.Pin)
		}
		if err != nil {
			in.Broken = err.Error()
		} else {
			in.Pinned = pinned
		}
		st.Installed = append(st.Installed, in)
	}
	if fresh {
		s.writeIndex(indexFile{digest, index}) // another process may win; both are right
	}
	return st, nil
}

// readIndex is nil where the index is not of this lock file.
func (s *Store) readIndex(digest skillhub.Digest) map[string]Pinned {
	b, err := os.ReadFile(s.indexFile())
	if err != nil {
		return nil
	}
	var f indexFile
	if err := json.Unmarshal(b, &f); err != nil || f.Lock != digest {
		return nil
	}
	return f.Pins
}

func (s *Store) indexFile() string { return filepath.Join(s.Dir, "index.json") }

// gather reads the pins one by one.
func (s *Store) gather(l *Lock) map[string]Pinned {
	out := map[string]Pinned{}
	for _, p := range l.Packages {
		if pinned, err := s.pinned(p.Pin); err == nil {
			out[p.Digest.Hex()] = pinned
		}
	}
	return out
}

// Pinned reads what is pinned of one version.
func (s *Store) Pinned(p Pin) (Pinned, error) { return s.pinned(p) }

func (s *Store) pinned(p Pin) (out Pinned, err error) {
	b, err := readFile(s.pinFile(p.Digest), maxPinned)
	if err != nil {
		return out, fmt.Errorf("its pinned description is missing: %w", err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return Pinned{}, fmt.Errorf("its pinned description: %w", err)
	}
	if err := p.check("", out); err != nil {
		return Pinned{}, err
	}
	return out, nil
}

// check holds a description against the lock file.
func (p Pin) check(name string, d Pinned) error {
	tools, err := skillhub.ToolsDigest(d.Tools)
	switch {
	case err != nil:
		return err
	case name != "" && d.Manifest.Name != name:
		return fmt.Errorf("%w: its pinned description is of %q", ErrEdited, d.Manifest.Name)
	case tools != p.Tools:
		return fmt.Errorf("%w: its pinned tool definitions are not those of %s", ErrEdited, LockName)
	case config.NeedsHash(d.Manifest.Needs) != p.Needs:
		return fmt.Errorf("%w: its pinned needs are not those of %s", ErrEdited, LockName)
	case d.Manifest.Version != p.Version || d.Manifest.Publisher != p.Publisher:
		return fmt.Errorf("%w: its pinned manifest is not that of %s", ErrEdited, LockName)
	}
	return nil
}

func (s *Store) index(l *Lock, digest skillhub.Digest) {
	s.writeIndex(indexFile{digest, s.gather(l)})
}

func (s *Store) writeIndex(f indexFile) {
	b, err := json.Marshal(f)
	if err != nil {
		return
	}
	tmp, err := os.CreateTemp(s.Dir, ".index-*")
	if err != nil {
		return
	}
	_, err = tmp.Write(b)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), s.indexFile())
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
}
