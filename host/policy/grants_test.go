package policy

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

func grants(t testing.TB, gs ...Grant) Grants {
	t.Helper()
	g, err := New("grants", gs...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func net(scopes ...string) Grant { return Grant{Cap: abi.NetHTTP, Scope: scopes} }

func get(url string) Use { return Use{Cap: abi.NetHTTP, Verb: "GET", Target: url} }

func dial(url, addr string) Use {
	u := get(url)
	u.Addr = netip.MustParseAddr(addr)
	return u
}

// check runs one table row; a refusal must be a *Denial that is abi.ErrDenied.
func check(t *testing.T, g Grants, u Use, allowed bool) *Denial {
	t.Helper()
	err := g.Check(u)
	if (err == nil) != allowed {
		t.Errorf("%s %s %q (%v): got %v, want allowed=%v", u.Cap, u.Verb, u.Target, u.Addr, err, allowed)
	}
	if err == nil {
		return nil
	}
	d, ok := err.(*Denial)
	if !ok || !errors.Is(err, abi.ErrDenied) {
		t.Fatalf("the error is %T, want *Denial", err)
	}
	return d
}

func TestZeroGrantsAllowNothing(t *testing.T) {
	var zero Grants
	u := Use{Cap: abi.FSRead, Target: "/ws/a"}
	check(t, zero, u, false)
	check(t, zero.Meet(Unlimited()), u, false)
	check(t, Unlimited().Meet(zero), u, false)
	check(t, Unlimited(), u, true)
	if zero.Allows(abi.FSRead) || !Unlimited().Allows(abi.FSRead) {
		t.Error("Allows: the zero value allows nothing, an absent layer everything")
	}
}

func TestUnlimitedReachesNothingSensitive(t *testing.T) {
	check(t, Unlimited(), get("http://127.0.0.1/"), false)
	check(t, Unlimited(), Use{Cap: abi.FSWrite, Target: "/ws/.git/config"}, false)
	check(t, Unlimited(), Use{Cap: abi.FSRead, Target: "/ws/.git/config"}, true)
	check(t, Unlimited(), get("http://example.org/"), true)
	check(t, Unlimited(), dial("http://example.org/", "10.0.0.1"), false)
}

func TestScopes(t *testing.T) {
	g := grants(t,
		Grant{Cap: abi.FSRead, Scope: []string{"/ws/**", "/data/*.{csv,tsv}"}},
		Grant{Cap: abi.Env, Scope: []string{"LANG", "LC_*"}},
		Grant{Cap: abi.Secret, Scope: []string{"token@api.github.com", "t2@*.good.test"}},
		Grant{Cap: abi.KV, Scope: []string{"1MiB"}},
		Grant{Cap: abi.Model, Scope: []string{"100k tokens"}},
		Grant{Cap: abi.ToolCall, Scope: []string{"Read", "mcp__github__*"}},
		Grant{Cap: abi.ClockFine},
	)
	for _, c := range []struct {
		u  Use
		ok bool
	}{
		{Use{Cap: abi.FSRead, Target: "/ws"}, true},
		{Use{Cap: abi.FSRead, Target: "/ws/a/b/c"}, true},
		{Use{Cap: abi.FSRead, Target: "/ws/..notes.txt"}, true}, // S11
		{Use{Cap: abi.FSRead, Target: "/ws-evil/f"}, false},     // FS-04
		{Use{Cap: abi.FSRead, Target: "/ws/../etc/passwd"}, false},
		{Use{Cap: abi.FSRead, Target: "/ws/a\x00b"}, false},
		{Use{Cap: abi.FSRead, Target: "ws/a"}, false},
		{Use{Cap: abi.FSRead, Target: "/proc/self/environ"}, false},
		{Use{Cap: abi.FSRead, Target: "/data/x.csv"}, true},
		{Use{Cap: abi.FSRead, Target: "/data/x.json"}, false},
		{Use{Cap: abi.FSRead, Target: "/data/s/x.csv"}, false},
		{Use{Cap: abi.FSWrite, Target: "/ws/a"}, false},
		{Use{Cap: abi.Env, Target: "LANG"}, true},
		{Use{Cap: abi.Env, Target: "LC_ALL"}, true},
		{Use{Cap: abi.Env, Target: "LANGUAGE"}, false},
		{Use{Cap: abi.Secret, Target: "token@API.github.com."}, true},
		{Use{Cap: abi.Secret, Target: "token@evil.test"}, false},
		{Use{Cap: abi.Secret, Target: "t2@a.good.test"}, true},
		{Use{Cap: abi.KV, N: 1 << 20}, true},
		{Use{Cap: abi.KV, N: 1<<20 + 1}, false},
		{Use{Cap: abi.KV, N: -1}, false},
		{Use{Cap: abi.Model, N: 100_000}, true},
		{Use{Cap: abi.Model, N: 100_001}, false},
		{Use{Cap: abi.ToolCall, Target: "Read"}, true},
		{Use{Cap: abi.ToolCall, Target: "ReadFile"}, false},
		{Use{Cap: abi.ToolCall, Target: "mcp__github__x"}, true},
		{Use{Cap: abi.ClockFine}, true},
		{Use{Cap: "disk"}, false},
	} {
		check(t, g, c.u, c.ok)
	}
}

func TestMalformedScopesAreRefused(t *testing.T) {
	for c, scopes := range map[abi.Capability][]string{
		abi.FSRead:    {"", "ws/**", "/ws/../x", "/ws/[", "/ws/{a", "/ws/a}", "/ws/a**b", "/ws//a", "//ws", "/ws//", "//", "/ws/{a,}/b", "/ws/{1,2}{1,2}{1,2}{1,2}{1,2}{1,2}{1,2}"},
		abi.NetHTTP:   {"", "*", "*.com", "https://*", "https://*.com GET", "ftp://x.test", "https://u@x.test", "https://x.test:0", "https://x.test:99999", "https://x.test CONNECT", "https://x.test TRACE", "https://x.test get", "https://x.test GET POST", "https://a.*.test", "https://*.1.2.3.4", "https://[10.0.0.1/8]", "https://[0.0.0.0/0]", "https://x.test/a?b", "public *", "https://2130706433"},
		abi.Exec:      {"", "*", "g* log", "./git log", "git 'log", `git log\`},
		abi.Env:       {"", "*", "A-B", "1A"},
		abi.Secret:    {"", "x", "@h.test", "x@*", "x@"},
		abi.KV:        {"", "1", "1MB", "-1B", "99999999999GiB"},
		abi.Model:     {"", "100k", "k tokens", "-1 tokens"},
		abi.ToolCall:  {"", "*", "a b"},
		abi.ClockFine: {"x"},
		"nope":        {"x"},
	} {
		for _, s := range scopes {
			if _, err := New("g", Grant{Cap: c, Scope: []string{s}}); err == nil {
				t.Errorf("%s scope %q is accepted", c, s)
			}
		}
	}
	if _, err := New("g", Grant{Cap: abi.FSRead}); err == nil {
		t.Error("a grant without a scope is accepted")
	}
}

func TestBelow(t *testing.T) {
	g := grants(t, Grant{Cap: abi.FSRead, Scope: []string{"/ws/docs/*.md", "/data/**"}})
	for dir, want := range map[string]bool{"/": true, "/ws": true, "/ws/docs": true, "/ws/src": false, "/data/x/y": true, "/tmp": false} {
		if got := g.Below(abi.FSRead, dir); got != want {
			t.Errorf("Below(%q) = %v", dir, got)
		}
	}
	if g.Below(abi.FSWrite, "/ws") {
		t.Error("reading is no writing")
	}
}

func TestManifestBoundsWhatAPersonGives(t *testing.T) {
	needs, err := FromNeeds([]abi.Need{{Cap: abi.NetHTTP, Scope: []string{"public GET"}}, {Cap: abi.FSWrite, Scope: []string{"/ws/**"}}})
	if err != nil {
		t.Fatal(err)
	}
	given := grants(t, net("http://127.0.0.1:8080 GET,POST"), Grant{Cap: abi.FSWrite, Scope: []string{"/ws/out/**", "/ws/.vscode/settings.json"}})
	g := needs.Meet(given)
	check(t, g, get("http://127.0.0.1:8080/a"), true)
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/out/a"}, true)
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/.vscode/settings.json"}, true)
	if d := check(t, g, Use{Cap: abi.FSRead, Target: "/ws/a"}, false); !d.Final || d.Layer != "the manifest" || d.Grant.Cap != "" {
		t.Errorf("a need that was not declared: %+v", d)
	}
	if d := check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/b"}, false); d.Final || d.Grant.String() != "fs.write /ws/b" {
		t.Errorf("a grant that a person can add: %+v", d)
	}
	post := get("http://127.0.0.1:8080/a")
	post.Verb = "POST"
	check(t, g, post, false)
}

// TestFS26 and TestFS27: protected names, present or not.
func TestFS26GitDirWrite(t *testing.T) {
	g := grants(t, Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**"}})
	for _, p := range []string{"/ws/.git/hooks/post-checkout", "/ws/.git/hooks", "/ws/.git/config", "/ws/.GIT/config", "/ws/sub/.git/config",
		"/ws/.git", "/ws/.g\u200cit/config", "/ws/git~1/config", "/ws/.git./hooks/x", "/ws/.git/config::$DATA", "/ws/.bashrc", "/ws/.mcp.json", "/ws/.vscode/settings.json",
		"/ws/.git/modules/x/hooks/pre-commit", "/ws/.vſcode/tasks.json"} {
		d := check(t, g, Use{Cap: abi.FSWrite, Target: p}, false)
		if d == nil {
			continue
		}
		if !d.Final || len(d.Grant.Scope) != 1 {
			t.Errorf("%s: %+v, want a final denial with the grant that names it", p, d)
		}
		if on, why := Protected(p); !on || why == "" {
			t.Errorf("Protected(%q) = %v, %q", p, on, why)
		}
	}
	for _, p := range []string{"/ws/.gitignore", "/ws/.git/index", "/ws/git/config", "/ws/src/.github/workflows/x.yml", "/ws/hooks/config"} {
		check(t, g, Use{Cap: abi.FSWrite, Target: p}, true)
	}
	own := grants(t, Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**/.git/hooks/**", "/ws/*/config", "/ws/.vscode/**"}})
	check(t, own, Use{Cap: abi.FSWrite, Target: "/ws/a/.git/hooks/x"}, true)
	check(t, own, Use{Cap: abi.FSWrite, Target: "/ws/.git/config"}, false)
	check(t, own, Use{Cap: abi.FSWrite, Target: "/ws/.vscode/x/.git/config"}, false)
}

func TestFS27OwnConfigAbsent(t *testing.T) {
	g := grants(t, Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**"}})
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/.elfhost/policy.json"}, false)
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/.elfhost"}, false)
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/a/.ELFHOST/config.toml"}, false)
}
