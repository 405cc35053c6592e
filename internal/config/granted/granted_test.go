package granted

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config/manifest"
)

func TestPOL08GrantReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d", "grants.toml")
	needs := []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"public GET"}, Reason: "a"}}
	k := Key{"acme", "fetch", "sha256:aa", manifest.NeedsHash(needs)}
	give := policy.Grant{Cap: abi.NetHTTP, Scope: []string{"https://api.github.com GET,POST", "https://b.test"}}
	if err := Update(file, "user", func(g *File) error { g.Add(k, give); g.Add(k, give); return nil }); err != nil {
		t.Fatal(err)
	}
	g, err := Read(file, "user")
	if err != nil {
		t.Fatal(err)
	}
	got := g.For(k)
	if len(got) != 2 || got[0].String() != "net.http https://api.github.com GET,POST" || got[1].Scope[0] != "https://b.test GET,HEAD" || got[0].Where != file+":4" {
		t.Errorf("%+v", got)
	}
	more := append([]abi.Need{{Cap: abi.ClockFine}}, needs...)
	for _, other := range []Key{
		{"acme", "fetch", "sha256:bb", k.Needs}, {"evil", "fetch", "sha256:aa", k.Needs}, {"acme", "other", "sha256:aa", k.Needs},
		{"acme", "fetch", "sha256:aa", manifest.NeedsHash(more)}, {"", "fetch", "sha256:aa", k.Needs},
	} {
		if g := g.For(other); len(g) != 0 {
			t.Errorf("%+v uses the grants of %+v", other, k)
		}
	}
	if h := g.Held(Key{"acme", "fetch", "sha256:bb", k.Needs}); len(h) != 2 {
		t.Errorf("held: %+v", h)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestRevokeAndRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grants.toml")
	k := Key{"acme", "fetch", "sha256:aa", "sha256:nn"}
	p, err := policy.ParsePattern("Bash(echo \"a'b\" \\*:*)")
	if err != nil {
		t.Fatal(err)
	}
	err = Update(file, "project", func(g *File) error {
		g.Add(k, policy.Grant{Cap: abi.ClockFine})
		g.Add(k, policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
		g.AddRule(Answer{Rule: policy.Rule{Pattern: p, Effect: policy.Allow}})
		g.AddRule(Answer{Rule: policy.Rule{Pattern: p, Effect: policy.Deny}})
		g.Revoked = append(g.Revoked, Grant{Key: k, Cap: abi.KV, Scope: []string{"1MiB"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	err = Update(file, "project", func(g *File) error {
		if len(g.Rules) != 1 || g.Rules[0].Pattern.String() != p.String() || g.Rules[0].Effect != policy.Deny || g.Rules[0].Layer != "project" || len(g.Revoked) != 1 {
			t.Errorf("%+v", g)
		}
		if out := g.Revoke("acme", "fetch", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}}); len(out) != 1 {
			t.Errorf("revoked %+v", out)
		}
		g.Add(k, policy.Grant{Cap: abi.KV, Scope: []string{"1MiB"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := Read(file, "project")
	if err != nil || len(g.For(k)) != 2 || len(g.Revoked) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestUpdateFailsWhole(t *testing.T) {
	file := filepath.Join(t.TempDir(), "grants.toml")
	k := Key{"acme", "fetch", "d", "n"}
	if err := Update(file, "user", func(g *File) error { g.Add(k, policy.Grant{Cap: abi.ClockFine}); return nil }); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(file)
	boom := errors.New("boom")
	if err := Update(file, "user", func(g *File) error { g.Grants = nil; return boom }); !errors.Is(err, boom) {
		t.Errorf("%v", err)
	}
	if err := Update(file, "user", func(g *File) error {
		g.Grants = append(g.Grants, Grant{Key: k, Cap: abi.NetHTTP, Scope: []string{"*"}})
		return nil
	}); err == nil {
		t.Error("a malformed grant is written")
	}
	after, _ := os.ReadFile(file)
	if string(before) != string(after) {
		t.Errorf("the file changed:\n%s", after)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".grants*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := os.WriteFile(file, []byte("[[grant]]\nplugin = \"x\"\ncap = \"net.http\"\nscope = [\"*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(file, "user")
	if err == nil || !strings.HasPrefix(err.Error(), file+":1: ") || !strings.Contains(err.Error(), "net.http") {
		t.Errorf("%v", err)
	}
}

// TestConcurrentProcesses adds grants from goroutines and child processes at once.
func TestConcurrentProcesses(t *testing.T) {
	const each = 15
	if file := os.Getenv("TEST_GRANTS_FILE"); file != "" {
		addGrants(t, file, os.Getenv("TEST_GRANTS_NAME"), each)
		return
	}
	file := filepath.Join(t.TempDir(), "grants.toml")
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0], "-test.run=^TestConcurrentProcesses$")
			cmd.Env = append(os.Environ(), "TEST_GRANTS_FILE="+file, "TEST_GRANTS_NAME="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		wg.Go(func() { addGrants(t, file, strings.ToUpper(name), each) })
	}
	wg.Wait()
	g, err := Read(file, "user")
	if err != nil || len(g.Grants) != 4*each {
		t.Errorf("%d grants, want %d (%v)", len(g.Grants), 4*each, err)
	}
}

func addGrants(t *testing.T, file, name string, n int) {
	for i := range n {
		k := Key{Publisher: name, Name: "p" + strconv.Itoa(i)}
		if err := Update(file, "user", func(g *File) error { g.Add(k, policy.Grant{Cap: abi.ClockFine}); return nil }); err != nil {
			t.Error(err)
		}
	}
}
