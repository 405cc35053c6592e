package keep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/sign"
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

// indexFile is the second line of index.json; the first is its digest.
type indexFile struct {
	Lock skillhub.Digest   `json:"lock"` // of the lock file's bytes
	Pins map[string]Pinned `json:"pins"` // by the archive's hex digest; without Manifest.Tools
}

const maxPinned = 4 << 20

// State is what is installed, and the digest of the lock file that says so.
type State struct {
	Lock      *Lock
	Digest    skillhub.Digest
	Installed []Installed // in the order of their names
}

// Load reads what is installed, without opening any package: two files, however
// many there are. Where the index is of this very lock file, the lock file was
// checked when the index was made; else it is checked now, and definitions are
// held against its digests.
func (s *Store) Load() (*State, error) {
	b, err := readFile(s.Lock, maxLock)
	if errors.Is(err, fs.ErrNotExist) {
		return &State{Lock: &Lock{Publishers: sign.Pins{}}, Digest: skillhub.DigestOf(nil)}, nil
	}
	if err != nil {
		return nil, err
	}
	st := &State{Digest: skillhub.DigestOf(b)}
	index := s.readIndex(st.Digest)
	parse := decodeLock
	if index == nil {
		parse = ParseLock
	}
	if st.Lock, err = parse(b); err != nil {
		return nil, fmt.Errorf("%q: %w", s.Lock, err)
	}
	fresh := index == nil && len(st.Lock.Packages) > 0
	if fresh {
		index = s.gather(st.Lock)
	}
	for _, p := range st.Lock.Packages {
		in := Installed{Package: p}
		var ok bool
		if in.Pinned, ok = index[p.Digest.Hex()]; !ok {
			if in.Pinned, err = s.pinned(p.Pin); err == nil {
				err = fmt.Errorf("%w: its description is that of %q", ErrEdited, in.Manifest.Name)
			}
			in.Broken = err.Error()
		}
		st.Installed = append(st.Installed, in)
	}
	if fresh {
		s.writeIndex(indexFile{st.Digest, index}) // another process may win; both are right
	}
	return st, nil
}

// readIndex is nil where the index is not of this lock file, or not whole.
func (s *Store) readIndex(digest skillhub.Digest) map[string]Pinned {
	b, err := os.ReadFile(s.indexFile())
	if err != nil {
		return nil
	}
	sum, body, _ := bytes.Cut(b, []byte("\n"))
	var f indexFile
	if skillhub.DigestOf(body) != skillhub.Digest(sum) || json.Unmarshal(body, &f) != nil || f.Lock != digest {
		return nil
	}
	return f.Pins
}

func (s *Store) indexFile() string { return filepath.Join(s.Dir, "index.json") }

// gather reads the pins one by one.
func (s *Store) gather(l *Lock) map[string]Pinned {
	out := map[string]Pinned{}
	for _, p := range l.Packages {
		pinned, err := s.pinned(p.Pin)
		if err == nil {
			err = p.Pin.check(p.Name, pinned)
		}
		if err == nil {
			pinned.Manifest.Tools = nil // Tools are them, or more
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
	case manifest.NeedsHash(d.Manifest.Needs) != p.Needs:
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
	_, err = fmt.Fprintf(tmp, "%s\n%s", skillhub.DigestOf(b), b)
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
