package hub

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub"
)

// Options say how hubs are used.
type Options struct {
	State string // the folder in which what was seen of each hub is kept
	HTTP  *reach.HTTP
	// Rights are those of one hub, from the grant that reaching it asks for.
	Rights func(policy.Grant) (policy.Rights, error)
	// Offline, if not empty, says why the network may not be used. Hubs in
	// folders and bundles are used all the same.
	Offline string
	// Index opens the index for Search, which closes it.
	Index func(context.Context) (*store.Index, error)
	// MaxAge is how long Search takes an index for new; 0 is an hour, negative
	// is for ever.
	MaxAge time.Duration
	Now    func() time.Time // nil: time.Now

	slow time.Duration // in tests: the longest that one small file may take
}

func (o *Options) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// Set is the hubs that a person added. It is a skillhub.Source for references
// to packages of hubs. It is safe for concurrent use.
type Set struct {
	o       Options
	remotes []Remote
}

// NewSet makes a Set. Nothing is opened or fetched by it.
func NewSet(o Options, remotes []Remote) *Set { return &Set{o, slices.Clone(remotes)} }

// Remotes are the hubs, in the person's order.
func (s *Set) Remotes() []Remote { return slices.Clone(s.remotes) }

// named picks the hubs that a reference means.
func (s *Set) named(name string) ([]Remote, error) {
	if len(s.remotes) == 0 {
		return nil, fmt.Errorf("%w: no hub is known; `elfhost hub add NAME URL` adds one", skillhub.ErrNotFound)
	}
	if name == "" {
		return s.remotes, nil
	}
	for _, r := range s.remotes {
		if r.Name == name {
			return []Remote{r}, nil
		}
	}
	return nil, fmt.Errorf("%w: no hub is called %q; `elfhost hub list` shows those that are known", skillhub.ErrNotFound, name)
}

// ErrAmbiguous is a package's name that several hubs have. Which of them is
// meant is never guessed: whoever could publish the name on another hub would
// be installed from.
var ErrAmbiguous = errors.New("several hubs have a package of this name")

// found is a package in one state of a hub.
type found struct {
	*client
	doc Document
}

// lookup finds the one hub that has a package. The caller closes what it gets.
func (s *Set) lookup(ctx context.Context, r skillhub.Ref) (_ *found, err error) {
	if r.Kind != skillhub.Named {
		return nil, fmt.Errorf("%s is no package of a hub: %w", r, abi.ErrInvalid)
	}
	remotes, err := s.named(r.Hub)
	if err != nil {
		return nil, err
	}
	var hits []*found
	defer func() {
		for _, h := range hits {
			if err != nil || h != hits[0] {
				h.close()
			}
		}
	}()
	var absent []error
	for _, remote := range remotes {
		c, err := s.o.open(ctx, remote)
		if err != nil {
			return nil, s.unasked(r, err)
		}
		d, err := c.document(ctx, r.Name)
		switch {
		case err == nil:
			hits = append(hits, &found{c, d})
			continue
		case errors.Is(err, skillhub.ErrNotFound):
			absent = append(absent, err)
		default:
			c.close()
			return nil, s.unasked(r, err)
		}
		c.close()
	}
	if len(hits) == 0 {
		return nil, errors.Join(absent...)
	}
	if len(hits) > 1 {
		var names []string
		for _, h := range hits {
			names = append(names, h.remote.Name+"/"+r.Name)
		}
		return nil, fmt.Errorf("%w: say which one: %s", ErrAmbiguous, strings.Join(names, ", "))
	}
	return hits[0], nil
}

// unasked explains why one hub that cannot be asked stops a name that might be
// on another.
func (s *Set) unasked(r skillhub.Ref, err error) error {
	if r.Hub == "" && len(s.remotes) > 1 {
		return fmt.Errorf("%w (to ask only one hub, write HUB/%s)", err, r.Name)
	}
	return err
}

// Document is all that a hub says of a package.
func (s *Set) Document(ctx context.Context, r skillhub.Ref) (Document, error) {
	f, err := s.lookup(ctx, r)
	if err != nil {
		return Document{}, err
	}
	defer f.close()
	return f.doc, nil
}

// Fetch is skillhub.Source's. Without a version it takes the newest that is
// neither withdrawn nor a prerelease.
func (s *Set) Fetch(ctx context.Context, r skillhub.Ref, dst io.Writer) (skillhub.Fetched, error) {
	f, err := s.lookup(ctx, r)
	if err != nil {
		return skillhub.Fetched{}, err
	}
	defer f.close()
	l, err := f.doc.Find(r.Version)
	if err != nil {
		return skillhub.Fetched{}, fmt.Errorf("hub %s: %w", f.remote.Name, err)
	}
	until := f.expires()
	f.unlock() // what is to be fetched is known by its digest
	if err := f.archive(ctx, l, dst); err != nil {
		return skillhub.Fetched{}, fmt.Errorf("hub %s: %s %s: %w", f.remote.Name, l.Name, l.Version, err)
	}
	return skillhub.Fetched{
		Digest: l.Digest, Size: l.Size, Source: l.Ref().String(), Listing: &l,
		Vouched: fmt.Sprintf("hub %s, state %d, signed until %s", f.remote.Name, f.version(), until.Format(time.DateOnly)),
	}, nil
}

// archive copies a package's archive, and checks every byte of it.
func (c *client) archive(ctx context.Context, l skillhub.Listing, dst io.Writer) error {
	if c.place == nil {
		return c.away
	}
	in, err := c.place.open(ctx, blobPath(l.Digest), l.Size)
	if errors.Is(err, fs.ErrNotExist) {
		return errPart
	}
	if err != nil {
		return err
	}
	defer in.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(sum, dst), io.LimitReader(ctxReader{ctx, in}, l.Size+1))
	switch {
	case err != nil:
		return err
	case n != l.Size:
		return fmt.Errorf("the archive does not have the %d bytes that the hub states: %w", l.Size, skillhub.ErrMismatch)
	case skillhub.DigestSum(sum.Sum(nil)) != l.Digest:
		return fmt.Errorf("the archive is not %s: %w", l.Digest.Short(), skillhub.ErrMismatch)
	}
	return nil
}

// Refreshed is the state of a hub as it was just seen.
type Refreshed struct {
	Remote
	Version  int64     `json:"version,omitempty"` // of its snapshot
	Expires  time.Time `json:"expires,omitzero"`
	Packages int64     `json:"packages"` // in the index that is kept here
	Indexed  time.Time `json:"indexed,omitzero"`
	Err      error     `json:"-"`
}

// Refresh brings hubs up to date, their indexes included; all of them when name
// is empty. A hub that fails says so in its Err, and stays as it was.
func (s *Set) Refresh(ctx context.Context, name string) ([]Refreshed, error) {
	remotes, err := s.named(name)
	if err != nil {
		return nil, err
	}
	x, err := s.o.Index(ctx)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	var out []Refreshed
	for _, r := range remotes {
		out = append(out, s.o.refreshIndex(ctx, x, r))
	}
	return out, nil
}
