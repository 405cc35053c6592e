package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/store"
	"github.com/elfhost/elfhost/skillhub"
)

// day is where the clock of a test begins.
var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// clock is a time that a test moves.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func (c *clock) pass(days int) { c.Time = c.AddDate(0, 0, days) }

// newHub makes a hub in a folder of its own.
func newHub(t testing.TB, c *clock, o InitOptions) (*Author, skillhub.Digest) {
	t.Helper()
	a := &Author{Dir: filepath.Join(t.TempDir(), "hub"), Now: c.now, NoSync: true}
	if o.Bits == 0 {
		o.Bits = 2
	}
	root, err := a.Init(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return a, root
}

// release is a package whose archive is some bytes. What an archive holds is
// not this room's to know.
func release(t testing.TB, name, version, body string) Release {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive")
	b := []byte(name + version + body)
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return Release{Archive: file, Key: "RWQkey", Listing: skillhub.Listing{
		Name: name, Version: version, Publisher: "acme", KeyID: "ABCDEF0123456789", Description: "What " + name + " does", Kind: skillhub.Tool,
		Needs: []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://api.example GET"}, Reason: "to ask"}}, Tools: []string{"do_" + strings.ReplaceAll(name, "-", "_")},
		Digest: skillhub.DigestOf(b), Size: int64(len(b)),
	}}
}

func publish(t testing.TB, a *Author, rs ...Release) {
	t.Helper()
	if _, err := a.Publish(context.Background(), PublishOptions{}, rs...); err != nil {
		t.Fatal(err)
	}
}

// options are a machine that uses hubs.
func options(t testing.TB, c *clock) Options {
	dir := t.TempDir()
	h := &reach.HTTP{}
	t.Cleanup(func() { h.Close() })
	return Options{
		State: filepath.Join(dir, "hubs"), HTTP: h, Now: c.now,
		Rights: func(g policy.Grant) (policy.Rights, error) {
			gs, err := policy.New("a hub", g)
			return policy.Rights{Grants: gs}, err
		},
		Index: func(ctx context.Context) (*store.Index, error) {
			return store.OpenIndex(ctx, filepath.Join(dir, "hubs.db"))
		},
	}
}

// use adds a hub to a machine.
func use(t testing.TB, o Options, name, location string, root skillhub.Digest) *Set {
	t.Helper()
	offer, err := Look(context.Background(), o, location, root)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Pin(context.Background(), o, name, location, offer)
	if err != nil {
		t.Fatal(err)
	}
	return NewSet(o, []Remote{r})
}

func fetch(s *Set, ref string) (string, skillhub.Fetched, error) {
	r, err := skillhub.ParseRef(ref)
	if err != nil {
		return "", skillhub.Fetched{}, err
	}
	var b bytes.Buffer
	f, err := s.Fetch(context.Background(), r, &b)
	return b.String(), f, err
}

func mustFetch(t testing.TB, s *Set, ref, want string) skillhub.Fetched {
	t.Helper()
	got, f, err := fetch(s, ref)
	if err != nil {
		t.Fatalf("fetching %s: %v", ref, err)
	}
	if got != want {
		t.Fatalf("fetching %s gave %q, want %q", ref, got, want)
	}
	return f
}

func refused(t testing.TB, s *Set, ref string, kind error, text string) {
	t.Helper()
	_, _, err := fetch(s, ref)
	if err == nil || !errors.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Fatalf("fetching %s: %v; want %v with %q", ref, err, kind, text)
	}
}

func TestPublishAndFetch(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "read-pdf", "1.0.0", "a"), release(t, "weather", "0.9.0", "w"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	f := mustFetch(t, s, "acme/read-pdf", "read-pdf1.0.0a")
	if f.Source != "acme/read-pdf@1.0.0" || f.Listing == nil || f.Listing.Hub != "acme" || !strings.Contains(f.Vouched, "hub acme") {
		t.Errorf("Fetched = %+v", f)
	}
	publish(t, a, release(t, "read-pdf", "1.10.0", "b"), release(t, "read-pdf", "1.9.0", "c"), release(t, "read-pdf", "2.0.0-rc.1", "d"))
	mustFetch(t, s, "read-pdf", "read-pdf1.10.0b")
	mustFetch(t, s, "read-pdf@2.0.0-rc.1", "read-pdf2.0.0-rc.1d")
	mustFetch(t, s, "read-pdf@1.0.0", "read-pdf1.0.0a")
	refused(t, s, "read-pdf@3.0.0", skillhub.ErrNotFound, "no version 3.0.0")
	refused(t, s, "absent", skillhub.ErrNotFound, "has no package absent")
	refused(t, s, "other/read-pdf", skillhub.ErrNotFound, `no hub is called "other"`)

	if err := a.Yank(t.Context(), "read-pdf", "1.10.0", "it loses pages"); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, s, "read-pdf", "read-pdf1.9.0c")
	if f := mustFetch(t, s, "read-pdf@1.10.0", "read-pdf1.10.0b"); f.Listing.Yanked != "it loses pages" {
		t.Errorf("a withdrawn version is fetched without a word: %+v", f.Listing)
	}
	for version, why := range map[string]string{"1.0.0": "it is old", "1.9.0": "it is slow", "2.0.0-rc.1": "it eats pages"} {
		if err := a.Yank(t.Context(), "read-pdf", version, why); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, s, "read-pdf", skillhub.ErrNotFound, `1.10.0 because "it loses pages"`)
}

func TestPublishRefusesWhatIsTaken(t *testing.T) {
	c := &clock{day}
	a, _ := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "a"))
	if added, err := a.Publish(t.Context(), PublishOptions{}, release(t, "one", "1.0.0", "a")); err != nil || added != nil {
		t.Errorf("publishing the same again: %v, %v", added, err)
	}
	foreign := release(t, "one", "2.0.0", "x")
	foreign.Key = "RWQother" // with the same short name, which is anybody's to choose
	wrong, gone := release(t, "two", "1.0.0", "x"), release(t, "two", "1.0.0", "x")
	wrong.Listing.Size++
	gone.Archive = "nowhere"
	before := tree(t, a.Dir+"/metadata")
	for name, x := range map[string]struct {
		r    Release
		kind error
	}{
		"other bytes":   {release(t, "one", "1.0.0", "b"), ErrTaken},
		"another key":   {foreign, ErrNotOwner},
		"not the bytes": {wrong, skillhub.ErrMismatch},
		"no archive":    {gone, fs.ErrNotExist},
	} {
		if _, err := a.Publish(t.Context(), PublishOptions{}, release(t, "three", "1.0.0", "y"), x.r); !errors.Is(err, x.kind) {
			t.Errorf("%s: %v, want %v", name, err, x.kind)
		}
	}
	if after := tree(t, a.Dir+"/metadata"); !maps.Equal(before, after) {
		t.Error("a refused publish changed the metadata")
	}
	if _, err := a.Publish(t.Context(), PublishOptions{NewKey: true}, foreign); err != nil {
		t.Errorf("handing the name over: %v", err)
	}
	if _, err := a.Publish(t.Context(), PublishOptions{}, release(t, "one", "3.0.0", "x")); !errors.Is(err, ErrNotOwner) {
		t.Errorf("the former owner publishes: %v", err)
	}
}

// tree is what is in a folder.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(dir, p)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// restore puts a folder into a former state.
func restore(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for name, body := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestInitRefuses(t *testing.T) {
	c := &clock{day}
	a, _ := newHub(t, c, InitOptions{})
	if _, err := a.Init(t.Context(), InitOptions{}); !errors.Is(err, ErrExists) {
		t.Errorf("a second hub in one folder: %v", err)
	}
	for _, o := range []InitOptions{{Bits: 15}, {RootKeys: 1, RootThreshold: 2}, {RootKeys: 17}, {Days: map[string]int{"root": 0}}, {Days: map[string]int{"rot": 5}}} {
		b := &Author{Dir: filepath.Join(t.TempDir(), "hub")}
		if _, err := b.Init(t.Context(), o); err == nil {
			t.Errorf("Init(%+v) makes a hub", o)
		}
		if _, err := os.Stat(b.Dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Init(%+v) leaves a folder", o)
		}
	}
}

func TestAmbiguousName(t *testing.T) {
	c := &clock{day}
	o := options(t, c)
	var remotes []Remote
	for _, name := range []string{"one", "two"} {
		a, root := newHub(t, c, InitOptions{})
		publish(t, a, release(t, "both", "1.0.0", name), release(t, "only-"+name, "1.0.0", ""))
		remotes = append(remotes, use(t, o, name, a.Dir, root).Remotes()...)
	}
	s := NewSet(o, remotes)
	refused(t, s, "both", ErrAmbiguous, "one/both, two/both")
	mustFetch(t, s, "two/both", "both1.0.0two")
	mustFetch(t, s, "only-two", "only-two1.0.0")
	if err := os.RemoveAll(remotes[0].Location); err != nil {
		t.Fatal(err)
	}
	refused(t, s, "only-two", skillhub.ErrNotFound, "write HUB/only-two")
	mustFetch(t, s, "two/only-two", "only-two1.0.0")
}

func TestSearchOfHubs(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	unsigned := release(t, "pdf-two", "1.0.0", "")
	unsigned.Key, unsigned.Listing.KeyID = "", ""
	publish(t, a, unsigned, release(t, "pdf-one", "1.0.0", ""))
	o := options(t, c)
	s := use(t, o, "acme", a.Dir, root)
	search := func(text string, want ...string) Results {
		t.Helper()
		r, err := s.Search(t.Context(), text, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range r.Listings {
			got = append(got, l.Hub+"/"+l.Name+"@"+l.Version)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("Search(%q) = %q, want %q (notes %q)", text, got, want, r.Notes)
		}
		return r
	}
	search("pdf", "acme/pdf-one@1.0.0", "acme/pdf-two@1.0.0") // the signed one first
	publish(t, a, release(t, "pdf-one", "1.1.0", ""))
	if err := os.WriteFile(filepath.Join(a.Dir, installsFile), []byte(`{"pdf-one":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	publish(t, a, release(t, "other", "1.1.0", ""))
	search("pdf", "acme/pdf-one@1.0.0", "acme/pdf-two@1.0.0") // asked less than an hour ago
	c.Time = c.Add(2 * time.Hour)
	r := search("do_pdf_one", "acme/pdf-one@1.1.0")
	if l := r.Listings[0]; l.Installs != 7 || len(l.Needs) != 1 || l.Needs[0].Cap != abi.NetHTTP || l.Publisher != "acme" || l.KeyID == "" {
		t.Errorf("the listing lacks something: %+v", l)
	}
	// Without the hub, and long expired, the last index is searched, and it says so.
	if err := os.Rename(a.Dir, a.Dir+".away"); err != nil {
		t.Fatal(err)
	}
	c.pass(100)
	if r := search("pdf", "acme/pdf-one@1.1.0", "acme/pdf-two@1.0.0"); len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the index of 2026-11-30") {
		t.Errorf("notes = %q", r.Notes)
	}
	if err := Forget(t.Context(), o, "acme"); err != nil {
		t.Fatal(err)
	}
	s = NewSet(o, []Remote{{Name: "x", Location: "nowhere"}})
	search("pdf")
}

// TestConcurrentUse: many use one Set while the hub changes.
func TestConcurrentUse(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{Bits: 1})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if got, _, err := fetch(s, "one"); err != nil || !strings.HasPrefix(got, "one1.") {
					t.Errorf("fetched %q, %v", got, err)
				}
				if r, err := s.Search(context.Background(), "one", 3); err != nil || len(r.Listings) != 1 {
					t.Errorf("found %+v, %v", r, err)
				}
			}
		})
	}
	for i := range 5 {
		publish(t, a, release(t, "one", fmt.Sprintf("1.%d.0", i+1), "x"))
	}
	wg.Wait()
}
