package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// state is a hub's metadata while an author changes it. Nothing that a client
// can see changes before commit.
type state struct {
	a    *Author
	ring *ring
	now  time.Time
	days map[string]int

	root      *metadata.Metadata[metadata.RootType]
	next      *metadata.Metadata[metadata.RootType] // what root is being replaced by; nil mostly
	targets   *metadata.Metadata[metadata.TargetsType]
	snapshot  *metadata.Metadata[metadata.SnapshotType]
	timestamp *metadata.Metadata[metadata.TimestampType]
	bins      map[string]*metadata.Metadata[metadata.TargetsType] // those that were read

	dirtyBins    map[string]bool
	dirtyTargets bool
}

func (a *Author) begin() (*state, error) {
	days, err := a.days()
	if err != nil {
		return nil, err
	}
	r, err := openRing(a.KeyDirs(), a.Passphrase)
	if err != nil {
		return nil, err
	}
	return &state{
		a: a, ring: r, now: a.now(), days: days,
		bins: map[string]*metadata.Metadata[metadata.TargetsType]{}, dirtyBins: map[string]bool{},
	}, nil
}

// load reads the hub, and believes nothing that is not signed: whoever can
// write into the folder must not have an author sign what they put there. That
// metadata has expired is no matter, it is about to be renewed.
func (a *Author) load() (*state, error) {
	s, err := a.begin()
	if err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("reading the hub in %q: %w", a.Dir, err)
	}
	return s, nil
}

func (s *state) load() (err error) {
	if s.root, err = s.newestRoot(); err != nil {
		return err
	}
	b, err := s.read(metadataPath(Timestamp, 0), maxTimestamp)
	if err != nil {
		return err
	}
	if s.timestamp, err = metadata.Timestamp().FromBytes(b); err != nil {
		return fmt.Errorf("timestamp.json: %w", err)
	}
	if err := s.signedBy(Timestamp, s.timestamp); err != nil {
		return err
	}
	m := s.timestamp.Signed.Meta["snapshot.json"]
	if b, err = s.listed(Snapshot, m, maxSnapshot); err != nil {
		return err
	}
	if s.snapshot, err = metadata.Snapshot().FromBytes(b); err != nil {
		return fmt.Errorf("the snapshot: %w", err)
	}
	if err := s.signedBy(Snapshot, s.snapshot); err != nil {
		return err
	}
	if b, err = s.listed(Targets, s.snapshot.Signed.Meta["targets.json"], maxTargets); err != nil {
		return err
	}
	if s.targets, err = metadata.Targets().FromBytes(b); err != nil {
		return fmt.Errorf("the targets: %w", err)
	}
	if d := s.targets.Signed.Delegations; d == nil || d.SuccinctRoles == nil || d.SuccinctRoles.NamePrefix != Packages {
		return errors.New("the targets do not hand packages out to hash bins: another program made this repository")
	}
	return s.signedBy(Targets, s.targets)
}

// newestRoot walks from the copy in root.json to the last version: an author
// who was killed may not have come to renew the copy.
func (s *state) newestRoot() (*metadata.Metadata[metadata.RootType], error) {
	b, err := s.read(metadataDir+"/root.json", maxRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no hub: %w", skillhub.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	root, err := checkRoot(b)
	if err != nil {
		return nil, fmt.Errorf("root.json: %w", err)
	}
	if err := root.VerifyDelegate(Root, root); err != nil {
		return nil, fmt.Errorf("root.json: %w", err)
	}
	for range maxRotations {
		b, err := s.read(metadataPath(Root, root.Signed.Version+1), maxRoot)
		if errors.Is(err, fs.ErrNotExist) {
			return root, nil
		}
		if err != nil {
			return nil, err
		}
		next, err := checkRoot(b)
		if err != nil {
			return nil, fmt.Errorf("version %d of the root: %w", root.Signed.Version+1, err)
		}
		if err := errors.Join(root.VerifyDelegate(Root, next), next.VerifyDelegate(Root, next)); err != nil {
			return nil, fmt.Errorf("version %d of the root: %w", root.Signed.Version+1, err)
		}
		root = next
	}
	return root, nil
}

// signedBy holds a file against the root. Where a rotation was cut short whose
// old keys are lost, the last root but one counts too.
func (s *state) signedBy(role string, md any) error {
	err := s.root.VerifyDelegate(role, md)
	if err == nil || s.root.Signed.Version == 1 {
		return err
	}
	b, old := s.read(metadataPath(Root, s.root.Signed.Version-1), maxRoot)
	if old != nil {
		return err
	}
	before, old := checkRoot(b)
	if old != nil || s.root.Signed.Version != before.Signed.Version+1 || before.VerifyDelegate(Root, s.root) != nil {
		return err
	}
	if before.VerifyDelegate(role, md) == nil {
		return nil
	}
	return err
}

func (s *state) read(name string, limit int64) ([]byte, error) {
	return disk.ReadFile(s.a.path(name), limit)
}

// listed reads the file of a role that other metadata lists.
func (s *state) listed(role string, m *metadata.MetaFiles, limit int64) ([]byte, error) {
	if m == nil {
		return nil, fmt.Errorf("%s is not listed", role)
	}
	b, err := s.read(metadataPath(role, m.Version), limit)
	if err != nil {
		return nil, err
	}
	if err := m.VerifyLengthHashes(b); err != nil {
		return nil, fmt.Errorf("version %d of %s: %w", m.Version, role, err)
	}
	return b, nil
}

// bin reads the bin that a target belongs to.
func (s *state) bin(target string) (string, *metadata.Metadata[metadata.TargetsType], error) {
	role := s.targets.Signed.Delegations.GetRolesForTarget(target)[0].Name
	md, err := s.binOf(role)
	return role, md, err
}

func (s *state) binOf(role string) (*metadata.Metadata[metadata.TargetsType], error) {
	if md := s.bins[role]; md != nil {
		return md, nil
	}
	b, err := s.listed(role, s.snapshot.Signed.Meta[role+".json"], maxTargets)
	if err != nil {
		return nil, err
	}
	md, err := metadata.Targets().FromBytes(b)
	if err == nil {
		err = s.targets.VerifyDelegate(role, md)
	}
	if err != nil {
		return nil, fmt.Errorf("the bin %s: %w", role, err)
	}
	s.bins[role] = md
	return md, nil
}

// target reads a target; fs.ErrNotExist where the hub has none of that name.
func (s *state) target(name string, limit int64) ([]byte, error) {
	_, bin, err := s.bin(name)
	if err != nil {
		return nil, err
	}
	f := bin.Signed.Targets[name]
	if f == nil {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	b, err := s.read(targetPath(name, digestOf(f)), limit)
	if err == nil {
		err = f.VerifyLengthHashes(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func digestOf(f *metadata.TargetFiles) skillhub.Digest { return skillhub.DigestSum(f.Hashes["sha256"]) }

// setTarget writes a target under its new name, and notes it in its bin.
func (s *state) setTarget(name string, b []byte) error {
	role, bin, err := s.bin(name)
	if err != nil {
		return err
	}
	f, err := metadata.TargetFile().FromBytes(name, b, "sha256")
	if err != nil {
		return err
	}
	bin.Signed.Targets[name] = f
	s.dirtyBins[role] = true
	return s.a.write(targetPath(name, digestOf(f)), b)
}

// commit signs and writes what changed. The last file that is replaced,
// timestamp.json, makes all of it visible.
func (s *state) commit(ctx context.Context) error {
	files, err := s.signAll()
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.a.write(f.name, f.data); err != nil {
			return err
		}
	}
	return nil
}

type file struct {
	name string
	data []byte
}

// signAll makes the files of a new state, in the order in which they are
// written. Nothing is written before all of them could be signed.
func (s *state) signAll() ([]file, error) {
	var out []file
	list := func(role string, version int64, b []byte) {
		m := metadata.MetaFile(version)
		m.Length, m.Hashes = int64(len(b)), sums(b)
		s.snapshot.Signed.Meta[role+".json"] = m
		out = append(out, file{metadataPath(role, version), b})
	}
	bins := s.targets.Signed.Delegations.SuccinctRoles
	for role := range s.dirtyBins {
		md := s.bins[role]
		md.Signed.Version++
		md.Signed.Expires = expiry(s.now, s.days[Packages])
		b, err := signFile(md, s.ring, Packages, need{bins.KeyIDs, bins.Threshold})
		if err != nil {
			return nil, err
		}
		list(role, md.Signed.Version, b)
	}
	if s.dirtyTargets {
		s.targets.Signed.Version++
		s.targets.Signed.Expires = expiry(s.now, s.days[Targets])
		b, err := signTop(s, s.targets, Targets)
		if err != nil {
			return nil, err
		}
		list(Targets, s.targets.Signed.Version, b)
	}
	s.snapshot.Signed.Version++
	s.snapshot.Signed.Expires = expiry(s.now, s.days[Snapshot])
	b, err := signTop(s, s.snapshot, Snapshot)
	if err != nil {
		return nil, err
	}
	out = append(out, file{metadataPath(Snapshot, s.snapshot.Signed.Version), b})
	m := metadata.MetaFile(s.snapshot.Signed.Version)
	m.Length, m.Hashes = int64(len(b)), sums(b)
	b, err = s.stamp(m)
	if err != nil {
		return nil, err
	}
	return append(out, file{metadataPath(Timestamp, 0), b}), nil
}

// stamp makes a new timestamp over a snapshot.
func (s *state) stamp(snapshot *metadata.MetaFiles) ([]byte, error) {
	s.timestamp.Signed.Version++
	s.timestamp.Signed.Expires = expiry(s.now, s.days[Timestamp])
	s.timestamp.Signed.Meta = map[string]*metadata.MetaFiles{"snapshot.json": snapshot}
	return signTop(s, s.timestamp, Timestamp)
}

func sums(b []byte) metadata.Hashes {
	f, err := metadata.TargetFile().FromBytes("", b, "sha256")
	if err != nil {
		return nil // the library only fails for other algorithms
	}
	return f.Hashes
}

// signTop signs for a role of the root. While the root is being replaced, the
// keys of both versions sign, so that clients that have either are served;
// where the old ones are lost, those of the new version are enough.
func signTop[T metadata.Roles](s *state, md *metadata.Metadata[T], role string) ([]byte, error) {
	n := rootNeed(s.root, role)
	if s.next != nil {
		n = rootNeed(s.next, role)
	}
	if _, err := signFile(md, s.ring, role, n); err != nil {
		return nil, err
	}
	if s.next != nil {
		var old []*key
		for _, k := range s.ring.of(rootNeed(s.root, role).ids) {
			if !signedWith(md, k.id) {
				old = append(old, k)
			}
		}
		if err := addSignatures(md, s.ring, old); err != nil {
			return nil, err
		}
	}
	return md.ToBytes(false)
}

func signedWith[T metadata.Roles](md *metadata.Metadata[T], id string) bool {
	for _, sig := range md.Signatures {
		if sig.KeyID == id {
			return true
		}
	}
	return false
}
