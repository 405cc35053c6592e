package hub

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/skillhub"
)

// TestMirrors carries a part of a hub over, in a folder and in one file; the
// other machine has no network, and the same code verifies what it gets.
func TestMirrors(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{Bits: 4})
	publish(t, a, release(t, "pdf-read", "1.0.0", "a"), release(t, "pdf-read", "1.1.0", "b"), release(t, "pdf-form", "1.0.0", "c"), release(t, "weather", "1.0.0", "d"))
	if _, err := a.Rotate(t.Context(), Timestamp, RotateOptions{}); err != nil {
		t.Fatal(err)
	}
	src := use(t, options(t, c), "acme", a.Dir, root)
	dir := t.TempDir()
	for _, to := range []struct {
		location string
		carry    func(sel Selection) (Mirrored, error)
	}{
		{filepath.Join(dir, "mirror"), func(sel Selection) (Mirrored, error) {
			return src.Mirror(t.Context(), "acme", filepath.Join(dir, "mirror"), sel)
		}},
		{filepath.Join(dir, "one"+BundleExt), func(sel Selection) (Mirrored, error) {
			return src.Bundle(t.Context(), "", filepath.Join(dir, "one"+BundleExt), sel)
		}},
	} {
		got, err := to.carry(Selection{Packages: []string{"pdf-*"}, Index: true})
		if err != nil || len(got.Packages) != 2 {
			t.Fatalf("%s: %+v, %v", to.location, got, err)
		}
		o := options(t, c)
		o.Offline = "this machine has no network"
		s := use(t, o, "carried", to.location, root)
		mustFetch(t, s, "pdf-read", "pdf-read1.1.0b")
		mustFetch(t, s, "carried/pdf-form@1.0.0", "pdf-form1.0.0c")
		refused(t, s, "pdf-read@1.0.0", skillhub.ErrNotFound, "a part of the hub")
		refused(t, s, "weather", skillhub.ErrNotFound, "a part of the hub")
		if r, err := s.Search(t.Context(), "pdf", 5); err != nil || len(r.Listings) != 2 || len(r.Notes) != 0 {
			t.Errorf("%s: searching: %+v, %v", to.location, r, err)
		}
		if strings.HasSuffix(to.location, BundleExt) {
			mutateBundle(t, o, to.location, root)
		}
		if got, err = to.carry(Selection{Packages: []string{"weather@1.0.0", "pdf-read"}, AllVersions: true}); err != nil || len(got.Packages) != 3 {
			t.Fatalf("again: %+v, %v", got, err)
		}
		mustFetch(t, s, "weather", "weather1.0.0d")
		mustFetch(t, s, "pdf-read@1.0.0", "pdf-read1.0.0a")
	}

	// A stick that forgot something is mended.
	worn := filepath.Join(dir, "mirror", filepath.FromSlash(blobPath(skillhub.DigestOf([]byte("weather1.0.0d")))))
	if err := os.WriteFile(worn, []byte("weather1.0.0x"), 0o644); err != nil {
		t.Fatal(err)
	}

	// The mirror follows the hub, with what it had.
	publish(t, a, release(t, "pdf-read", "1.2.0", "e"))
	if _, err := src.Mirror(t.Context(), "acme", filepath.Join(dir, "mirror"), Selection{Packages: []string{"weather"}}); err != nil {
		t.Fatal(err)
	}
	s := use(t, options(t, c), "carried", filepath.Join(dir, "mirror"), root)
	mustFetch(t, s, "weather", "weather1.0.0d")
	mustFetch(t, s, "pdf-form", "pdf-form1.0.0c")
	if _, err := src.Mirror(t.Context(), "acme", t.TempDir(), Selection{Packages: []string{"absent"}}); !errors.Is(err, skillhub.ErrNotFound) {
		t.Errorf("mirroring what is not there: %v", err)
	}
	c.pass(20) // nobody mirrors what has expired
	if _, err := src.Mirror(t.Context(), "acme", t.TempDir(), Selection{}); !errors.Is(err, skillhub.ErrExpired) {
		t.Errorf("mirroring an expired hub: %v", err)
	}
}

func mutateBundle(t *testing.T, o Options, file string, root skillhub.Digest) {
	t.Helper()
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(file, good, 0o644)
	want := slices.Sorted(slices.Values([]string{"pdf-read1.1.0b", "pdf-form1.0.0c"}))
	for i := 0; i < len(good); i += max(1, len(good)/60) {
		b := slices.Clone(good)
		b[i] ^= 0x11
		if err := errors.Join(os.WriteFile(file, b, 0o644), o.forget("x")); err != nil {
			t.Fatal(err)
		}
		offer, err := Look(t.Context(), o, file, root)
		if err != nil {
			continue
		}
		r, err := Pin(t.Context(), o, "x", file, offer)
		if err != nil {
			continue
		}
		for _, name := range []string{"pdf-read", "pdf-form"} {
			got, _, err := fetch(NewSet(o, []Remote{r}), name)
			if err == nil && !slices.Contains(want, got) {
				t.Errorf("byte %d of the bundle changed: %s is %q", i, name, got)
			}
			if errors.Is(err, zip.ErrChecksum) && !errors.Is(err, skillhub.ErrMismatch) {
				t.Errorf("byte %d of the bundle changed: %v is no mismatch", i, err)
			}
		}
	}
}

func TestFolderIsNotFollowedOut(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{})
	publish(t, a, release(t, "one", "1.0.0", "x"))
	s := use(t, options(t, c), "acme", a.Dir, root)
	stamp := a.path("metadata/timestamp.json")
	away := filepath.Join(t.TempDir(), "away.json")
	if err := errors.Join(os.Rename(stamp, away), os.Symlink(away, stamp)); err != nil {
		t.Skip("no links here: ", err)
	}
	if _, _, err := fetch(s, "one"); err == nil {
		t.Error("a link out of the hub was followed")
	}
	if err := os.Remove(stamp); err != nil {
		t.Fatal(err)
	}
	makeFIFO(t, stamp)
	if _, _, err := fetch(s, "one"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a FIFO: %v", err)
	}
}
