package hub

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Errors of publishing, wrapped with the package they are about.
var (
	// ErrTaken is a version that was published with other bytes. A version is
	// published once.
	ErrTaken = errors.New("this version is published already, with other bytes")
	// ErrNotOwner is a key other than the one that has the name.
	ErrNotOwner = errors.New("the name belongs to another key")
)

// Release is a package to publish.
type Release struct {
	Listing skillhub.Listing
	Key     string // the publisher's public key, whole; "" is unsigned
	Archive string // a file of this machine
}

// PublishOptions say what is otherwise refused.
type PublishOptions struct {
	// NewKey hands names over to the keys that signed these releases.
	NewKey bool
}

// Publish adds packages to the hub, all or none. What is there already, byte
// for byte, is left as it is. It returns those that are new.
func (a *Author) Publish(ctx context.Context, o PublishOptions, rs ...Release) ([]skillhub.Listing, error) {
	unlock, err := a.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := a.load()
	if err != nil {
		return nil, err
	}
	e := edit{state: s, docs: map[string]*Document{}}
	var added []skillhub.Listing
	for _, r := range rs {
		isNew, err := e.add(r, o)
		if err != nil {
			return nil, err
		}
		if isNew {
			added = append(added, e.docs[r.Listing.Name].last())
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	for _, r := range rs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := a.putBlob(ctx, r); err != nil {
			return nil, err
		}
	}
	return added, e.finish(ctx)
}

// edit changes documents, and with them the index.
type edit struct {
	*state
	docs map[string]*Document
}

// document reads a package's document once; a package that is new has an empty one.
func (e *edit) document(name string) (*Document, error) {
	if d := e.docs[name]; d != nil {
		return d, nil
	}
	d := Document{Format: 1, Name: name}
	b, err := e.target(documentTarget(name), maxDocument)
	if err == nil {
		d, err = ParseDocument(b, name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &d, nil
}

func (e *edit) add(r Release, o PublishOptions) (isNew bool, err error) {
	l := r.Listing
	l.Hub, l.Installs, l.Yanked, l.Published = "", 0, "", e.now.UTC().Truncate(1e9)
	if err := checkListing(&l); err != nil {
		return false, err
	}
	d, err := e.document(l.Name)
	if err != nil {
		return false, err
	}
	if old, err := d.Find(l.Version); err == nil {
		if old.Digest == l.Digest {
			return false, nil
		}
		return false, fmt.Errorf("%s %s: %w (%s)", l.Name, l.Version, ErrTaken, old.Digest.Short())
	}
	if len(d.Versions) > 0 && d.Owner != r.Key && !o.NewKey {
		return false, fmt.Errorf("%s %s: %w (%s, and this is signed by %s)", l.Name, l.Version, ErrNotOwner, keyName(d.last().KeyID), keyName(l.KeyID))
	}
	d.Owner = r.Key
	d.add(l)
	e.docs[l.Name] = d
	return true, nil
}

func keyName(id string) string {
	if id == "" {
		return "no key"
	}
	return "key " + id
}

// finish writes the documents, the index and the metadata.
func (e *edit) finish(ctx context.Context) error {
	rows, err := e.index()
	if err != nil {
		return err
	}
	for name, d := range e.docs {
		if err := ctx.Err(); err != nil {
			return err
		}
		b, err := d.encode()
		if err != nil {
			return err
		}
		if len(b) > maxDocument {
			return fmt.Errorf("%s has too many versions for one document", name)
		}
		if err := e.setTarget(documentTarget(name), b); err != nil {
			return err
		}
		if l := d.newest(); l != nil {
			rows[name] = *l
		} else {
			delete(rows, name)
		}
	}
	installs, err := e.a.Installs()
	if err != nil {
		return err
	}
	for name, l := range rows {
		l.Installs = max(l.Installs, installs[name])
		rows[name] = l
	}
	if err := e.setIndex(ctx, rows); err != nil {
		return err
	}
	if err := e.commit(ctx); err != nil {
		return err
	}
	return e.a.prune(e.state)
}

// putBlob copies an archive into the hub, and checks that it is the one that
// the listing is about.
func (a *Author) putBlob(ctx context.Context, r Release) error {
	name := blobPath(r.Listing.Digest)
	if st, err := os.Stat(a.path(name)); err == nil && st.Size() == r.Listing.Size {
		return nil // only whole files are ever there
	}
	in, err := os.Open(r.Archive)
	if err != nil {
		return err
	}
	defer in.Close()
	return a.writeFrom(name, func(w io.Writer) error {
		sum := sha256.New()
		n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(ctxReader{ctx, in}, skillhub.MaxArchive+1))
		if err != nil {
			return err
		}
		if n != r.Listing.Size || skillhub.DigestSum(sum.Sum(nil)) != r.Listing.Digest {
			return fmt.Errorf("%q: %w", r.Archive, skillhub.ErrMismatch)
		}
		return nil
	})
}

// ctxReader ends with its context.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Yank withdraws a version: it stays for those who have it pinned, and nothing
// resolves to it by itself any more. An empty reason takes that back.
func (a *Author) Yank(ctx context.Context, name, version, reason string) error {
	if len(reason) > maxDescription {
		return errors.New("the reason is too long")
	}
	unlock, err := a.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := a.load()
	if err != nil {
		return err
	}
	e := edit{state: s, docs: map[string]*Document{}}
	d, err := e.document(name)
	if err != nil {
		return err
	}
	for i := range d.Versions {
		if d.Versions[i].Version == version {
			d.Versions[i].Yanked = reason
			e.docs[name] = d
			return e.finish(ctx)
		}
	}
	return fmt.Errorf("%s %s: %w", name, version, skillhub.ErrNotFound)
}

// installsFile counts what was fetched, by names. It is the operator's own
// statistics: nobody signs it before it is in the index.
const installsFile = "installs.json"

// Installs reads the counts that the hub's server keeps.
func (a *Author) Installs() (map[string]int64, error) {
	b, err := disk.ReadFile(a.path(installsFile), maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out map[string]int64
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the counts in %q: %w", installsFile, err)
	}
	return out, nil
}

// SetInstalls writes the counts, for the next time that the index is made.
func (a *Author) SetInstalls(counts map[string]int64) error {
	b, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	return a.write(installsFile, b)
}
