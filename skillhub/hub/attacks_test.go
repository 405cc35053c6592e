package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/skillhub"
)

// TestHUB07Rollback: a hub that shows an old state that was signed once.
func TestHUB07Rollback(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "old"))
	old := tree(t, a.Dir)
	publish(t, a, release(t, "one", "1.2.0", "new"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	mustFetch(t, s, "one", "one1.2.0new")
	restore(t, a.Dir, old)
	refused(t, s, "one", skillhub.ErrRollback, "timestamp")
	refused(t, s, "one@1.0.0", skillhub.ErrRollback, "timestamp")
}

// TestHUB07OldSnapshot: whoever has the timestamp's key alone points to an old snapshot.
func TestHUB07OldSnapshot(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "old"))
	st := mustLoad(t, a)
	old := st.timestamp.Signed.Meta["snapshot.json"]
	publish(t, a, release(t, "one", "1.2.0", "new"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	mustFetch(t, s, "one", "one1.2.0new")
	st = mustLoad(t, a)
	b, err := st.stamp(old)
	if err == nil {
		err = a.write(metadataPath(Timestamp, 0), b)
	}
	if err != nil {
		t.Fatal(err)
	}
	refused(t, s, "one", skillhub.ErrRollback, "snapshot")
}

// TestHUB07OldBin: whoever has the keys of snapshot and timestamp brings an old bin back.
func TestHUB07OldBin(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "old"))
	old := mustLoad(t, a).snapshot.Signed.Meta
	publish(t, a, release(t, "one", "1.2.0", "new"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	mustFetch(t, s, "one", "one1.2.0new")
	st := mustLoad(t, a)
	maps.Copy(st.snapshot.Signed.Meta, old)
	if err := st.commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	refused(t, s, "one", skillhub.ErrRollback, "packages-")
}

func mustLoad(t testing.TB, a *Author) *state {
	t.Helper()
	s, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHUB07Freeze: a hub that shows the same state for ever.
func TestHUB07Freeze(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	o := options(t, c)
	s := use(t, o, "acme", a.Dir, root)
	mustFetch(t, s, "one", "one1.0.0x")
	c.pass(15)
	refused(t, s, "one", skillhub.ErrExpired, "what is installed keeps working, nothing new is installed")
	if _, err := a.Sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustFetch(t, s, "one", "one1.0.0x")

	// Without the network, what was kept counts until it expires, and no longer.
	web := httptest.NewServer(http.FileServer(http.Dir(a.Dir)))
	defer web.Close()
	s = use(t, o, "web", web.URL, root)
	o.Offline = "the network is off"
	off := NewSet(o, s.Remotes())
	refused(t, off, "one", skillhub.ErrOffline, "the network is off")
	c.pass(15)
	refused(t, off, "one", skillhub.ErrExpired, "nothing new is installed")
}

// TestHUB07MixAndMatch: files of different states of one hub, under the names
// that a client asks for.
func TestHUB07MixAndMatch(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "old"))
	old := mustLoad(t, a)
	publish(t, a, release(t, "one", "1.2.0", "new"))
	now := mustLoad(t, a)
	files := tree(t, a.Dir)
	doc := documentTarget("one")
	bin := now.targets.Signed.Delegations.GetRolesForTarget(doc)[0].Name
	binPath := func(s *state) string { return metadataPath(bin, s.snapshot.Signed.Meta[bin+".json"].Version) }
	docPath := func(s *state) string {
		_, b, err := s.bin(doc)
		if err != nil {
			t.Fatal(err)
		}
		return targetPath(doc, digestOf(b.Signed.Targets[doc]))
	}
	blob := func(version, body string) string { return blobPath(skillhub.DigestOf([]byte("one" + version + body))) }
	for what, swap := range map[string][2]string{
		"an old snapshot":    {metadataPath(Snapshot, now.snapshot.Signed.Version), metadataPath(Snapshot, old.snapshot.Signed.Version)},
		"an old bin":         {binPath(now), binPath(old)},
		"an old document":    {docPath(now), docPath(old)},
		"an old archive":     {blob("1.2.0", "new"), blob("1.0.0", "old")},
		"targets for bins":   {binPath(now), metadataPath(Targets, 1)},
		"a bin for targets":  {metadataPath(Targets, 1), binPath(now)},
		"one bin as another": {binPath(now), otherBin(now, bin)},
	} {
		mixed := maps.Clone(files)
		if swap[0] == swap[1] || mixed[swap[0]] == "" || mixed[swap[1]] == "" {
			t.Fatalf("%s: %q and %q are not two files of the hub", what, swap[0], swap[1])
		}
		mixed[swap[0]] = mixed[swap[1]]
		restore(t, a.Dir, mixed)
		s := use2(t, options(t, c), "acme", a.Dir, root)
		refused(t, s, "one", skillhub.ErrMismatch, "")
	}
}

func otherBin(s *state, not string) string {
	for _, role := range s.targets.Signed.Delegations.SuccinctRoles.GetRoles() {
		if role != not {
			return metadataPath(role, s.snapshot.Signed.Meta[role+".json"].Version)
		}
	}
	return ""
}

// use2 pins a hub without looking further than its root: what else is wrong
// with it is for Fetch to find.
func use2(t testing.TB, o Options, name, location string, root skillhub.Digest) *Set {
	t.Helper()
	offer, err := Look(context.Background(), o, location, root)
	if err != nil {
		t.Fatal(err)
	}
	dir := o.stateDir(name)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, pinnedFile), offer.bytes, 0o600)); err != nil {
		t.Fatal(err)
	}
	return NewSet(o, []Remote{{name, location, offer.Root}})
}

// TestHUB05DigestMismatch: another archive, and one of another size, under the
// name of the one that the document promises.
func TestHUB05DigestMismatch(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	r := release(t, "one", "1.0.0", "x")
	publish(t, a, r)
	s := use(t, options(t, c), "acme", a.Dir, root)
	for what, body := range map[string]string{"other bytes": "one1.0.0y", "shorter": "one1.0.0", "longer": "one1.0.0xx", "nothing": ""} {
		if err := os.WriteFile(a.path(blobPath(r.Listing.Digest)), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, _, err := fetch(s, "one"); !errors.Is(err, skillhub.ErrMismatch) {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
}

// TestForeignKeys: metadata that is well made and signed, by keys of another hub.
func TestForeignKeys(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	b, _ := newHub(t, c, InitOptions{})
	publish(t, b, release(t, "one", "1.0.1", "evil"))
	publish(t, b, release(t, "one", "1.0.2", "evil"))
	restore(t, a.Dir, tree(t, b.Dir))
	refused(t, s, "one", ErrUntrusted, "timestamp")
	if _, err := Look(t.Context(), options(t, c), a.Dir, root); !errors.Is(err, skillhub.ErrMismatch) {
		t.Errorf("looking at a hub with another root: %v", err)
	}
}

// TestPinnedRootIsHeld: what a client keeps is checked when it is used.
func TestPinnedRootIsHeld(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	o := options(t, c)
	s := use(t, o, "acme", a.Dir, root)
	for _, name := range []string{pinnedFile, "metadata/root.json"} {
		p := filepath.Join(o.stateDir("acme"), name)
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err = fetch(s, "one")
		if pinned := name == pinnedFile; errors.Is(err, skillhub.ErrMismatch) != pinned {
			t.Errorf("with a damaged %s: %v", name, err)
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeptMetadataIsDamaged: what is kept here can be had again.
func TestKeptMetadataIsDamaged(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	o := options(t, c)
	s := use(t, o, "acme", a.Dir, root)
	mustFetch(t, s, "one", "one1.0.0x")
	files, err := filepath.Glob(filepath.Join(o.stateDir("acme"), "metadata", "*.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("kept: %q, %v", files, err)
	}
	for _, file := range files {
		for _, body := range []string{"", "{", "{}", `{"signed":5}`, `{"signed":{"_type":"targets"},"signatures":[]}`, `{"signed":{"_type":"timestamp","version":9,"meta":{"snapshot.json":null}},"signatures":[]}`} {
			if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := fetch(s, "one"); err != nil {
				t.Errorf("with %q in %s: %v", body, filepath.Base(file), err)
			}
		}
	}
}

// TestBadServers: every way of not answering ends at a limit.
func TestBadServers(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	private := httptest.NewServer(http.FileServer(http.Dir(a.Dir)))
	defer private.Close()
	var bad http.HandlerFunc
	files := http.FileServer(http.Dir(a.Dir))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "timestamp.json") && bad != nil {
			bad(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer web.Close()
	o := options(t, c)
	s := use(t, o, "acme", web.URL, root)
	mustFetch(t, s, "one", "one1.0.0x")
	for _, x := range []struct {
		what string
		bad  http.HandlerFunc
		kind error
	}{
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 4096)); err != nil {
					return
				}
			}
		}, abi.ErrTooLarge},
		{"slow", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		}, context.DeadlineExceeded},
		{"redirecting for ever", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
		}, abi.ErrLimit},
		{"redirecting to another address of this machine", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, private.URL+r.URL.Path, http.StatusFound)
		}, abi.ErrDenied},
		{"redirecting to a private network", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		}, abi.ErrDenied},
		{"failing", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, abi.ErrUnavailable},
		{"empty", func(http.ResponseWriter, *http.Request) {}, nil},
	} {
		bad = x.bad
		if s.o.slow = 0; x.what == "slow" { // the others shall not fail for being late
			s.o.slow = 300 * time.Millisecond
		}
		_, _, err := fetch(s, "one")
		if err == nil || x.kind != nil && !errors.Is(err, x.kind) {
			t.Errorf("a server that is %s: %v, want %v", x.what, err, x.kind)
		}
	}
	bad, s.o.slow = nil, 0
	mustFetch(t, s, "one", "one1.0.0x") // nothing of that has stuck
}

// TestEveryByteMutated changes bytes of each kind of file: a fresh client
// refuses the hub, and says why.
func TestEveryByteMutated(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{Bits: 1})
	publish(t, a, release(t, "one", "1.0.0", "x"), release(t, "eight", "1.0.0", "y"))
	if _, err := a.Rotate(t.Context(), Timestamp, RotateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Sign(t.Context()); err != nil { // with the new key alone
		t.Fatal(err)
	}
	s := mustLoad(t, a)
	bin := func(name string) string {
		return s.targets.Signed.Delegations.GetRolesForTarget(documentTarget(name))[0].Name
	}
	if bin("one") == bin("eight") {
		t.Fatal("the packages of this test are in one bin")
	}
	seen, o := map[string]bool{}, options(t, c)
	for name, body := range tree(t, a.Dir) {
		kind := kindOfFile(s, name)
		if kind == "" {
			continue
		}
		seen[kind] = true
		step := max(1, len(body)/25) | 1
		for i := 0; i < len(body); i += step {
			flip := []byte{0x01, 0x20}[i%2] // another letter, and the other case
			b := []byte(body)
			b[i] ^= flip
			if err := os.WriteFile(a.path(name), b, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := whole(t, o, a.Dir, root, kind == "index"); err == nil || len(err.Error()) < 20 {
				t.Errorf("%s: byte %d of %s changed by %#x: %v", kind, i, name, flip, err)
			}
		}
		if err := os.WriteFile(a.path(name), []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 8 {
		t.Errorf("kinds of files that were changed: %v", seen)
	}
	if err := whole(t, o, a.Dir, root, true); err != nil {
		t.Errorf("the hub as it was: %v", err)
	}
}

// kindOfFile says what a client needs a file for; "" where it does not.
func kindOfFile(s *state, name string) string {
	base := filepath.Base(name)
	switch {
	case name == metadataDir+"/root.json", base == "1.root.json", s.outdated(base):
		return "" // the copy for people, the root that is pinned, and what is out of use
	case base == "timestamp.json":
		return Timestamp
	case strings.HasPrefix(name, metadataDir):
		_, role, _ := strings.Cut(strings.TrimSuffix(base, ".json"), ".")
		role, _, _ = strings.Cut(role, "-")
		return role
	case strings.HasPrefix(name, "blobs/"):
		return "archive"
	case strings.HasPrefix(name, "index/"):
		_, bin, err := s.bin(indexTarget)
		if err != nil || targetPath(indexTarget, digestOf(bin.Signed.Targets[indexTarget])) != name {
			return ""
		}
		return "index"
	}
	return "document"
}

// whole uses all of a hub, on a machine that has not seen it yet.
func whole(t testing.TB, o Options, location string, root skillhub.Digest, index bool) error {
	t.Helper()
	if err := o.forget("acme"); err != nil {
		t.Fatal(err)
	}
	s := use2(t, o, "acme", location, root)
	for _, name := range []string{"one", "eight"} {
		if _, _, err := fetch(s, name); err != nil {
			return err
		}
	}
	if !index {
		return nil
	}
	x, err := o.Index(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := x.Drop(context.Background(), "acme"); err != nil {
		t.Fatal(err)
	}
	return o.refreshIndex(context.Background(), x, s.remotes[0]).Err
}
