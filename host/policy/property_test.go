package policy

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

// pool is scopes and uses that hit and miss each other, for random Meets.
var pool = struct {
	grants []Grant
	uses   []Use
}{
	grants: []Grant{
		{Cap: abi.FSRead, Scope: []string{"/ws/**"}}, {Cap: abi.FSRead, Scope: []string{"/ws/a/*"}}, {Cap: abi.FSWrite, Scope: []string{"/ws/**"}},
		{Cap: abi.FSWrite, Scope: []string{"/ws/.vscode/**", "/ws/out/*"}}, {Cap: abi.NetHTTP, Scope: []string{"public GET"}},
		{Cap: abi.NetHTTP, Scope: []string{"https://*.good.test GET,POST"}}, {Cap: abi.NetHTTP, Scope: []string{"http://127.0.0.1:8080", "http://[10.0.0.0/8]"}},
		{Cap: abi.NetHTTP, Scope: []string{"http://localhost", "https://a.good.test/v1/**"}}, {Cap: abi.Exec, Scope: []string{"git log *"}},
		{Cap: abi.Exec, Scope: []string{"git **"}}, {Cap: abi.KV, Scope: []string{"1MiB"}}, {Cap: abi.Model, Scope: []string{"5k tokens"}},
		{Cap: abi.ToolCall, Scope: []string{"mcp__*"}}, {Cap: abi.Secret, Scope: []string{"t@*.good.test"}}, {Cap: abi.ClockFine}, {Cap: abi.Env, Scope: []string{"LC_*"}},
	},
	uses: []Use{
		{Cap: abi.FSRead, Target: "/ws/a/b"}, {Cap: abi.FSRead, Target: "/ws/a/b/c"}, {Cap: abi.FSWrite, Target: "/ws/out/x [1]*{a}"}, {Cap: abi.FSWrite, Target: "/ws/.vscode/x"},
		{Cap: abi.FSWrite, Target: "/ws/.git/hooks/x"}, {Cap: abi.FSWrite, Target: "/ws/a b"}, {Cap: abi.FSRead, Target: "/"}, {Cap: abi.FSRead, Target: `/ws/a\b`},
		get("https://a.good.test/v1/x"), get("https://a.good.test/v1/x?q=1"), get("http://127.0.0.1:8080/"), dial("http://a.good.test/", "10.1.1.1"), dial("http://a.good.test:81/", "8.8.8.8"),
		get("http://localhost/"), dial("http://localhost/", "127.0.0.1"), get("http://[2606:4700::1]:8080/a%20b"), get("https://a.good.test/a//b/../c"), get("http://10.1.2.3/*"),
		{Cap: abi.Exec, Target: "git\x00log\x00a"}, {Cap: abi.Exec, Target: "git\x00push\x00-f\x00a b\x00it's\x00*\x00\\"}, {Cap: abi.Exec, Target: "ls\x00"},
		{Cap: abi.KV, Target: "p", N: 1000}, {Cap: abi.KV, N: 3 << 20}, {Cap: abi.Model, N: 5000}, {Cap: abi.Model, N: 5001}, {Cap: abi.ToolCall, Target: "mcp__x"},
		{Cap: abi.Secret, Target: "t@a.good.test"}, {Cap: abi.ClockFine}, {Cap: abi.Env, Target: "LC_ALL"}, {Cap: abi.Env, Target: "HOME"},
	},
}

func randomGrants(t *testing.T, r *rand.Rand) Grants {
	switch r.IntN(12) {
	case 0:
		return Grants{}
	case 1:
		return Unlimited()
	case 2:
		p, err := NewPolicy(Layer{Kind: System, DefaultDeny: r.IntN(2) == 0, Allow: pick(r), Deny: pick(r)})
		if err != nil {
			t.Fatal(err)
		}
		return p.Ceiling()
	case 3:
		var needs []abi.Need
		for _, g := range pick(r) {
			needs = append(needs, abi.Need{Cap: g.Cap, Scope: g.Scope})
		}
		g, err := FromNeeds(needs)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	return grants(t, pick(r)...)
}

func pick(r *rand.Rand) []Grant {
	var out []Grant
	for range r.IntN(7) {
		out = append(out, pool.grants[r.IntN(len(pool.grants))])
	}
	return out
}

// TestMeetOnlyNarrows: what a Meet allows, no side but an absent one forbids;
// order does not matter; and more grants never take anything away.
func TestMeetOnlyNarrows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	allowed := 0
	for range 20_000 {
		a, b := randomGrants(t, r), randomGrants(t, r)
		u := pool.uses[r.IntN(len(pool.uses))]
		m := a.Meet(b)
		if (m.Check(u) == nil) != (b.Meet(a).Check(u) == nil) {
			t.Fatalf("the order of a Meet matters for %+v", u)
		}
		if m.Check(u) != nil {
			continue
		}
		allowed++
		// A ceiling alone reaches nothing sensitive, so that it is asked as one of two.
		if err := a.Meet(grants(t, everything...)).Check(u); err != nil {
			t.Fatalf("a Meet allows %+v, its left side says %v", u, err)
		}
		if err := m.Meet(m).Check(u); err != nil {
			t.Fatalf("a Meet with itself denies %+v: %v", u, err)
		}
	}
	if allowed < 500 {
		t.Errorf("only %d of the random uses were allowed: the test shows little", allowed)
	}
}

// everything covers all of pool.uses by name.
var everything = []Grant{
	{Cap: abi.FSRead, Scope: []string{"/**"}}, {Cap: abi.FSWrite, Scope: []string{"/**", "/ws/.vscode/**", "/ws/.git/hooks/**"}},
	{Cap: abi.NetHTTP, Scope: []string{"public GET", "http://127.0.0.1:8080", "http://10.0.0.1", "http://[10.0.0.0/8]", "http://localhost", "https://*.good.test"}},
	{Cap: abi.Exec, Scope: []string{"git **", "ls **"}}, {Cap: abi.KV, Scope: []string{"1GiB"}}, {Cap: abi.Model, Scope: []string{"9M tokens"}},
	{Cap: abi.ToolCall, Scope: []string{"mcp__*"}}, {Cap: abi.Secret, Scope: []string{"t@*.good.test"}}, {Cap: abi.ClockFine}, {Cap: abi.Env, Scope: []string{"LC_*", "HOME"}},
}

// TestTheOfferedGrantIsTheNarrowest: adding what a denial names allows the
// use, its text reads back equal, and it allows no other use of the pool.
func TestTheOfferedGrantIsTheNarrowest(t *testing.T) {
	for _, u := range pool.uses {
		err := grants(t).Check(u)
		d, ok := err.(*Denial)
		if !ok {
			t.Fatalf("no grant allows %+v", u)
		}
		if d.Grant.Cap == "" {
			t.Errorf("%+v: no grant is offered", u)
			continue
		}
		back, err := ParseGrant(d.Grant.String())
		if err != nil || back.String() != d.Grant.String() {
			t.Errorf("%q reads back as %q, %v", d.Grant, back, err)
			continue
		}
		g := grants(t, back)
		if err := g.Check(u); err != nil {
			t.Errorf("%+v: the offered %q does not allow it: %v", u, back, err)
		}
		for _, o := range pool.uses {
			same := o.Target == u.Target || o.Cap == abi.KV || o.Cap == abi.Model || o.Cap == abi.NetHTTP && strings.HasPrefix(o.Target, u.Target) || o.Cap == abi.NetHTTP && strings.HasPrefix(u.Target, o.Target)
			if o.Cap == u.Cap && !same && !strings.Contains(u.Target, "//b") && g.Check(o) == nil {
				t.Errorf("the grant %q, offered for %q, allows %q", back, u.Target, o.Target)
			}
		}
	}
}

// TestTextEqualsTheGrant: a scope's canonical text is a fixed point that
// decides alike.
func TestTextEqualsTheGrant(t *testing.T) {
	extra := []Grant{net("HTTPS://API.GitHub.com. POST,GET,GET"), net("api.github.com"), net("https://bücher.test:443/a/** GET"), net("http://[::ffff:10.0.0.1]:80"), net("http://[fd00::/8]"), net("https://x.test/**"), net("public"),
		{Cap: abi.FSRead, Scope: []string{"/ws/", "/ws/{a,b}/[x-z]?*"}}, {Cap: abi.Exec, Scope: []string{`cc 'a b' \*x* --o=* *`, "make **", "ls ''"}},
		{Cap: abi.KV, Scope: []string{"1024KiB", "0B"}}, {Cap: abi.Model, Scope: []string{"1000k tokens", "7 tokens"}}, {Cap: abi.Secret, Scope: []string{"a@X.test"}}}
	for _, g := range append(extra, pool.grants...) {
		p, err := ParseGrant(g.String())
		if err != nil {
			t.Errorf("%q: %v", g, err)
			continue
		}
		q, err := ParseGrant(p.String())
		if err != nil || !reflect.DeepEqual(p, q) {
			t.Errorf("%q becomes %q becomes %q, %v", g, p, q, err)
		}
		if l := grants(t, g).List(); len(l) != max(1, len(p.Scope)) {
			t.Errorf("List of %q: %v", g, l)
		}
		for _, u := range pool.uses {
			if (grants(t, g).Check(u) == nil) != (grants(t, p).Check(u) == nil) {
				t.Errorf("%q and %q differ on %+v", g, p, u)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	g := grants(t, net("https://a.test", "public GET")).Meet(Unlimited())
	if got := g.Describe(abi.NetHTTP); got != "https://a.test GET,HEAD, public GET" {
		t.Errorf("%q", got)
	}
	if got := g.Describe(abi.KV); got != "none" {
		t.Errorf("%q", got)
	}
}

func FuzzPathScope(f *testing.F) {
	f.Add("/ws/**", "/ws/a/b")
	f.Add("/ws/{a,b*}/[c-d]?", "/ws/a/cx")
	f.Add(`/ws/\*`, "/ws/*")
	f.Add("/a/**/b/**/c", "/a/b/b/b/c/c")
	f.Fuzz(func(t *testing.T, scope, name string) {
		u := Use{Cap: abi.FSWrite, Target: name}
		g, err := New("g", Grant{Cap: abi.FSWrite, Scope: []string{scope}})
		if err == nil && g.Check(u) == nil {
			if !strings.HasPrefix(name, "/") || strings.Contains(name+"/", "/../") || strings.ContainsRune(name, 0) {
				t.Errorf("%q allows %q", scope, name)
			}
			if on, _ := Protected(name); on && !strings.ContainsAny(scope, ".gGpP~") {
				t.Errorf("%q allows the protected %q", scope, name)
			}
		}
		if d, ok := grants(t).Check(u).(*Denial); ok && d.Grant.Cap != "" {
			if err := grants(t, d.Grant).Check(u); err != nil {
				t.Errorf("the offered %q does not allow %q: %v", d.Grant, name, err)
			}
		}
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"http://a.test/b?c#d", "https://[::1]:8080/", "http://u:p@h/", "http://0x7f.1/", "http://bücher。test", "http://a.test:/%2e%2e/", "//a", "http://xn--a/", "http://a\u00ad.test"} {
		f.Add(s)
	}
	all := grants(f, net("public GET"))
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := CheckURL(raw)
		if err != nil {
			if all.Check(get(raw)) == nil {
				t.Errorf("%q is malformed and allowed", raw)
			}
			return
		}
		again, err := CheckURL(u.String())
		if err != nil || again.Host != u.Host {
			t.Errorf("%q is %q, then %v, %v", raw, u, again, err)
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil {
			if special, _ := AddressClass(a); special && all.Check(get(raw)) == nil {
				t.Errorf("public allows %q", raw)
			}
		}
		if d, ok := grants(t).Check(get(raw)).(*Denial); ok && d.Grant.Cap != "" {
			if err := grants(t, d.Grant).Check(get(raw)); err != nil {
				t.Errorf("the offered %q does not allow %q: %v", d.Grant, raw, err)
			}
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"a.test", "[::1]", "127.1", "BÜCHER.test", "a..b", "xn--", "1.2.3.4.", "localhost", "ａ.test", "[fe80::1%25lo]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := CanonicalHost(s)
		if err != nil {
			return
		}
		if again, err := CanonicalHost(h); err != nil || again != h {
			t.Errorf("%q is %q, then %q, %v", s, h, again, err)
		}
		if strings.ContainsAny(h, "\x00 /@#?%\\[]") || strings.ToLower(h) != h {
			t.Errorf("%q is %q", s, h)
		}
		_, perr := netip.ParseAddr(h)
		if last := h[strings.LastIndexByte(h, '.')+1:]; perr != nil && numericLabel(last) {
			t.Errorf("%q is %q, which ends in a number", s, h)
		}
	})
}

func FuzzScopes(f *testing.F) {
	for _, g := range pool.grants {
		if len(g.Scope) > 0 {
			f.Add(string(g.Cap), g.Scope[0])
		}
	}
	f.Add("exec", `a\ b 'c*' *d\'`)
	f.Add("net.http", "http://[10.0.0.0/8]:80/{a,b}/** GET")
	f.Fuzz(func(t *testing.T, c, text string) {
		p, err := ParseGrant(c + " " + text)
		if err != nil {
			return
		}
		q, err := ParseGrant(p.String())
		if err != nil || q.String() != p.String() {
			t.Errorf("%q becomes %q becomes %q, %v", text, p, q, err)
		}
		for _, u := range pool.uses {
			if (grants(t, p).Check(u) == nil) != (grants(t, q).Check(u) == nil) {
				t.Errorf("%q and %q differ on %+v", p, q, u)
			}
		}
	})
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"git status", "a && b | c; (d) & e", "cat <<E\n$(x)\nE", "sh -c 'a; b'", "env -S 'a b' c", "find . -exec rm {} +", "$'\\x41' ~/x {a,b}", "f(){ f|f& };f", "((a[1]))", "for i in *; do x; done", "xargs -I{} sh -c '{}'", "timeout 5 nice -n 3 sudo x"} {
		f.Add(s)
	}
	rs := append(rules(f, Allow, "Bash(git:*)", "Bash(echo:*)"), rules(f, Deny, "Bash(rm:*)")...)
	f.Fuzz(func(t *testing.T, src string) {
		r := judge(rs, src)
		if r.Effect != Allow {
			return
		}
		for _, g := range r.Command.Segments {
			if len(g.Argv) == 0 || g.Argv[0] != "git" && g.Argv[0] != "echo" && g.Argv[0] != "cd" || g.Dynamic || len(g.Writes) > 0 {
				t.Errorf("%q is allowed with %+v", src, g)
			}
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("Bash(git status:*)", "Bash", "git status")
	f.Add("Write(docs/**)", "Write", "docs/a")
	f.Add("WebFetch(https://x/**)", "WebFetch", "https://x/a")
	f.Add("mcp__*", "mcp__a", "")
	f.Fuzz(func(t *testing.T, rule, tool, subject string) {
		p, err := ParsePattern(rule)
		if err != nil {
			return
		}
		if r := Judge([]Rule{{Pattern: p, Effect: Allow}}, tool, Subject{Text: subject}); r.Effect == Deny && r.Layer != "the critical list" {
			t.Errorf("%q denies %s(%q)", rule, tool, subject)
		}
		if r := Judge([]Rule{{Pattern: p, Effect: Deny}}, tool, Subject{Text: subject}); r.Effect == Allow {
			t.Errorf("%q, which denies, allows", rule)
		}
	})
}
