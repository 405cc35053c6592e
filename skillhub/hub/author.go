package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Author makes and keeps a hub in a folder. What it changes appears at once, by
// the replacement of one file (timestamp.json, or the newest root): killed
// anywhere, it leaves the old hub or the new one. Several processes may keep
// one hub; they wait for one another.
//
// Keys never lie in the hub's folder: a web server may serve all of that.
type Author struct {
	Dir string
	// Keys are folders with key files. New keys go into the first. None:
	// the hub's folder with ".keys" appended.
	Keys []string
	// Passphrase is asked for the passphrase of a key file. Nil: keys that have
	// one cannot be used.
	Passphrase func(file string) ([]byte, error)
	Now        func() time.Time // nil: time.Now
	NoSync     bool             // do not wait for the disk; for benchmarks

	writing func(name string) error // in tests: is told of each file before, and may end the work there
}

// InitOptions say how a new hub is to be.
type InitOptions struct {
	Bits          int            // 1<<Bits hash bins; 0 is 8, which serves 100,000 packages
	RootKeys      int            // keys of the root; 0 is 1
	RootThreshold int            // how many of them must sign; 0 is 1
	Days          map[string]int // lifetimes of metadata by role; those missing have a default
	Passphrase    []byte         // seals the new keys; empty: they lie in the clear
}

// settings is hub.json in the first folder of keys.
type settings struct {
	Format int            `json:"format"`
	Days   map[string]int `json:"days,omitempty"`
}

const settingsFile = "hub.json"

// ErrExists is a hub where one was to be made.
var ErrExists = errors.New("there is a hub already")

func (a *Author) now() time.Time {
	if a.Now != nil {
		return a.Now()
	}
	return time.Now()
}

// KeyDirs are the folders with keys, the defaults put in.
func (a *Author) KeyDirs() []string {
	if len(a.Keys) > 0 {
		return a.Keys
	}
	return []string{filepath.Clean(a.Dir) + ".keys"}
}

func (a *Author) path(name string) string { return filepath.Join(a.Dir, filepath.FromSlash(name)) }

func (a *Author) write(name string, b []byte) error {
	return a.writeFrom(name, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

func (a *Author) writeFrom(name string, fill func(io.Writer) error) error {
	if a.writing != nil {
		if err := a.writing(name); err != nil {
			return err
		}
	}
	return disk.Writer{NoSync: a.NoSync}.WriteFrom(a.path(name), 0o644, fill)
}

// lock keeps other authors out. It lies with the keys: whoever publishes has those.
func (a *Author) lock(ctx context.Context) (func(), error) {
	dir := a.KeyDirs()[0]
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("the folder of keys %q: %w: %w", dir, ErrNoKey, err)
	}
	return disk.Lock(ctx, filepath.Join(dir, ".lock"))
}

func (a *Author) days() (map[string]int, error) {
	out := map[string]int{}
	for role, n := range lifetimes {
		out[role] = n
	}
	file := filepath.Join(a.KeyDirs()[0], settingsFile)
	b, err := disk.ReadFile(file, maxKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	var s settings
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %q: %w", file, err)
	}
	for role, n := range s.Days {
		if _, ok := out[role]; ok && n > 0 {
			out[role] = n
		}
	}
	return out, nil
}

// check fills the defaults in, and refuses options that make no hub.
func (o *InitOptions) check() error {
	if o.Bits == 0 {
		o.Bits = 8
	}
	if o.RootKeys == 0 {
		o.RootKeys = max(1, o.RootThreshold)
	}
	if o.RootThreshold == 0 {
		o.RootThreshold = 1
	}
	switch {
	case o.Bits < 1 || o.Bits > 14:
		return fmt.Errorf("a hub has 2 to 16384 bins (1 to 14 bits), not 1<<%d: %w", o.Bits, abi.ErrInvalid)
	case o.RootKeys < o.RootThreshold || o.RootKeys > 16 || o.RootThreshold < 1:
		return fmt.Errorf("%d of %d root keys cannot be asked for: %w", o.RootThreshold, o.RootKeys, abi.ErrInvalid)
	}
	for role, n := range o.Days {
		if _, ok := lifetimes[role]; !ok || n < 1 || n > 36500 {
			return fmt.Errorf("the metadata of %q cannot count for %d days: %w", role, n, abi.ErrInvalid)
		}
	}
	return nil
}

// Init makes an empty hub and its keys, and returns the fingerprint of its
// root, which clients pin. The folder may exist; a hub in it may not.
func (a *Author) Init(ctx context.Context, o InitOptions) (skillhub.Digest, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(a.KeyDirs()[0], 0o700); err != nil {
		return "", err
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(a.path(metadataPath(Root, 1))); err == nil {
		return "", fmt.Errorf("%q: %w", a.Dir, ErrExists)
	}
	keys := a.KeyDirs()[0]
	if b, err := json.MarshalIndent(settings{Format: 1, Days: o.Days}, "", "  "); err != nil {
		return "", err
	} else if err := (disk.Writer{}).Write(filepath.Join(keys, settingsFile), append(b, '\n'), 0o600); err != nil {
		return "", err
	}
	made := map[string][]*key{}
	for role, n := range map[string]int{Root: o.RootKeys, Targets: 1, Packages: 1, Snapshot: 1, Timestamp: 1} {
		for range n {
			k, err := newKey(keys, role, o.Passphrase)
			if err != nil {
				return "", fmt.Errorf("making a key: %w", err)
			}
			made[role] = append(made[role], k)
		}
	}
	if len(o.Passphrase) > 0 { // it has just been given
		defer func(ask func(string) ([]byte, error)) { a.Passphrase = ask }(a.Passphrase)
		a.Passphrase = func(string) ([]byte, error) { return o.Passphrase, nil }
	}
	return a.firstState(ctx, o, made)
}

// firstState signs and writes the metadata of a hub without packages.
func (a *Author) firstState(ctx context.Context, o InitOptions, made map[string][]*key) (skillhub.Digest, error) {
	s, err := a.begin()
	if err != nil {
		return "", err
	}
	s.root = metadata.Root(expiry(s.now, s.days[Root]))
	for _, role := range metadata.TOP_LEVEL_ROLE_NAMES {
		for _, k := range made[role] {
			if err := s.root.Signed.AddKey(k.public, role); err != nil {
				return "", err
			}
		}
	}
	s.root.Signed.Roles[Root].Threshold = o.RootThreshold
	s.targets = metadata.Targets(expiry(s.now, s.days[Targets]))
	s.targets.Signed.Version = 0
	bins := made[Packages][0]
	s.targets.Signed.Delegations = &metadata.Delegations{
		Keys:          map[string]*metadata.Key{bins.id: bins.public},
		SuccinctRoles: &metadata.SuccinctRoles{KeyIDs: []string{bins.id}, Threshold: 1, BitLength: o.Bits, NamePrefix: Packages},
	}
	s.snapshot = metadata.Snapshot(expiry(s.now, s.days[Snapshot]))
	s.snapshot.Signed.Version = 0
	s.snapshot.Signed.Meta = map[string]*metadata.MetaFiles{}
	s.timestamp = metadata.Timestamp(expiry(s.now, s.days[Timestamp]))
	s.timestamp.Signed.Version = 0
	for _, bin := range s.targets.Signed.Delegations.SuccinctRoles.GetRoles() {
		s.bins[bin] = metadata.Targets(expiry(s.now, s.days[Packages]))
		s.bins[bin].Signed.Version = 0
		s.dirtyBins[bin] = true
	}
	s.dirtyTargets = true
	root, err := signFile(s.root, s.ring, Root, rootNeed(s.root, Root))
	if err != nil {
		return "", err
	}
	if err := s.setIndex(ctx, nil); err != nil {
		return "", err
	}
	if err := s.commit(ctx); err != nil {
		return "", err
	}
	// The root comes last: until it is there, there is no hub.
	if err := a.write(metadataDir+"/root.json", root); err != nil {
		return "", err
	}
	return skillhub.DigestOf(root), a.write(metadataPath(Root, 1), root)
}
