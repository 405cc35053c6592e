package app_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/skillhub"
)

// spinModule works for ever at each call.
const spinModule = "0061736d01000000010e0260017f017f60047f7f7f7f017e03030200010503010001072103066d656d6f7279020009656c665f616c6c6f63000008656c665f63616c6c00010a110205004180200b090003400c000b42000b"

// machine is a person's own folders, which several sessions share.
type machine struct {
	t     *testing.T
	dir   string
	paths config.Paths
}

func newMachine(t *testing.T) *machine {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	m := &machine{t, filepath.Join(dir, "ws"), config.Paths{Config: home, State: filepath.Join(home, "state"), Cache: filepath.Join(home, "cache"), SystemPolicy: filepath.Join(home, "none")}}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) open(allow ...string) *app.App {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	a, err := app.Open(m.t.Context(), app.Options{Dir: m.dir, Paths: &m.paths, Env: func(string) string { return "" }, Allow: allow, Compiler: self})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

// folder makes a package's folder, whose one tool is called like it.
func (m *machine) folder(name, module string) skillhub.Ref {
	m.t.Helper()
	dir := filepath.Join(m.dir, "..", name)
	wasm, err := hex.DecodeString(module)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
	text := fmt.Sprintf("abi = \"elf/1\"\nname = %q\nversion = \"1.0.0\"\n[limits]\ntime = \"60s\"\n[[needs]]\ncap = \"net.http\"\nscope = \"https://a.example GET\"\nreason = \"to fetch\"\n[[tools]]\nname = %q\ndescription = \"It\"\n", name, name)
	for file, b := range map[string][]byte{"elf.toml": []byte(text), "plugin.wasm": wasm} {
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
	return skillhub.Ref{Kind: skillhub.Local, Location: dir}
}

func (m *machine) install(a *app.App, ref skillhub.Ref) *app.Candidate {
	m.t.Helper()
	c, err := a.Prepare(m.t.Context(), ref, app.InstallOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer c.Close()
	if err := c.Commit(m.t.Context(), c.Asked(), nil); err != nil {
		m.t.Fatal(err)
	}
	return c
}

// until waits for something that another session did.
func until(t *testing.T, a *app.App, what string, ok func() bool) {
	t.Helper()
	end := time.After(patience)
	for {
		changed := a.Registry.Changed()
		if ok() {
			return
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

func TestARunningSessionSeesWhatAnotherInstalls(t *testing.T) {
	m := newMachine(t)
	here, there := m.open("say"), m.open()
	if here.Registry.Has("say") {
		t.Fatal("the tool is there before it is installed")
	}
	m.install(there, m.folder("say", netModule))
	until(t, here, "the new tool is registered", func() bool { return here.Registry.Has("say") })
	res := here.Registry.Invoke(t.Context(), host.Call{ID: "1", Tool: "say"})
	if res.IsError || res.Text() != "hello" {
		t.Errorf("a call of it: %q", res.Text())
	}
	if err := there.Disable(t.Context(), "say", ""); err != nil {
		t.Fatal(err)
	}
	until(t, here, "the disabled tool goes", func() bool { return !here.Registry.Has("say") })
	if c, err := there.Enable(t.Context(), "say"); c != nil || err != nil {
		t.Fatalf("Enable: %v, %v", c, err)
	}
	until(t, here, "the enabled tool is back", func() bool { return here.Registry.Has("say") })
	if err := there.RemovePackage(t.Context(), "say"); err != nil {
		t.Fatal(err)
	}
	until(t, here, "the removed tool goes", func() bool { return !here.Registry.Has("say") })
}

func TestRevokingEndsCallsThatRun(t *testing.T) {
	for name, act := range map[string]func(*app.App) error{
		"revoke": func(a *app.App) error { _, err := a.RevokePackage(context.Background(), "spin", nil); return err },
		"remove": func(a *app.App) error { return a.RemovePackage(context.Background(), "spin") },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			here, there := m.open("spin"), m.open()
			m.install(here, m.folder("spin", spinModule))
			done := make(chan string, 1)
			go func() {
				res := here.Registry.Invoke(context.Background(), host.Call{ID: "1", Tool: "spin"})
				done <- res.Text()
			}()
			select {
			case text := <-done:
				t.Fatalf("it ended by itself: %s", text)
			case <-time.After(1500 * time.Millisecond):
			}
			if err := act(there); err != nil {
				t.Fatal(err)
			}
			// Its own limit would end it after a minute, with another text.
			if text := <-done; !strings.Contains(text, "taken back") && !strings.Contains(text, "removed") {
				t.Errorf("the call ended with %q", text)
			}
		})
	}
}

func TestPOL08GrantReplay(t *testing.T) {
	m := newMachine(t)
	a := m.open()
	m.install(a, m.folder("say", netModule))
	key, ok := a.PluginKey("say")
	if !ok || len(a.Grants(key)) != 1 {
		t.Fatalf("what was granted: %v", a.Grants(key))
	}
	for what, change := range map[string]func(*granted.Key){
		"another module":    func(k *granted.Key) { k.Digest = strings.Repeat("0", 64) },
		"other needs":       func(k *granted.Key) { k.Needs = manifest.NeedsHash(nil) },
		"another publisher": func(k *granted.Key) { k.Publisher = "acme" },
		"another name":      func(k *granted.Key) { k.Name = "say2" },
	} {
		k := key
		change(&k)
		if got := a.Grants(k); len(got) != 0 {
			t.Errorf("%s holds %v", what, got)
		}
	}
}

func TestPolicyRefusesPackages(t *testing.T) {
	m := newMachine(t)
	m.paths.SystemPolicy = filepath.Join(m.dir, "..", "policy.toml")
	if err := os.WriteFile(m.paths.SystemPolicy, []byte("[packages]\nsignature = \"signed\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := m.open().Prepare(t.Context(), m.folder("say", netModule), app.InstallOptions{})
	if err == nil || !strings.Contains(err.Error(), "has to be signed") || !strings.Contains(err.Error(), "policy.toml:2") {
		t.Errorf("an unsigned package: %v", err)
	}
}

func TestGrantsOutsideOfWhatIsAsked(t *testing.T) {
	m := newMachine(t)
	a := m.open()
	c, err := a.Prepare(t.Context(), m.folder("say", netModule), app.InstallOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Commit(t.Context(), []policy.Grant{{Cap: "exec", Scope: []string{"git log *"}}}, nil); err == nil {
		t.Error("a right was given that is not asked for")
	}
	if a.Registry.Has("say") {
		t.Error("it was installed all the same")
	}
}

// TestArchiveAttacksLeaveNothing installs hostile archives (HUB-01, HUB-02,
// HUB-03, K04) and looks for anything new outside of the store, and in it.
func TestArchiveAttacksLeaveNothing(t *testing.T) {
	m := newMachine(t)
	a := m.open()
	root := filepath.Dir(m.dir)
	type entry struct {
		tar.Header
		body string
	}
	toml := entry{tar.Header{Name: "elf.toml"}, "abi = \"elf/1\"\nname = \"evil\"\nversion = \"1.0.0\"\n"}
	attacks := map[string][]entry{
		"slip":   {{tar.Header{Name: "../../../../escaped"}, "x"}, toml},
		"abs":    {{tar.Header{Name: root + "/escaped"}, "x"}, toml},
		"link":   {{tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: root}, ""}, {tar.Header{Name: "a/escaped"}, "x"}},
		"hard":   {{tar.Header{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}, ""}},
		"device": {{tar.Header{Name: "a", Typeflag: tar.TypeChar}, ""}},
		"pair":   {{tar.Header{Name: "SKILL.md"}, "x"}, {tar.Header{Name: "skill.MD"}, "x"}},
		"bomb":   {{tar.Header{Name: "SKILL.md"}, "x"}, {tar.Header{Name: "z"}, strings.Repeat("\x00", 30<<20)}},
		"script": {{tar.Header{Name: "SKILL.md"}, "x"}, toml, {tar.Header{Name: "run.sh"}, "echo"}},
	}
	for name, entries := range attacks {
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		tw := tar.NewWriter(zw)
		for _, e := range entries {
			e.Mode, e.Size = 0o644, int64(len(e.body))
			if err := tw.WriteHeader(&e.Header); err != nil {
				t.Fatal(err)
			}
			tw.Write([]byte(e.body))
		}
		tw.Close()
		zw.Close()
		file := filepath.Join(root, name+skillhub.Ext)
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := listing(t, root)
	for name := range attacks {
		c, err := a.Prepare(t.Context(), skillhub.Ref{Kind: skillhub.Local, Location: filepath.Join(root, name+skillhub.Ext)}, app.InstallOptions{})
		if err == nil {
			c.Close()
			t.Errorf("%s was not refused", name)
		}
	}
	if after := listing(t, root); !slices.Equal(before, after) {
		t.Errorf("before %q\nafter %q", before, after)
	}
}

// listing is every name below a folder, but for the audit log and the like.
func listing(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !strings.Contains(p, "/packages/tmp") && !strings.HasSuffix(p, "/packages") {
			out = append(out, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(filepath.Join(root, "home", "state", "packages", "tmp"))
	for _, l := range left {
		t.Errorf("a stage stays: %s", l.Name())
	}
	return out
}

// TestNobodyTakesTheNameOfAnothersTool: PACKAGE__TOOL is the package's own name
// for its tool, whatever others call theirs.
func TestNobodyTakesTheNameOfAnothersTool(t *testing.T) {
	m := newMachine(t)
	a := m.open()
	for name, tool := range map[string]string{"one": "say", "two": "say", "imp": "two__say"} {
		ref := m.folder(name, netModule)
		file := filepath.Join(ref.Location, "elf.toml")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, []byte("[[tools]]\nname = \""+name), []byte("[[tools]]\nname = \""+tool), 1)
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		m.install(a, ref)
	}
	for name, of := range map[string]string{"one__say": "one", "two__say": "two", "imp__two__say": "imp"} {
		if spec, ok := a.Registry.Spec(name); !ok || spec.Origin.Name != of {
			t.Errorf("%s is not the tool of %s, but of %q", name, of, spec.Origin.Name)
		}
	}
	for _, p := range a.Packages() {
		if p.Name == "imp" && !slices.Equal(p.Tools, []string{"imp__two__say"}) {
			t.Errorf("the list calls it %q", p.Tools)
		}
	}
}

// TestInstallsOfTheSameAtOnce: whoever waited finds the very bytes there, and
// is done; whoever looked at another state is told.
func TestInstallsOfTheSameAtOnce(t *testing.T) {
	m := newMachine(t)
	a, b := m.open(), m.open()
	ref := m.folder("say", netModule)
	prepare := func(a *app.App) *app.Candidate {
		t.Helper()
		c, err := a.Prepare(t.Context(), ref, app.InstallOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first, second, third, other := prepare(a), prepare(b), prepare(b), func() *app.Candidate {
		file := filepath.Join(ref.Location, "elf.toml")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, bytes.Replace(text, []byte("1.0.0"), []byte("1.1.0"), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		return prepare(b)
	}()
	if err := first.Commit(t.Context(), first.Asked(), nil); err != nil {
		t.Fatal(err)
	}
	if err := second.Store(t.Context()); err != nil {
		t.Errorf("storing the same: %v", err)
	}
	if in, err := a.PackageNamed("say"); err != nil || in.Disabled != "" || len(in.Grants) != 1 {
		t.Errorf("what was agreed to is %q with %q: %v", in.Disabled, in.Grants, err)
	}
	if err := third.Commit(t.Context(), third.Asked(), nil); err != nil {
		t.Errorf("installing the same: %v", err)
	}
	if err := other.Commit(t.Context(), other.Asked(), nil); err == nil {
		t.Error("an update was installed as if it were new")
	}
}

// TestRemovalThatBreaksOff cannot write one file after the other: the package is
// there until its rights are gone, and removing it again ends the work.
func TestRemovalThatBreaksOff(t *testing.T) {
	m := newMachine(t)
	a := m.open()
	m.install(a, m.folder("say", netModule))
	key, _ := a.PluginKey("say")
	given := policy.Grant{Cap: "net.http", Scope: []string{"https://a.example GET"}}
	files := []string{m.paths.ProjectGrants(m.dir), m.paths.UserGrants()} // in the order in which they are changed
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := granted.Update(file, "user", func(f *granted.File) error { f.Add(key, given); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, lock := range []string{files[0] + ".lock", files[1] + ".lock", filepath.Join(m.paths.State, "packages", ".lock")} {
		// A folder in its place: the file that it guards cannot be changed.
		if err := os.Rename(lock, lock+".was"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(lock, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := a.RemovePackage(t.Context(), "say"); err == nil {
			t.Fatalf("%s cannot be locked, and nobody says so", lock)
		} else if _, there := a.PackageNamed("say"); there != nil {
			t.Fatalf("%s cannot be locked, and the package is gone: %v", lock, err)
		} else if lock != files[0]+".lock" && !strings.Contains(err.Error(), "remove it again") {
			t.Errorf("it does not tell what is left: %v", err)
		}
		if err := errors.Join(os.Remove(lock), os.Rename(lock+".was", lock)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.RemovePackage(t.Context(), "say"); err != nil {
		t.Fatal(err)
	}
	if got := a.Grants(key); len(got) != 0 {
		t.Errorf("it left %v", got)
	}
	if _, err := a.PackageNamed("say"); err == nil {
		t.Error("it is still there")
	}
}
