package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// pinnedFile is the root that a person agreed to.
const pinnedFile = "pinned-root.json"

// Offer is a hub's root that a person may pin.
type Offer struct {
	Root      skillhub.Digest // its fingerprint: sha256sum of root.json
	Version   int64
	Expires   time.Time
	Keys      int // that the root has
	Threshold int // of them that sign it

	bytes []byte
}

// Look reads the root of a hub that is not known yet. With want, it is the
// version of the root that has this fingerprint: one that was published long
// ago still leads to the newest. Nothing is kept.
func Look(ctx context.Context, o Options, location string, want skillhub.Digest) (Offer, error) {
	p, err := o.openPlace(location)
	if err != nil {
		return Offer{}, err
	}
	defer p.Close()
	b, err := readFrom(ctx, p, metadataDir+"/root.json", maxRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return Offer{}, fmt.Errorf("there is no hub at %q: %w", location, skillhub.ErrNotFound)
	}
	if err != nil {
		return Offer{}, err
	}
	newest, err := offer(b)
	if err != nil || want == "" || newest.Root == want {
		return newest, err
	}
	for v := newest.Version - 1; v > 0 && v > newest.Version-maxRotations; v-- {
		b, err := readFrom(ctx, p, metadataPath(Root, v), maxRoot)
		if err != nil {
			break
		}
		if skillhub.DigestOf(b) == want {
			return offer(b)
		}
	}
	return Offer{}, fmt.Errorf("the hub at %q has the root %s, and none with the fingerprint %s: %w", location, newest.Root, want, skillhub.ErrMismatch)
}

func offer(b []byte) (Offer, error) {
	root, err := checkRoot(b)
	if err == nil {
		err = guard(func() error { return root.VerifyDelegate(Root, root) })
	}
	if err != nil {
		return Offer{}, fmt.Errorf("what is there is no root of a hub: %w", err)
	}
	return Offer{
		Root: skillhub.DigestOf(b), Version: root.Signed.Version, Expires: root.Signed.Expires, bytes: b,
		Keys: len(root.Signed.Roles[Root].KeyIDs), Threshold: root.Signed.Roles[Root].Threshold,
	}, nil
}

// Pin keeps a root that a person agreed to, and verifies the hub with it. Where
// that fails, nothing is kept.
func Pin(ctx context.Context, o Options, name, location string, root Offer) (Remote, error) {
	r := Remote{Name: name, Location: location, Root: root.Root}
	if err := o.forget(name); err != nil {
		return r, err
	}
	if err := (disk.Writer{}).Write(filepath.Join(o.stateDir(name), pinnedFile), root.bytes, 0o600); err != nil {
		return r, err
	}
	c, err := o.open(ctx, r)
	if err != nil {
		return r, errors.Join(err, o.forget(name))
	}
	c.close()
	return r, nil
}

// Forget removes all that was kept of a hub, its index included.
func Forget(ctx context.Context, o Options, name string) error {
	x, err := o.Index(ctx)
	if err != nil {
		return err
	}
	return errors.Join(x.Drop(ctx, name), x.Close(), o.forget(name))
}
