package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Remote is a hub that a person added.
type Remote struct {
	Name     string          `json:"name"`     // on this machine
	Location string          `json:"location"` // a URL, a folder, or a bundle
	Root     skillhub.Digest `json:"root"`     // of the root that was pinned
}

// ErrUntrusted is metadata that others than the keys of the hub's root signed.
var ErrUntrusted = errors.New("its metadata is not signed by the keys that its root names")

// client uses one hub for one operation: it sees one state of it.
type client struct {
	o      *Options
	remote Remote
	place  place // nil: the network may not be used, and what is kept here has to do
	away   error // why place is nil
	tuf    *updater.Updater
	unlock func()
}

func (o *Options) stateDir(name string) string { return filepath.Join(o.State, name) }

// open readies a client, and refreshes its metadata as TUF's client workflow
// (section 5.3) has it: where the hub cannot be reached for want of a network
// that may be used, what was kept counts as long as it has not expired.
func (o *Options) open(ctx context.Context, r Remote) (_ *client, err error) {
	c := &client{o: o, remote: r}
	dir := o.stateDir(r.Name)
	if c.unlock, err = disk.Lock(ctx, filepath.Join(dir, ".lock")); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
			err = fmt.Errorf("hub %s: %w", r.Name, explain(err))
		}
	}()
	if c.place, err = o.openPlace(r.Location); err != nil {
		if !errors.Is(err, skillhub.ErrOffline) {
			return nil, err
		}
		c.away = err
	}
	root, err := c.trustedRoot()
	if err != nil {
		return nil, err
	}
	refresh := func() error { return guard(func() error { return c.refresh(ctx, root) }) }
	if err = refresh(); err != nil && c.mend(Timestamp, Snapshot, Targets) {
		err = refresh()
	}
	return c, err
}

// mend removes what is kept of some roles and cannot be read any more, as after
// a power cut: TUF's client takes that for an error of the hub's. It reports
// whether there was such a file.
func (c *client) mend(roles ...string) (mended bool) {
	for _, role := range roles {
		file := filepath.Join(c.metadataDir(), role+".json")
		b, err := disk.ReadFile(file, maxTargets)
		if err != nil {
			continue
		}
		switch role {
		case Timestamp:
			_, err = metadata.Timestamp().FromBytes(b)
		case Snapshot:
			_, err = metadata.Snapshot().FromBytes(b)
		default:
			_, err = metadata.Targets().FromBytes(b)
		}
		if err != nil {
			mended = os.Remove(file) == nil || mended
		}
	}
	return mended
}

func (c *client) close() {
	if c.place != nil {
		c.place.Close()
	}
	c.unlock()
}

// trustedRoot is the newest root that was verified here, else the pinned one.
func (c *client) trustedRoot() ([]byte, error) {
	pinned, err := disk.ReadFile(filepath.Join(c.o.stateDir(c.remote.Name), pinnedFile), maxRoot)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("its root is not on this machine any more; `elfhost hub add` pins it again: %w", skillhub.ErrNotFound)
	}
	if err != nil {
		return nil, err
	}
	if skillhub.DigestOf(pinned) != c.remote.Root {
		return nil, fmt.Errorf("the root that is kept here is not the one that was pinned (%s): %w", c.remote.Root.Short(), skillhub.ErrMismatch)
	}
	first, err := checkRoot(pinned)
	if err != nil {
		return nil, err
	}
	// What lies in the folder was verified before it was written; one that was
	// damaged since does not verify itself, and the walk begins anew.
	if b, err := disk.ReadFile(filepath.Join(c.metadataDir(), "root.json"), maxRoot); err == nil {
		if newest, err := checkRoot(b); err == nil && newest.VerifyDelegate(Root, newest) == nil && newest.Signed.Version >= first.Signed.Version {
			return b, nil
		}
	}
	return pinned, nil
}

func (c *client) metadataDir() string { return filepath.Join(c.o.stateDir(c.remote.Name), "metadata") }

func (c *client) refresh(ctx context.Context, root []byte) error {
	cfg := &config.UpdaterConfig{
		MaxRootRotations: maxRotations, MaxDelegations: 2,
		RootMaxLength: maxRoot, TimestampMaxLength: maxTimestamp, SnapshotMaxLength: maxSnapshot, TargetsMaxLength: maxTargets,
		Fetcher: &fetcher{ctx, c}, LocalTrustedRoot: root, RemoteMetadataURL: metadataDir, LocalMetadataDir: c.metadataDir(),
		LocalTargetsDir: c.metadataDir(), PrefixTargetsWithHash: true, UnsafeLocalMode: c.place == nil,
	}
	var err error
	if c.tuf, err = updater.New(cfg); err != nil {
		return err
	}
	c.tuf.UnsafeSetRefTime(c.o.now().UTC())
	if err := c.tuf.Refresh(); err != nil {
		if c.place == nil && errors.Is(err, fs.ErrNotExist) {
			return errors.Join(c.away, errors.New("and nothing of the hub was kept before"))
		}
		return err
	}
	return c.checkTargets()
}

// checkTargets refuses targets that a verifier would stumble over, though they
// are signed: their keys, and more bins than there may be.
func (c *client) checkTargets() error {
	d := c.targets().Delegations
	if d == nil || d.SuccinctRoles == nil {
		return errors.New("it has no hash bins: it is no hub")
	}
	if n := d.SuccinctRoles.BitLength; n < 1 || n > 14 {
		return fmt.Errorf("it has 1<<%d hash bins, which no hub has", n)
	}
	return checkKeys(d.Keys)
}

func (c *client) targets() *metadata.TargetsType {
	set := c.tuf.GetTrustedMetadataSet()
	return &set.Targets[Targets].Signed
}

// expires is when the first of what clients ask for expires.
func (c *client) expires() time.Time {
	set := c.tuf.GetTrustedMetadataSet()
	at := set.Timestamp.Signed.Expires
	for _, t := range []time.Time{set.Root.Signed.Expires, set.Snapshot.Signed.Expires, c.targets().Expires} {
		if t.Before(at) {
			at = t
		}
	}
	return at
}

// version is that of the snapshot: it grows with every change.
func (c *client) version() int64 {
	set := c.tuf.GetTrustedMetadataSet()
	return set.Snapshot.Signed.Version
}

// errPart is a file of the hub that is not where the client looks.
var errPart = fmt.Errorf("it is not in this mirror, which has a part of the hub: %w", skillhub.ErrNotFound)

// find looks a target up in its bin. fs.ErrNotExist: the hub has none such;
// errPart: the bin is not here.
func (c *client) find(name string) (f *metadata.TargetFiles, err error) {
	role := c.targets().Delegations.SuccinctRoles.GetRolesForTarget(name)[0].Name
	look := func() error {
		return guard(func() error {
			f, err = c.tuf.GetTargetInfo(name)
			return err
		})
	}
	if err = look(); err != nil && c.mend(role) {
		err = look()
	}
	set := c.tuf.GetTrustedMetadataSet()
	switch bin := set.Targets[role]; {
	case bin != nil && bin.Signed.Targets[name] == nil:
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	case bin == nil && errors.Is(err, fs.ErrNotExist):
		return nil, errPart
	}
	if err == nil && (f.Length < 0 || len(f.Hashes["sha256"]) != 32) {
		err = fmt.Errorf("%s: its bin does not say how long it is, or has no digest of it", name)
	}
	return f, err
}

// target reads a target, and verifies it.
func (c *client) target(ctx context.Context, name string, most int64) ([]byte, error) {
	f, err := c.find(name)
	if err != nil {
		return nil, err
	}
	if f.Length > most {
		return nil, &tooLarge{name, most}
	}
	if c.place == nil {
		return nil, c.away
	}
	b, err := readFrom(ctx, c.place, targetPath(name, digestOf(f)), f.Length)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errPart
	}
	if err != nil {
		return nil, err
	}
	return b, f.VerifyLengthHashes(b)
}

// document reads what the hub says of a package.
func (c *client) document(ctx context.Context, name string) (Document, error) {
	b, err := c.target(ctx, documentTarget(name), maxDocument)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Document{}, fmt.Errorf("hub %s has no package %s: %w", c.remote.Name, name, skillhub.ErrNotFound)
	case err != nil:
		return Document{}, fmt.Errorf("hub %s: %s: %w", c.remote.Name, name, explain(err))
	}
	d, err := ParseDocument(b, name)
	if err != nil {
		return d, fmt.Errorf("hub %s: %w", c.remote.Name, err)
	}
	for i := range d.Versions {
		d.Versions[i].Hub = c.remote.Name
	}
	return d, nil
}

// fetcher gives TUF's client what it asks for, from wherever the hub is.
type fetcher struct {
	ctx context.Context
	c   *client
}

// DownloadFile is updater.Fetcher's.
func (f *fetcher) DownloadFile(name string, most int64, _ time.Duration) ([]byte, error) {
	if f.c.place == nil {
		return nil, f.c.away
	}
	b, err := readFrom(f.ctx, f.c.place, name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, absent(name)
	}
	if err != nil {
		return nil, err
	}
	return b, canonical(name, b)
}

// absent is a file of metadata that is not there, as TUF's client wants to hear it.
type absent string

func (a absent) Error() string { return "the hub has no " + string(a) }

// Is makes it a file that does not exist.
func (a absent) Is(target error) bool { return target == fs.ErrNotExist }

// As makes it the answer of a web server.
func (a absent) As(target any) bool {
	t, ok := target.(**metadata.ErrDownloadHTTP)
	if ok {
		*t = &metadata.ErrDownloadHTTP{StatusCode: http.StatusNotFound, URL: string(a)}
	}
	return ok
}

// canonical refuses a file of metadata that is not written as elfhost writes
// it. Signatures cover what JSON means and not its bytes; of a timestamp and a
// root, which nothing lists by their digests, two spellings would both count.
func canonical(name string, b []byte) (err error) {
	var again []byte
	switch {
	case strings.HasSuffix(name, "timestamp.json"):
		again, err = rewrite[metadata.TimestampType](b)
	case strings.HasSuffix(name, "root.json"):
		again, err = rewrite[metadata.RootType](b)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if !bytes.Equal(again, b) {
		return fmt.Errorf("%s is not written as metadata is: its bytes were changed", name)
	}
	return nil
}

func rewrite[T metadata.Roles](b []byte) ([]byte, error) {
	md, err := new(metadata.Metadata[T]).FromBytes(b)
	if err != nil {
		return nil, err
	}
	return md.ToBytes(false)
}

// guard turns a panic into an error: whoever holds a signing key of a hub could
// otherwise end this program with metadata that has nothing where TUF's
// library expects something.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the hub's metadata cannot be verified: %v", p)
		}
	}()
	return f()
}

// explain says in our words what TUF refused, and gives it our kind of error.
func explain(err error) error {
	var large *tooLarge
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return fmt.Errorf("%w: %w", skillhub.ErrMismatch, large)
	case errors.Is(err, &metadata.ErrExpiredMetadata{}):
		return fmt.Errorf("%w (%s): what is installed keeps working, nothing new is installed", skillhub.ErrExpired, tufText(err))
	case errors.Is(err, &metadata.ErrBadVersionNumber{}):
		return fmt.Errorf("%w: %s", skillhub.ErrRollback, tufText(err))
	case errors.Is(err, &metadata.ErrLengthOrHashMismatch{}):
		return fmt.Errorf("%w: %s", skillhub.ErrMismatch, tufText(err))
	case errors.Is(err, &metadata.ErrUnsignedMetadata{}):
		return fmt.Errorf("%w: %s", ErrUntrusted, tufText(err))
	}
	return err
}

// tufText cuts the kind off that the library writes before its texts.
func tufText(err error) string {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, " error: "); ok {
		return rest
	}
	return text
}

// forget removes what was kept of a hub.
func (o *Options) forget(name string) error { return os.RemoveAll(o.stateDir(name)) }
