package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Results are what a search found.
type Results struct {
	Listings []skillhub.Listing
	// Notes say what the results may lack: which hub could not be asked, and of
	// when the index is that was searched instead.
	Notes []string
}

// Search finds packages of all hubs: the best match first, among those that
// match as well the signed ones, then those with more installs. An index that
// is older than MaxAge is brought up to date before; where that fails, the last
// one is searched. Listings that were found have no digest: a Document has it.
func (s *Set) Search(ctx context.Context, text string, limit int) (Results, error) {
	var out Results
	if _, err := s.named(""); err != nil {
		return out, err
	}
	x, err := s.o.Index(ctx)
	if err != nil {
		return out, err
	}
	defer x.Close()
	for _, r := range s.remotes {
		if note := s.freshen(ctx, x, r); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	if err := ctx.Err(); err != nil {
		return out, context.Cause(ctx)
	}
	known := map[string]bool{}
	for _, r := range s.remotes {
		known[r.Name] = true
	}
	found, err := x.Search(ctx, text, limit+len(s.remotes))
	if err != nil {
		return out, err
	}
	for _, f := range found {
		if !known[f.Set] || len(out.Listings) == limit {
			continue
		}
		var l skillhub.Listing
		if err := json.Unmarshal(f.Body, &l); err != nil {
			return out, fmt.Errorf("the index of hub %s: %w", f.Set, err)
		}
		l.Hub = f.Set
		out.Listings = append(out.Listings, l)
	}
	return out, nil
}

// freshen brings one index up to date if it is old, and says why it could not.
func (s *Set) freshen(ctx context.Context, x *store.Index, r Remote) string {
	age := s.o.MaxAge
	if age == 0 {
		age = time.Hour
		if !IsURL(r.Location) {
			age = 1 // a folder is near: what was just published in it is found
		}
	}
	checked := s.o.checked(r)
	if st, err := x.State(ctx, r.Name); err != nil || st.Tag == "" {
		checked = time.Time{} // the cache was cleared
	}
	if !checked.IsZero() && (age < 0 || s.o.now().Sub(checked) < age) {
		return ""
	}
	if s.o.Offline != "" && IsURL(r.Location) && !checked.IsZero() {
		return fmt.Sprintf("hub %s: the index of %s was searched: %s", r.Name, checked.Local().Format(time.DateTime), s.o.Offline)
	}
	got := s.o.refreshIndex(ctx, x, r)
	switch {
	case got.Err == nil:
		return ""
	case checked.IsZero():
		return fmt.Sprintf("hub %s was not searched: %v", r.Name, got.Err)
	}
	return fmt.Sprintf("hub %s: the index of %s was searched: %v", r.Name, checked.Local().Format(time.DateTime), got.Err)
}

// checkedFile is as old as the last time that a hub's index was found to be the
// hub's current one.
const checkedFile = "checked"

func (o *Options) checked(r Remote) time.Time {
	st, err := os.Stat(filepath.Join(o.stateDir(r.Name), checkedFile))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

func (o *Options) setChecked(r Remote, mark string) error {
	name := filepath.Join(o.stateDir(r.Name), checkedFile)
	if err := (disk.Writer{NoSync: true}).Write(name, []byte(mark), 0o600); err != nil {
		return err
	}
	return os.Chtimes(name, o.now(), o.now())
}

// refreshIndex brings a hub's metadata and index up to date.
func (o *Options) refreshIndex(ctx context.Context, x *store.Index, r Remote) (out Refreshed) {
	out.Remote = r
	defer func() {
		if st, err := x.State(ctx, r.Name); err == nil {
			out.Packages, out.Indexed = st.Rows, st.Time
		}
	}()
	c, err := o.open(ctx, r)
	if err != nil {
		out.Err = err
		return out
	}
	defer c.close()
	out.Version, out.Expires = c.version(), c.expires()
	if c.place == nil { // what is kept has not expired, but new it is not
		out.Err = fmt.Errorf("hub %s: %w", r.Name, c.away)
		return out
	}
	mark, err := c.loadIndex(ctx, x)
	if err != nil {
		out.Err = fmt.Errorf("hub %s: %w", r.Name, explain(err))
		return out
	}
	out.Err = o.setChecked(r, mark)
	return out
}

// loadIndex downloads the index if it is another than the one that is kept. The
// mark names both with the bin that lists the index: while the snapshot has the
// same bin, that need not be read.
func (c *client) loadIndex(ctx context.Context, x *store.Index) (mark string, err error) {
	have, err := x.State(ctx, c.remote.Name)
	if err != nil {
		return "", err
	}
	bin := c.binMark(indexTarget)
	last, err := disk.ReadFile(filepath.Join(c.o.stateDir(c.remote.Name), checkedFile), 1024)
	if mark = bin + " " + have.Tag; err == nil && bin != "" && string(last) == mark {
		return mark, nil
	}
	f, err := c.find(indexTarget)
	if err != nil {
		return "", err
	}
	tag := string(digestOf(f))
	mark = bin + " " + tag
	if have.Tag == tag {
		return mark, nil
	}
	b, err := c.target(ctx, indexTarget, maxIndex)
	if err != nil {
		return "", err
	}
	return mark, x.Replace(ctx, c.remote.Name, tag, indexEntries(b))
}

// binMark is the digest of the bin that a target belongs to; "" where the
// snapshot does not say.
func (c *client) binMark(target string) string {
	set := c.tuf.GetTrustedMetadataSet()
	role := c.targets().Delegations.SuccinctRoles.GetRolesForTarget(target)[0].Name
	if m := set.Snapshot.Signed.Meta[role+".json"]; m != nil && len(m.Hashes["sha256"]) == 32 {
		return skillhub.DigestSum(m.Hashes["sha256"]).Hex()
	}
	return ""
}

// indexEntries are the rows of an index as the store keeps them.
func indexEntries(b []byte) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for l, err := range decodeRows(b) {
			var e store.Entry
			if err == nil {
				e, err = entryOf(l)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func entryOf(l skillhub.Listing) (store.Entry, error) {
	body, err := json.Marshal(l)
	if err != nil {
		return store.Entry{}, err
	}
	if len(body) > maxIndexRow {
		return store.Entry{}, errors.New("a row of the index is too long")
	}
	return store.Entry{
		Key: l.Name, Name: l.Name, Text: l.Description, Extra: l.Publisher + " " + strings.Join(l.Tools, " "),
		Preferred: l.KeyID != "", Count: l.Installs, Body: body,
	}, nil
}
