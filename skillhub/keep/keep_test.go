package keep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/pack"
)

func newStore(t testing.TB) *Store {
	dir := t.TempDir()
	return &Store{Dir: filepath.Join(dir, "packages"), Lock: filepath.Join(dir, LockName)}
}

// archive packs a small package.
func archive(t testing.TB, name, version string) []byte {
	t.Helper()
	m := pack.Memory{
		"elf.toml": []byte(fmt.Sprintf("abi = \"elf/1\"\nname = %q\nversion = %q\n\n[[tools]]\nname = \"t\"\ndescription = \"one\"\n", name, version)),
		"SKILL.md": []byte("# " + name + "\n"), "plugin.wasm": append([]byte("\x00asm\x01\x00\x00\x00"), version...), "references/a.md": []byte("a"),
	}
	var b bytes.Buffer
	if _, err := pack.Write(context.Background(), &b, m.Entries(), pack.Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pinOf(t testing.TB, g *Stage) (Pin, Pinned) {
	t.Helper()
	m := g.Contents.Manifest
	tools, err := skillhub.ToolsDigest(m.Tools)
	if err != nil {
		t.Fatal(err)
	}
	wasm, _ := g.Contents.File(pack.ModuleFile)
	skill, _ := g.Contents.File(pack.SkillFile)
	return Pin{Version: m.Version, Source: "./x" + skillhub.Ext, Digest: g.Digest, Size: g.Size, Module: wasm.Digest, Skill: skill.Digest,
		Needs: manifest.NeedsHash(m.Needs), Tools: tools, Grants: []string{"fs.read /ws/**"}}, Pinned{Manifest: *m, Tools: m.Tools}
}

// install does all of an install, as far as it is the store's.
func install(t testing.TB, s *Store, b []byte) error {
	t.Helper()
	ctx := context.Background()
	g, err := s.Stage()
	if err != nil {
		return err
	}
	defer g.Close()
	if _, err := g.Write(b); err != nil {
		return err
	}
	if err := g.Unpack(ctx, skillhub.DigestOf(b), pack.Options{}); err != nil {
		return err
	}
	pin, pinned := pinOf(t, g)
	return g.Commit(ctx, pinned, func(l *Lock) error {
		l.Put(pinned.Manifest.Name, pin)
		return nil
	})
}

// look says which version is installed, and fails the test unless everything
// of it is whole. "" is none.
func look(t *testing.T, s *Store, name string) string {
	t.Helper()
	st, err := s.Load()
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	for _, in := range st.Installed {
		if in.Name != name {
			continue
		}
		if in.Broken != "" {
			t.Fatalf("%s is broken: %s", name, in.Broken)
		}
		if edited, err := s.Verify(context.Background(), in.Pin); err != nil || len(edited) > 0 {
			t.Fatalf("%s %s is not whole: %q, %v", name, in.Version, edited, err)
		}
		return in.Version
	}
	return ""
}

func TestInstallRollbackRemove(t *testing.T) {
	s := newStore(t)
	if v := look(t, s, "fetch"); v != "" {
		t.Errorf("an empty store has version %q", v)
	}
	for i := 1; i <= 5; i++ {
		if err := install(t, s, archive(t, "fetch", fmt.Sprintf("1.%d.0", i))); err != nil {
			t.Fatal(err)
		}
	}
	if v := look(t, s, "fetch"); v != "1.5.0" {
		t.Errorf("installed is %q", v)
	}
	l, err := ReadLock(s.Lock)
	if err != nil {
		t.Fatal(err)
	}
	p, _ := l.Find("fetch")
	var versions []string
	for _, o := range p.Previous {
		versions = append(versions, o.Version)
	}
	if strings.Join(versions, " ") != "1.4.0 1.3.0 1.2.0" {
		t.Errorf("it can go back to %v", versions)
	}
	for _, dir := range []string{"blobs", "files", "pins"} {
		if e, _ := os.ReadDir(filepath.Join(s.Dir, dir)); len(e) != 4 {
			t.Errorf("%s holds %d entries, for four versions", dir, len(e))
		}
	}
	if err := s.Change(context.Background(), func(l *Lock) error { l.Remove("fetch"); return nil }); err != nil {
		t.Fatal(err)
	}
	if e, _ := os.ReadDir(filepath.Join(s.Dir, "files")); len(e) != 0 {
		t.Errorf("%d packages stay after the last was removed", len(e))
	}
}

func TestHUB05DigestMismatch(t *testing.T) {
	s := newStore(t)
	if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(s.Lock)
	g, err := s.Stage()
	if err != nil {
		t.Fatal(err)
	}
	g.Write([]byte("not even an archive: nothing parses it"))
	err = g.Unpack(context.Background(), skillhub.DigestOf([]byte("x")), pack.Options{})
	if !errors.Is(err, skillhub.ErrMismatch) || errors.Is(err, pack.ErrRefused) || g.Contents != nil {
		t.Errorf("Unpack of other bytes than were promised: %v", err)
	}
	g.Close()
	if after, _ := os.ReadFile(s.Lock); !bytes.Equal(before, after) {
		t.Error("the lock file changed")
	}
	if e, _ := os.ReadDir(filepath.Join(s.Dir, "tmp")); len(e) != 0 {
		t.Errorf("%d stages stay", len(e))
	}
}

// steps counts the steps of an update.
func steps(t *testing.T) int {
	s := newStore(t)
	if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	n := 0
	s.at = func(string) error { n++; return nil }
	if err := install(t, s, archive(t, "fetch", "2.0.0")); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestKilledAtEveryStep kills a real process at each step of an update, and
// expects the whole old state or the whole new one, and that the next install
// works and tidies up.
func TestKilledAtEveryStep(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the test kills by a signal")
	}
	seen := map[string]int{}
	for k := range steps(t) {
		s := newStore(t)
		if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestChild$")
		cmd.Env = append(os.Environ(), "KEEP_DIR="+s.Dir, "KEEP_LOCK="+s.Lock, "KEEP_KILL="+strconv.Itoa(k))
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("step %d: the child was not killed: %v %s", k, err, out)
		}
		v := look(t, s, "fetch")
		if v != "1.0.0" && v != "2.0.0" {
			t.Errorf("killed at step %d: version %q", k, v)
		}
		seen[v]++
		if err := install(t, s, archive(t, "fetch", "3.0.0")); err != nil {
			t.Errorf("the install after a kill at step %d: %v", k, err)
		}
		if v := look(t, s, "fetch"); v != "3.0.0" {
			t.Errorf("after that the version is %q", v)
		}
		if e, _ := os.ReadDir(filepath.Join(s.Dir, "tmp")); len(e) != 0 {
			t.Errorf("killed at step %d: %d dead stages stay", k, len(e))
		}
	}
	if seen["1.0.0"] < 5 || seen["2.0.0"] < 1 {
		t.Errorf("kills left these states: %v; both are to be seen", seen)
	}
}

// TestChild is the process that is killed.
func TestChild(t *testing.T) {
	kill, err := strconv.Atoi(os.Getenv("KEEP_KILL"))
	if err != nil {
		t.Skip("it is run by other tests")
	}
	n := 0
	s := &Store{Dir: os.Getenv("KEEP_DIR"), Lock: os.Getenv("KEEP_LOCK"), at: func(string) error {
		if n == kill {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
			select {}
		}
		n++
		return nil
	}}
	if err := install(t, s, archive(t, "fetch", "2.0.0")); err != nil {
		t.Fatal(err)
	}
}

// TestFullDiskAtEveryStep: no space left, at each step: a clear error and the
// old state, with nothing left behind. Or the step was the last, and it is done.
func TestFullDiskAtEveryStep(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	for k := range steps(t) {
		s := newStore(t)
		if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(s.Lock)
		n := 0
		s.at = func(string) error {
			if n++; n > k { // from now on
				return full
			}
			return nil
		}
		err := install(t, s, archive(t, "fetch", "2.0.0"))
		s.at = nil
		v := look(t, s, "fetch")
		after, _ := os.ReadFile(s.Lock)
		switch {
		case err == nil && v != "2.0.0":
			t.Errorf("step %d: no error, and version %q", k, v)
		case err != nil && (v != "1.0.0" || !bytes.Equal(before, after)):
			t.Errorf("step %d: %v, and version %q", k, err, v)
		case err != nil && !errors.Is(err, syscall.ENOSPC):
			t.Errorf("step %d: %v does not say that the disk is full", k, err)
		}
		if e, _ := os.ReadDir(filepath.Join(s.Dir, "tmp")); len(e) != 0 {
			t.Errorf("step %d: %d stages stay", k, len(e))
		}
	}
}

func TestTwoInstallsAtOnce(t *testing.T) {
	s := newStore(t)
	waited := make(chan bool, 1)
	hold, err := s.exclusive(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	other := &Store{Dir: s.Dir, Lock: s.Lock, Waiting: func() { waited <- true }}
	done := make(chan error, 1)
	go func() { done <- install(t, other, archive(t, "a", "1.0.0")) }()
	<-waited
	select {
	case err := <-done:
		t.Fatalf("the second did not wait: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	hold()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	hold, _ = s.exclusive(context.Background())
	defer hold()
	if err := other.Change(ctx, func(*Lock) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting ends with the context: %v", err)
	}
}

func TestManyInstallsLoseNothing(t *testing.T) {
	s := newStore(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := install(t, &Store{Dir: s.Dir, Lock: s.Lock}, archive(t, fmt.Sprintf("p%d", i), "1.0.0")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	st, err := s.Load()
	if err != nil || len(st.Installed) != 8 {
		t.Fatalf("%d of 8 are installed, %v", len(st.Installed), err)
	}
}

func TestEditedFilesAreReportedAndKept(t *testing.T) {
	s := newStore(t)
	b := archive(t, "fetch", "1.0.0")
	if err := install(t, s, b); err != nil {
		t.Fatal(err)
	}
	l, _ := ReadLock(s.Lock)
	p, _ := l.Find("fetch")
	skill := filepath.Join(s.Files(p.Digest), "SKILL.md")
	os.WriteFile(skill, []byte("mine"), 0o644)
	os.WriteFile(filepath.Join(s.Files(p.Digest), "new"), []byte("mine"), 0o644)
	os.Remove(filepath.Join(s.Files(p.Digest), "references", "a.md"))
	edited, err := s.Verify(context.Background(), p.Pin)
	if err != nil || !slices.Equal(edited, []string{"SKILL.md", "new", "references/a.md"}) {
		t.Errorf("Verify: %q, %v", edited, err)
	}
	if err := install(t, s, b); !errors.Is(err, ErrEdited) || !strings.Contains(err.Error(), "SKILL.md") {
		t.Errorf("installing it again: %v", err)
	}
	if got, _ := os.ReadFile(skill); string(got) != "mine" {
		t.Errorf("the edited file was overwritten: %q", got)
	}
	os.WriteFile(s.Blob(p.Digest), []byte("x"), 0o600)
	if _, err := s.Verify(context.Background(), p.Pin); !errors.Is(err, ErrEdited) {
		t.Errorf("Verify of another archive: %v", err)
	}
}

// TestEveryByteOfTheLockMutated: no byte of the lock file changes unseen.
func TestEveryByteOfTheLockMutated(t *testing.T) {
	s := newStore(t)
	if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	err := s.Change(context.Background(), func(l *Lock) error {
		l.Publishers["acme"] = "RWQ"
		p, _ := l.Find("fetch")
		p.Hold, p.Disabled = "we wait for 2.0", "nobody granted it"
		old := p.Pin
		old.Version = "0.9.0"
		p.Previous, p.Update = []Pin{old}, &old
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(s.Lock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseLock(b); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		for _, bit := range []byte{1, 0x20} {
			m := slices.Clone(b)
			m[i] ^= bit
			if _, err := ParseLock(m); !errors.Is(err, ErrLock) {
				t.Fatalf("byte %d (%q) changed: %v", i, b[max(0, i-20):i+1], err)
			}
		}
	}
	for i := range b {
		if _, err := ParseLock(b[:i]); !errors.Is(err, ErrLock) {
			t.Fatalf("cut at byte %d: %v", i, err)
		}
	}
	os.WriteFile(s.Lock, b[:len(b)-1], 0o600)
	if _, err := s.Load(); !errors.Is(err, ErrLock) {
		t.Errorf("Load: %v", err)
	}
}

// TestIndexIsNotBelieved: descriptions are held against the lock file, wherever
// they were read.
func TestIndexIsNotBelieved(t *testing.T) {
	s := newStore(t)
	if err := install(t, s, archive(t, "fetch", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	edit := func(file, old, new string) {
		t.Helper()
		b, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(b, []byte(old)) {
			t.Fatalf("%s: %v", b, err)
		}
		os.WriteFile(file, bytes.ReplaceAll(b, []byte(old), []byte(new)), 0o600)
	}
	edit(s.indexFile(), `"one"`, `"two"`)
	if st, err := s.Load(); err != nil || st.Installed[0].Tools[0].Description != "one" {
		t.Errorf("another description in the index: %+v, %v", st.Installed, err)
	}
	os.Remove(s.indexFile())
	if v := look(t, s, "fetch"); v != "1.0.0" {
		t.Errorf("without its index: %q", v)
	}
	if _, err := os.Stat(s.indexFile()); err != nil {
		t.Errorf("the index was not made anew: %v", err)
	}
	l, _ := ReadLock(s.Lock)
	edit(s.pinFile(l.Packages[0].Digest), `"one"`, `"two"`)
	os.Remove(s.indexFile())
	if st, _ := s.Load(); st.Installed[0].Broken == "" {
		t.Error("another description in the pin is believed")
	}
}

func FuzzParseLock(f *testing.F) {
	l := &Lock{Packages: []Package{{Name: "a", Pin: Pin{Version: "1", Source: "a@1", Digest: skillhub.DigestOf(nil), Needs: manifest.NeedsHash([]abi.Need{})}}}}
	b, err := l.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("lock = 1\n[[package]]\nname = \"../x\"\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseLock(b)
		if err != nil {
			return
		}
		if again, err := l.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Fatalf("it is written differently: %v", err)
		}
	})
}
