package hub

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/skillhub"
)

// TestRotate: clients that pinned the first root follow, and the old key is
// worth nothing any more.
func TestRotate(t *testing.T) {
	for _, role := range Roles() {
		t.Run(role, func(t *testing.T) {
			c := &clock{day}
			a, root := newHub(t, c, InitOptions{Bits: 1})
			publish(t, a, release(t, "one", "1.0.0", "x"))
			s := use(t, options(t, c), "acme", a.Dir, root)
			mustFetch(t, s, "one", "one1.0.0x")
			got, err := a.Rotate(t.Context(), role, RotateOptions{})
			if err != nil || got.Pending != "" || got.New == "" || got.Revoked == "" {
				t.Fatalf("Rotate = %+v, %v", got, err)
			}
			mustFetch(t, s, "one", "one1.0.0x")
			publish(t, a, release(t, "one", "1.1.0", "y"))
			mustFetch(t, s, "one", "one1.1.0y")
			mustFetch(t, use(t, options(t, c), "acme", a.Dir, root), "one", "one1.1.0y")

			// The thief of the old key, with all the others as they are.
			retired, err := filepath.Glob(filepath.Join(a.KeyDirs()[0], "*"+retiredExt))
			if err != nil || len(retired) != 1 {
				t.Fatalf("retired keys: %q, %v", retired, err)
			}
			if err := errors.Join(os.Remove(got.New), os.Rename(retired[0], strings.TrimSuffix(retired[0], retiredExt))); err != nil {
				t.Fatal(err)
			}
			if role == Root { // is needed for the next root only
				_, err = a.Rotate(t.Context(), Timestamp, RotateOptions{})
				if w, _ := os.ReadFile(a.pendingFile()); err != nil || len(w) == 0 {
					t.Errorf("the old root key makes a new root: %v", err)
				}
				return
			}
			if role == Targets {
				_, err = a.Rotate(t.Context(), Packages, RotateOptions{})
			} else {
				_, err = a.Publish(t.Context(), PublishOptions{}, release(t, "one", "1.2.0", "z"))
			}
			if !errors.Is(err, ErrNoKey) {
				t.Errorf("the old key still signs: %v", err)
			}
		})
	}
}

// TestRootThreshold: two of three root keys, each in a place of its own.
func TestRootThreshold(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{RootKeys: 3, RootThreshold: 2})
	keys, err := filepath.Glob(filepath.Join(a.KeyDirs()[0], "root-*.key"))
	if err != nil || len(keys) != 3 {
		t.Fatalf("root keys: %q, %v", keys, err)
	}
	var sticks []string
	for _, k := range keys {
		dir := t.TempDir()
		if err := os.Rename(k, filepath.Join(dir, filepath.Base(k))); err != nil {
			t.Fatal(err)
		}
		sticks = append(sticks, dir)
	}
	s := use(t, options(t, c), "acme", a.Dir, root)
	online := a.KeyDirs()[0]
	publish(t, a, release(t, "one", "1.0.0", "x")) // without any root key

	a.Keys = []string{online, sticks[0]}
	got, err := a.Rotate(t.Context(), Snapshot, RotateOptions{})
	if err != nil || !strings.HasPrefix(got.Pending, "1 more of ") {
		t.Fatalf("with one of two: %+v, %v", got, err)
	}
	publish(t, a, release(t, "one", "1.1.0", "y")) // with the old snapshot key: nothing has changed yet
	mustFetch(t, s, "one", "one1.1.0y")
	if _, err := a.Rotate(t.Context(), Timestamp, RotateOptions{}); err == nil {
		t.Error("a second root is begun while one waits")
	}
	a.Keys = []string{online, sticks[2]}
	st, err := a.Sign(t.Context())
	if err != nil || st.Roles[0].Version != 2 || st.Roles[0].Note != "" {
		t.Fatalf("completing it: %+v, %v", st, err)
	}
	a.Keys = []string{online}
	publish(t, a, release(t, "one", "1.2.0", "z"))
	mustFetch(t, s, "one", "one1.2.0z")
	if fresh := use(t, options(t, c), "acme", a.Dir, st.Root); fresh.remotes[0].Root == root {
		t.Error("the new root has the fingerprint of the old one")
	}
}

func TestPassphrase(t *testing.T) {
	c := &clock{day}
	a, _ := newHub(t, c, InitOptions{Bits: 1, Passphrase: []byte("correct horse")})
	for name, body := range tree(t, a.KeyDirs()[0]) {
		if st, err := os.Stat(filepath.Join(a.KeyDirs()[0], name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, mode %v", name, err, st.Mode())
		}
		if strings.HasSuffix(name, keyExt) && !strings.Contains(body, `"sealed"`) {
			t.Errorf("%s lies in the clear", name)
		}
	}
	b := &Author{Dir: a.Dir, Now: c.now, NoSync: true}
	r := release(t, "one", "1.0.0", "x")
	if _, err := b.Publish(t.Context(), PublishOptions{}, r); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a passphrase: %v", err)
	}
	asked := 0
	b.Passphrase = func(string) ([]byte, error) { asked++; return []byte("battery staple"), nil }
	if _, err := b.Publish(t.Context(), PublishOptions{}, r); err == nil || !strings.Contains(err.Error(), "does not open") {
		t.Errorf("with another passphrase: %v", err)
	}
	asked = 0
	b.Passphrase = func(string) ([]byte, error) { asked++; return []byte("correct horse"), nil }
	if _, err := b.Publish(t.Context(), PublishOptions{}, r); err != nil || asked != 1 {
		t.Errorf("with the passphrase, asked %d times: %v", asked, err)
	}
}

func TestKeyFilesAreChecked(t *testing.T) {
	c := &clock{day}
	a, _ := newHub(t, c, InitOptions{Bits: 1})
	dir := a.KeyDirs()[0]
	keys, err := filepath.Glob(filepath.Join(dir, "timestamp-*.key"))
	if err != nil || len(keys) != 1 {
		t.Fatalf("%q, %v", keys, err)
	}
	good, err := os.ReadFile(keys[0])
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func() error{
		"readable by all": func() error { return os.Chmod(keys[0], 0o644) },
		"empty":           func() error { return os.WriteFile(keys[0], nil, 0o600) },
		"of other halves": func() error {
			other, err := newKey(t.TempDir(), Timestamp, nil)
			if err != nil {
				return err
			}
			_, seed, _ := strings.Cut(string(good), `"seed"`)
			b, err := os.ReadFile(other.file)
			head, _, _ := strings.Cut(string(b), `"seed"`)
			return errors.Join(err, os.WriteFile(keys[0], []byte(head+`"seed"`+seed), 0o600))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		_, err := a.Sign(t.Context())
		if err == nil || strings.Contains(err.Error(), "seed") {
			t.Errorf("a key file that is %s: %v", what, err)
		}
		if err := errors.Join(os.WriteFile(keys[0], good, 0o600), os.Chmod(keys[0], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSignRenews: every role is renewed when half of its life is over.
func TestSignRenews(t *testing.T) {
	c := &clock{day}
	a, root := newHub(t, c, InitOptions{Bits: 1})
	s := use(t, options(t, c), "acme", a.Dir, root)
	publish(t, a, release(t, "one", "1.0.0", "x"))
	for range 160 { // over two years, every five days
		c.pass(5)
		st, err := a.Sign(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range st.Roles {
			if r.Note != "" || !r.Expires.After(c.Time) {
				t.Fatalf("on %s: %+v", c.Time, r)
			}
		}
	}
	mustFetch(t, s, "one", "one1.0.0x")
	if n := len(tree(t, a.path(metadataDir))); n > 40 {
		t.Errorf("%d files of metadata are left", n)
	}
}

// TestSignSaysWhatItCannot: a machine that has the timestamp's key alone.
func TestSignSaysWhatItCannot(t *testing.T) {
	c := &clock{day}
	a, _ := newHub(t, c, InitOptions{Bits: 1})
	for name := range tree(t, a.KeyDirs()[0]) {
		if strings.HasSuffix(name, keyExt) && !strings.HasPrefix(name, Timestamp) {
			if err := os.Remove(filepath.Join(a.KeyDirs()[0], name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.pass(50)
	st, err := a.Sign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Roles {
		if r.Renewed != (r.Role == Timestamp) || (r.Note != "") != (r.Role == Snapshot) {
			t.Errorf("after 50 days: %+v", r)
		}
	}
	c.pass(350)
	if st, err = a.Sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range st.Roles {
		if (r.Note != "") != (r.Role != Timestamp) {
			t.Errorf("after 400 days: %+v", r)
		}
	}
}

// TestKilledAnywhere ends every change of a hub before each file that it
// writes. Clients see the old hub or the new one, and the next change works.
func TestKilledAnywhere(t *testing.T) {
	killed := errors.New("killed")
	type change struct {
		name string
		do   func(*Author) error
		want []string // what "one" may be afterwards
	}
	changes := []change{
		{"publish", func(a *Author) error {
			_, err := a.Publish(t.Context(), PublishOptions{}, release(t, "one", "1.1.0", "y"), release(t, "two", "1.0.0", "z"))
			return err
		}, []string{"one1.0.0x", "one1.1.0y"}},
		{"yank", func(a *Author) error { return a.Yank(t.Context(), "one", "1.0.0", "bad") }, []string{"one1.0.0x", ""}},
		{"sign", func(a *Author) error { _, err := a.Sign(t.Context()); return err }, []string{"one1.0.0x"}},
	}
	for _, role := range Roles() {
		changes = append(changes, change{"rotate " + role, func(a *Author) error {
			_, err := a.Rotate(t.Context(), role, RotateOptions{})
			return err
		}, []string{"one1.0.0x"}})
	}
	for _, x := range changes {
		t.Run(x.name, func(t *testing.T) {
			c := &clock{day}
			a, root := newHub(t, c, InitOptions{Bits: 1})
			publish(t, a, release(t, "one", "1.0.0", "x"))
			hub, keys := tree(t, a.Dir), tree(t, a.KeyDirs()[0])
			for n := 0; ; n++ {
				restore(t, a.Dir, hub)
				restore(t, a.KeyDirs()[0], keys)
				private(t, a.KeyDirs()[0])
				before := use(t, options(t, c), "acme", a.Dir, root)
				left := n
				a.writing = func(string) error {
					if left--; left < 0 {
						return killed
					}
					return nil
				}
				err := x.do(a)
				a.writing = nil
				if err != nil && !errors.Is(err, killed) {
					t.Fatal(err)
				}
				for _, s := range []*Set{before, use(t, options(t, c), "acme", a.Dir, root)} {
					got, _, ferr := fetch(s, "one")
					if ferr != nil && !errors.Is(ferr, skillhub.ErrNotFound) {
						t.Fatalf("before file %d: %v", n, ferr)
					}
					if ok := fmt.Sprintf("%q", x.want); !strings.Contains(ok, fmt.Sprintf("%q", got)) {
						t.Fatalf("before file %d: one is %q, want one of %s", n, got, ok)
					}
				}
				if _, err := a.Publish(t.Context(), PublishOptions{}, release(t, "three", "1.0.0", "w")); err != nil {
					t.Fatalf("after being killed before file %d: %v", n, err)
				}
				mustFetch(t, before, "three", "three1.0.0w")
				if err == nil {
					return
				}
			}
		})
	}
}

// private makes key files that a test has copied as they have to be.
func private(t testing.TB, dir string) {
	t.Helper()
	for name := range maps.Keys(tree(t, dir)) {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
