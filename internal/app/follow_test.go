package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/conformance"
)

// project is a plugin's folder, and a place for the state of sessions.
type project struct {
	t     *testing.T
	dir   string
	paths config.Paths
	told  chan string
}

func newProject(t *testing.T) *project {
	root := t.TempDir()
	p := &project{t: t, dir: filepath.Join(root, "plugin"), told: make(chan string, 10)}
	for _, d := range []string{"plugin", "ws", "config", "state", "cache"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.paths = config.Paths{Config: filepath.Join(root, "config"), State: filepath.Join(root, "state"), Cache: filepath.Join(root, "cache")}
	return p
}

// write puts a module of the suite and a manifest with this need into the folder.
func (p *project) write(module, scope string) {
	p.t.Helper()
	s, err := conformance.Default()
	if err != nil {
		p.t.Fatal(err)
	}
	wasm, err := s.Wasm(&conformance.Case{Module: module + ".wasm"})
	if err != nil {
		p.t.Fatal(err)
	}
	toml := "abi = \"elf/1\"\nname = \"mine\"\nversion = \"1\"\n[[tools]]\nname = \"t\"\ndescription = \"d\"\n[[needs]]\ncap = \"fs.read\"\nscope = [\"" + scope + "\"]\nreason = \"r\"\n"
	for name, b := range map[string][]byte{"plugin.wasm": wasm, "elf.toml": []byte(toml)} {
		if err := os.WriteFile(filepath.Join(p.dir, name), b, 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// keep is what plugin dev does after a build.
func (p *project) keep() (again bool) {
	p.t.Helper()
	pkg, _, err := app.ReadPackage(p.dir)
	if err == nil {
		again, err = app.KeepBuild(p.paths, p.dir, pkg)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return again
}

func (p *project) open(follow bool) *app.App {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	a, err := app.Open(p.t.Context(), app.Options{
		Dir: filepath.Join(filepath.Dir(p.dir), "ws"), Paths: &p.paths, Env: func(string) string { return "" }, Compiler: self,
		Plugins: []string{p.dir}, Follow: follow, Told: func(s string) { p.told <- s }, Allow: []string{"mine t"},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { a.Close(context.Background()) })
	return a
}

func (p *project) news() string {
	p.t.Helper()
	select {
	case s := <-p.told:
		return s
	case <-time.After(patience):
		p.t.Fatal("the session does not take the build up")
		return ""
	}
}

func (p *project) call(a *app.App) string {
	return a.Registry.Invoke(p.t.Context(), host.Call{ID: "1", Tool: "t", Args: json.RawMessage("{}")}).Text()
}

func grants(a *app.App) int {
	k, _ := a.PluginKey("mine")
	return len(a.Grants(k))
}

// TestFollow: a session takes up the builds that a person's plugin dev makes.
// What was granted to one counts for the next as long as the needs are the
// same, also in a later session; a module that something else put there gets
// nothing.
func TestFollow(t *testing.T) {
	p := newProject(t)
	p.write("smallest", "/ws/**")
	p.keep()
	a := p.open(true)
	if got := p.call(a); !strings.HasPrefix(got, "x") {
		t.Fatalf("the first build answers %q", got)
	}
	err := a.Remember(p.paths.UserGrants(), "user", host.Rule{Plugin: "mine", Grant: &policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}}})
	if err != nil || grants(a) != 1 {
		t.Fatalf("%d grants, %v", grants(a), err)
	}

	p.write("describe", "/ws/**") // it answers "called t"
	if p.keep() {
		t.Error("the needs are said to have changed")
	}
	if s := p.news(); !strings.Contains(s, "took up") {
		t.Error(s)
	}
	if got := p.call(a); !strings.HasPrefix(got, "called t") || grants(a) != 1 {
		t.Errorf("the second build answers %q and has %d grants", got, grants(a))
	}
	if b := p.open(false); grants(b) != 1 {
		t.Errorf("a later session gives it %d grants", grants(b))
	}

	// Something else writes a module there: sessions that run go on with the
	// last build, and a new one gives it no rights.
	p.write("state", "/ws/**")
	time.Sleep(500 * time.Millisecond)
	if got := p.call(a); !strings.HasPrefix(got, "called t") {
		t.Errorf("a module that nobody built is taken up: %q", got)
	}
	if b := p.open(false); grants(b) != 0 {
		t.Errorf("a module that nobody built has %d grants", grants(b))
	}

	// Grown needs are asked anew.
	p.write("smallest", "/ws/**\", \"/other/**")
	if !p.keep() {
		t.Error("the needs are not said to have changed")
	}
	if s := p.news(); !strings.Contains(s, "asked again") {
		t.Error(s)
	}
	if got := p.call(a); !strings.HasPrefix(got, "x") || grants(a) != 0 {
		t.Errorf("the third build answers %q and has %d grants", got, grants(a))
	}

	// A build that does not load leaves the one that runs.
	p.write("no_call", "/ws/**")
	p.keep()
	if s := p.news(); !strings.Contains(s, "not taken up") {
		t.Error(s)
	}
	if got := p.call(a); !strings.HasPrefix(got, "x") {
		t.Errorf("after a bad build: %q", got)
	}
}
