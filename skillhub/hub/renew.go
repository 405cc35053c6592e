package hub

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/elfhost/elfhost/skillhub"
)

// RoleStatus is the state of one role's metadata.
type RoleStatus struct {
	Role    string    `json:"role"`
	Version int64     `json:"version"`
	Expires time.Time `json:"expires"`
	Renewed bool      `json:"renewed,omitempty"` // by this call
	// Note says what is to be done, for people: whose signature is missing, or
	// that its key is elsewhere.
	Note string `json:"note,omitempty"`
}

// Status is a hub's metadata, role by role.
type Status struct {
	Root  skillhub.Digest `json:"root"` // the fingerprint of the newest root
	Roles []RoleStatus    `json:"roles"`
}

// Status reads the hub, and changes nothing.
func (a *Author) Status() (Status, error) {
	s, err := a.load()
	if err != nil {
		return Status{}, err
	}
	return s.status(nil)
}

// Sign renews what is past half of its life, the timestamp always, as far as
// the keys at hand allow; and completes a root that waits for signatures. It is
// what a hub's machine does every few days.
func (a *Author) Sign(ctx context.Context) (Status, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return Status{}, err
	}
	defer unlock()
	notes := map[string]string{}
	if err := a.signPending(ctx, notes); err != nil {
		return Status{}, err
	}
	s, err := a.load()
	if err != nil {
		return Status{}, err
	}
	before, err := s.status(nil)
	if err != nil {
		return Status{}, err
	}
	if err := s.renew(ctx, notes); err != nil {
		return Status{}, err
	}
	after, err := s.status(notes)
	if err != nil {
		return Status{}, err
	}
	for i := range after.Roles {
		after.Roles[i].Renewed = after.Roles[i].Version > before.Roles[i].Version || after.Roles[i].Expires.After(before.Roles[i].Expires)
	}
	return after, a.prune(s)
}

// aged reports metadata that is past half of its life.
func (s *state) aged(role string, expires time.Time) bool {
	return expires.Sub(s.now) < time.Duration(s.days[role])*12*time.Hour
}

// renew signs anew what is aged. What cannot be signed here is noted, unless it
// is what clients ask for every day.
func (s *state) renew(ctx context.Context, notes map[string]string) error {
	if err := s.renewRoot(notes); err != nil {
		return err
	}
	const elsewhere = "its key is not at hand; sign it before it expires"
	if s.aged(Targets, s.targets.Signed.Expires) {
		if s.dirtyTargets = s.canSign(Targets); !s.dirtyTargets {
			notes[Targets] = elsewhere
		}
	}
	bins := s.targets.Signed.Delegations.SuccinctRoles
	for _, role := range bins.GetRoles() {
		md, err := s.binOf(role)
		if err != nil {
			return err
		}
		switch {
		case !s.aged(Packages, md.Signed.Expires):
		case len(s.ring.of(bins.KeyIDs)) >= bins.Threshold:
			s.dirtyBins[role] = true
		default:
			notes[Packages] = elsewhere
		}
	}
	if len(s.dirtyBins) > 0 || s.dirtyTargets || s.aged(Snapshot, s.snapshot.Signed.Expires) {
		if s.canSign(Snapshot) {
			return s.commit(ctx)
		}
		notes[Snapshot] = elsewhere // and nothing else is renewed without it
	}
	b, err := s.stamp(s.timestamp.Signed.Meta["snapshot.json"])
	if err != nil {
		return err
	}
	return s.a.write(metadataPath(Timestamp, 0), b)
}

func (s *state) canSign(role string) bool {
	n := rootNeed(s.root, role)
	return len(s.ring.of(n.ids)) >= n.threshold
}

// renewRoot makes a new version of an aged root with the same keys.
func (s *state) renewRoot(notes map[string]string) error {
	if !s.aged(Root, s.root.Signed.Expires) {
		return nil
	}
	if !s.canSign(Root) {
		notes[Root] = "its keys are not at hand; sign it before it expires: `elfhost hub rotate DIR root --keep-keys`"
		return nil
	}
	next, err := s.newRoot()
	if err != nil {
		return err
	}
	b, err := signFile(next, s.ring, Root, rootNeed(next, Root))
	if err != nil {
		return err
	}
	if err := s.a.putRoot(next.Signed.Version, b); err != nil {
		return err
	}
	s.root = next
	return nil
}

// newRoot is a copy of the root as its next version.
func (s *state) newRoot() (*metadata.Metadata[metadata.RootType], error) {
	b, err := s.root.ToBytes(false)
	if err != nil {
		return nil, err
	}
	next, err := metadata.Root().FromBytes(b)
	if err != nil {
		return nil, err
	}
	next.ClearSignatures()
	next.Signed.Version++
	next.Signed.Expires = expiry(s.now, s.days[Root])
	return next, nil
}

// putRoot publishes a root: its own name first, which is what clients walk to.
func (a *Author) putRoot(version int64, b []byte) error {
	return errors.Join(a.write(metadataPath(Root, version), b), a.write(metadataDir+"/root.json", b))
}

func (s *state) status(notes map[string]string) (Status, error) {
	b, err := os.ReadFile(s.a.path(metadataPath(Root, s.root.Signed.Version)))
	if err != nil {
		return Status{}, err
	}
	oldest := RoleStatus{Role: Packages}
	for _, role := range s.targets.Signed.Delegations.SuccinctRoles.GetRoles() {
		md, err := s.binOf(role)
		if err != nil {
			return Status{}, err
		}
		oldest.Version = max(oldest.Version, md.Signed.Version)
		if oldest.Expires.IsZero() || md.Signed.Expires.Before(oldest.Expires) {
			oldest.Expires = md.Signed.Expires
		}
	}
	out := Status{Root: skillhub.DigestOf(b), Roles: []RoleStatus{
		{Role: Root, Version: s.root.Signed.Version, Expires: s.root.Signed.Expires},
		{Role: Targets, Version: s.targets.Signed.Version, Expires: s.targets.Signed.Expires},
		oldest,
		{Role: Snapshot, Version: s.snapshot.Signed.Version, Expires: s.snapshot.Signed.Expires},
		{Role: Timestamp, Version: s.timestamp.Signed.Version, Expires: s.timestamp.Signed.Expires},
	}}
	for i := range out.Roles {
		r := &out.Roles[i]
		r.Note = notes[r.Role]
		if r.Note == "" && r.Expires.Before(s.now) {
			r.Note = "it has expired: clients install nothing new"
		}
	}
	return out, nil
}
