package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// RotateOptions say which key is replaced, and by what.
type RotateOptions struct {
	Revoke     string // the beginning of a key's identifier; needed where a role has several
	KeepKeys   bool   // of the root: a new version with the keys that it has
	Passphrase []byte // seals the new key
}

// Rotated is what a rotation did.
type Rotated struct {
	New     string `json:"new,omitempty"`     // the file of the new key
	Revoked string `json:"revoked,omitempty"` // the identifier of the old one
	// Pending says whose signatures a new root waits for: Sign, with those keys
	// at hand, completes it. Until then the hub is as it was.
	Pending string `json:"pending,omitempty"`
	Root    int64  `json:"rootVersion"`
}

// Rotate replaces a key of a role by a new one. Clients follow by themselves:
// the new root is signed by the old root's keys. The old key file is kept,
// renamed, and is of no use any more.
func (a *Author) Rotate(ctx context.Context, role string, o RotateOptions) (Rotated, error) {
	if !slices.Contains(Roles(), role) {
		return Rotated{}, fmt.Errorf("%q is none of the roles %s: %w", role, strings.Join(Roles(), ", "), abi.ErrInvalid)
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return Rotated{}, err
	}
	defer unlock()
	if _, err := os.Stat(a.pendingFile()); err == nil {
		return Rotated{}, fmt.Errorf("a new root waits for signatures in %q: complete it first, or delete it", a.pendingFile())
	}
	s, err := a.load()
	if err != nil {
		return Rotated{}, err
	}
	if role == Packages {
		return s.rotateBins(ctx, o)
	}
	return s.rotateTop(ctx, role, o)
}

// pick finds the key to revoke.
func pick(ids []string, prefix string) (string, error) {
	var found []string
	for _, id := range ids {
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0:
		return "", fmt.Errorf("no key of the role begins with %.64q: %w", prefix, abi.ErrInvalid)
	}
	return "", fmt.Errorf("say which of its keys is replaced: %s: %w", strings.Join(found, ", "), abi.ErrInvalid)
}

// fresh makes the new key. It is in its file before anything is signed with it.
func (s *state) fresh(role string, o RotateOptions) (*key, error) {
	k, err := newKey(s.a.KeyDirs()[0], role, o.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if len(o.Passphrase) > 0 {
		s.ring.last = o.Passphrase
	}
	s.ring.keys[k.id] = k
	return k, nil
}

// rotateBins hands the bins to another key: all of them are signed anew, and
// appear together with the targets that name the key.
func (s *state) rotateBins(ctx context.Context, o RotateOptions) (Rotated, error) {
	bins := s.targets.Signed.Delegations.SuccinctRoles
	old, err := pick(bins.KeyIDs, o.Revoke)
	if err != nil {
		return Rotated{}, err
	}
	for _, role := range bins.GetRoles() {
		if _, err := s.binOf(role); err != nil { // while the old key still counts
			return Rotated{}, err
		}
		s.dirtyBins[role] = true
	}
	if !s.canSign(Targets) {
		return Rotated{}, missing(Targets, 0, rootNeed(s.root, Targets))
	}
	k, err := s.fresh(Packages, o)
	if err != nil {
		return Rotated{}, err
	}
	if err := s.targets.Signed.RevokeKey(old, Packages); err != nil {
		return Rotated{}, err
	}
	if err := s.targets.Signed.AddKey(k.public, Packages); err != nil {
		return Rotated{}, err
	}
	s.dirtyTargets = true
	if err := s.commit(ctx); err != nil {
		return Rotated{}, err
	}
	return Rotated{New: k.file, Revoked: old, Root: s.root.Signed.Version}, s.retire(old)
}

func (s *state) retire(id string) error {
	if k := s.ring.keys[id]; k != nil {
		return s.ring.retire(k)
	}
	return nil
}

// rotateTop replaces a key that the root names, the root's own included.
func (s *state) rotateTop(ctx context.Context, role string, o RotateOptions) (Rotated, error) {
	next, err := s.newRoot()
	if err != nil {
		return Rotated{}, err
	}
	out := Rotated{Root: next.Signed.Version}
	if !o.KeepKeys {
		if out.Revoked, err = pick(s.root.Signed.Roles[role].KeyIDs, o.Revoke); err != nil {
			return out, err
		}
		k, err := s.fresh(role, o)
		if err != nil {
			return out, err
		}
		out.New = k.file
		if err := errors.Join(next.Signed.RevokeKey(out.Revoked, role), next.Signed.AddKey(k.public, role)); err != nil {
			return out, err
		}
	}
	out.Pending, err = s.offer(ctx, next)
	return out, err
}

// offer signs a new root with the root keys at hand. With enough signatures it
// is published; else it waits, and the text says for whom.
func (s *state) offer(ctx context.Context, next *metadata.Metadata[metadata.RootType]) (string, error) {
	old, own := rootNeed(s.root, Root), rootNeed(next, Root)
	for _, k := range s.ring.of(append(slices.Clone(old.ids), own.ids...)) {
		if signedWith(next, k.id) {
			continue
		}
		if err := addSignatures(next, s.ring, []*key{k}); err != nil {
			return "", err
		}
	}
	b, err := next.ToBytes(false)
	if err != nil {
		return "", err
	}
	if err := errors.Join(s.root.VerifyDelegate(Root, next), next.VerifyDelegate(Root, next)); err != nil {
		if err := (disk.Writer{}).Write(s.a.pendingFile(), b, 0o600); err != nil {
			return "", err
		}
		return waiting(next, old, own), nil
	}
	if err := s.adopt(ctx, next, b); err != nil {
		return "", err
	}
	if err := os.Remove(s.a.pendingFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return "", nil
}

func waiting(next *metadata.Metadata[metadata.RootType], needs ...need) string {
	var out []string
	for _, n := range needs {
		have := 0
		var lack []string
		for _, id := range n.ids {
			if signedWith(next, id) {
				have++
			} else {
				lack = append(lack, id[:8])
			}
		}
		if have < n.threshold {
			out = append(out, fmt.Sprintf("%d more of %s", n.threshold-have, strings.Join(lack, ", ")))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), "; ")
}

// adopt publishes a new root. Roles whose keys it changes are signed before, by
// the old keys and the new: both clients that know the new root and those that
// do not yet find metadata that they can verify.
func (s *state) adopt(ctx context.Context, next *metadata.Metadata[metadata.RootType], root []byte) error {
	changed := func(role string) bool {
		return !slices.Equal(s.root.Signed.Roles[role].KeyIDs, next.Signed.Roles[role].KeyIDs)
	}
	s.next = next
	s.dirtyTargets = changed(Targets)
	switch {
	case changed(Targets) || changed(Snapshot):
		if err := s.commit(ctx); err != nil {
			return err
		}
	case changed(Timestamp):
		b, err := s.stamp(s.timestamp.Signed.Meta["snapshot.json"])
		if err != nil {
			return err
		}
		if err := s.a.write(metadataPath(Timestamp, 0), b); err != nil {
			return err
		}
	}
	if err := s.a.putRoot(next.Signed.Version, root); err != nil {
		return err
	}
	gone := s.root
	s.root, s.next = next, nil
	for id := range gone.Signed.Keys {
		if next.Signed.Keys[id] == nil {
			if err := s.retire(id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Author) pendingFile() string { return filepath.Join(a.KeyDirs()[0], "pending-root.json") }

// signPending adds signatures to a root that waits for them.
func (a *Author) signPending(ctx context.Context, notes map[string]string) error {
	b, err := disk.ReadFile(a.pendingFile(), maxRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	next, err := checkRoot(b)
	if err != nil {
		return fmt.Errorf("reading %q: %w", a.pendingFile(), err)
	}
	s, err := a.load()
	if err != nil {
		return err
	}
	if next.Signed.Version != s.root.Signed.Version+1 {
		return fmt.Errorf("%q is version %d of the root, and the hub's is %d: delete it", a.pendingFile(), next.Signed.Version, s.root.Signed.Version)
	}
	wait, err := s.offer(ctx, next)
	if wait != "" {
		notes[Root] = "a new version waits for signatures: " + wait
	}
	return err
}
