package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
)

func stack(t *testing.T, layers ...Layer) *Policy {
	t.Helper()
	p, err := NewPolicy(layers...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestNoPolicyLimitsNothing(t *testing.T) {
	for _, p := range []*Policy{nil, {}, stack(t)} {
		check(t, p.Ceiling(), Use{Cap: abi.FSRead, Target: "/ws/a"}, true)
		if p.ModeAllowed("auto") != nil || p.ModeAllowed("yolo") == nil || len(p.Rules())+len(p.Notes()) != 0 || p.Network() != (Network{}) || p.ExecTime() != 0 {
			t.Errorf("%+v", p)
		}
		if on, _ := p.RestrictToWorkspace(); !on {
			t.Error("a session is restricted to its workspace by default")
		}
		if p.Limits(abi.Limits{}) != abi.DefaultLimits() {
			t.Error("the defaults are in force")
		}
	}
}

// TestPOL01Precedence: layers in any order, the strictest wins and says where.
func TestPOL01Precedence(t *testing.T) {
	project := Layer{Kind: Project, File: "proj.toml", Allow: []Grant{net("https://a.test", "https://b.test")}}
	user := Layer{Kind: User, File: "user.toml", Allow: []Grant{net("https://a.test")}}
	system := Layer{Kind: System, File: "sys.toml", Deny: []Grant{{Cap: abi.NetHTTP, Where: "sys.toml:7"}}}
	given := grants(t, net("https://a.test", "https://b.test"))

	g := given.Meet(stack(t, project, user).Ceiling())
	check(t, g, get("https://a.test/"), true)
	if d := check(t, g, get("https://b.test/"), false); !d.Final || d.Layer != "the user policy" || d.Where != "user.toml" || d.Grant.Cap != "" {
		t.Errorf("%+v", d)
	}
	g = given.Meet(stack(t, project, user, system).Ceiling())
	d := check(t, g, get("https://a.test/"), false)
	if !d.Final || d.Where != "sys.toml:7" || !strings.Contains(d.Error(), "the system policy (sys.toml:7)") {
		t.Errorf("%+v", d)
	}
	if g.Allows(abi.NetHTTP) {
		t.Error("net.http is denied whole")
	}
	// Final wins over a grant that a person could add.
	d = check(t, grants(t).Meet(stack(t, system).Ceiling()), get("https://a.test/"), false)
	if !d.Final || d.Layer != "the system policy" {
		t.Errorf("%+v", d)
	}
}

func TestDenyScopes(t *testing.T) {
	p := stack(t, Layer{Kind: System, File: "s", Deny: []Grant{net("evil.test", "*.evil.test", "[8.8.8.0/24]", "https://a.test/admin/**", "https://b.test POST"), {Cap: abi.FSRead, Scope: []string{"/ws/**/.env"}}, {Cap: abi.Exec, Scope: []string{"rm"}}}})
	g := p.Ceiling()
	for u, ok := range map[Use]bool{
		get("http://evil.test:8080/"): false, get("https://x.evil.test/"): false, get("https://good.test/"): true,
		get("http://8.8.8.8:81/"): false, dial("http://good.test/", "8.8.8.1"): false, dial("http://good.test/", "8.8.4.4"): true,
		get("https://a.test/admin/x"): false, get("https://a.test/x/../admin/x"): false, get("https://a.test/x"): true,
		get("https://b.test/"):                   true,
		{Cap: abi.FSRead, Target: "/ws/a/.env"}:  false,
		{Cap: abi.FSRead, Target: "/ws/a/.ENV"}:  false,
		{Cap: abi.FSRead, Target: "/ws/a/env"}:   true,
		{Cap: abi.Exec, Target: "rm\x00x"}:       false,
		{Cap: abi.Exec, Target: "/bin/rm\x00-f"}: false,
		{Cap: abi.Exec, Target: "rmdir\x00x"}:    true,
	} {
		check(t, g, u, ok)
	}
}

func TestCeilingOfPaths(t *testing.T) {
	p := stack(t, Layer{Kind: System, File: "s", DefaultDeny: true, Allow: []Grant{{Cap: abi.FSWrite, Scope: []string{"/ws/**"}}}})
	g := grants(t, Grant{Cap: abi.FSWrite, Scope: []string{"/ws/.vscode/**", "/data/**"}}, Grant{Cap: abi.ClockFine}).Meet(p.Ceiling())
	check(t, g, Use{Cap: abi.FSWrite, Target: "/ws/.vscode/x"}, true)
	check(t, g, Use{Cap: abi.FSWrite, Target: "/data/x"}, false)
	check(t, g, Use{Cap: abi.ClockFine}, false)
	check(t, p.Ceiling(), Use{Cap: abi.FSWrite, Target: "/ws/.vscode/x"}, false)
}

func TestModesAndLimits(t *testing.T) {
	p := stack(t, Layer{Kind: System, File: "sys.toml", Modes: []string{"ask", "plan"}, Lines: map[string]int{"modes": 3}, Limits: abi.Limits{Memory: 32 << 20, Fuel: 100, Time: time.Minute}, ExecTime: time.Hour},
		Layer{Kind: Extra, File: "x.toml", Limits: abi.Limits{Time: time.Second, Requests: 1000}, ExecTime: time.Minute, DenyMultilink: true})
	if err := p.ModeAllowed("auto"); err == nil || !strings.Contains(err.Error(), "sys.toml:3") {
		t.Errorf("%v", err)
	}
	if p.ModeAllowed("plan") != nil {
		t.Error("plan is allowed")
	}
	got := p.Limits(abi.Limits{Memory: 1 << 30, Output: 5 << 20})
	want := abi.DefaultLimits()
	want.Memory, want.Output, want.Time, want.Fuel = 32<<20, 5<<20, time.Second, 100
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p.ExecTime() != time.Minute {
		t.Error(p.ExecTime())
	}
	if on, where := p.DenyMultilink(); !on || where != "x.toml" {
		t.Error(on, where)
	}
	if on, _ := p.RequireSandbox(); on {
		t.Error("nobody requires a sandbox")
	}
	if _, err := NewPolicy(Layer{File: "f", Modes: []string{"yolo"}}); err == nil {
		t.Error("an unknown mode is accepted")
	}
}

func TestWhoMaySayWhat(t *testing.T) {
	off, on := false, true
	net := Network{Off: true, Proxy: "http://p:1", CAFile: "/c"}
	for _, c := range []struct {
		layers []Layer
		want   bool
		notes  int
	}{
		{[]Layer{{Kind: User, RestrictToWorkspace: &off}}, false, 0},
		{[]Layer{{Kind: User, RestrictToWorkspace: &off}, {Kind: System}}, true, 1},
		{[]Layer{{Kind: System, RestrictToWorkspace: &off}}, false, 0},
		{[]Layer{{Kind: System, RestrictToWorkspace: &off}, {Kind: Project, RestrictToWorkspace: &on}}, true, 0},
		{[]Layer{{Kind: Project, RestrictToWorkspace: &off}}, true, 1},
		{[]Layer{{Kind: Extra, RestrictToWorkspace: &off}}, true, 1},
	} {
		p := stack(t, c.layers...)
		if got, _ := p.RestrictToWorkspace(); got != c.want || len(p.Notes()) != c.notes {
			t.Errorf("%+v: %v, notes %q", c.layers, got, p.Notes())
		}
	}
	tools := rules(t, Allow, "Bash")
	for kind, want := range map[LayerKind]int{System: 1, User: 1, Project: 0, Extra: 0} {
		if p := stack(t, Layer{Kind: kind, Tools: tools}); len(p.Rules()) != want || len(p.Notes()) != 1-want {
			t.Errorf("%s: rules %v, notes %q", kind, p.Rules(), p.Notes())
		}
	}
	p := stack(t, Layer{Kind: User, File: "u", Network: net})
	if p.Network() != (Network{Off: true}) || len(p.Notes()) != 2 {
		t.Errorf("%+v %q", p.Network(), p.Notes())
	}
	check(t, p.Ceiling(), get("https://a.test/"), false)
	if p = stack(t, Layer{Kind: System, File: "s", Network: net}); p.Network() != net {
		t.Errorf("%+v", p.Network())
	}
}

func TestPolicyDescribes(t *testing.T) {
	p := stack(t, Layer{Kind: System, File: "s", Allow: []Grant{net("https://*.github.com GET")}, Deny: []Grant{{Cap: abi.Exec}, net("evil.github.com")}},
		Layer{Kind: User, File: "u", DefaultDeny: true, Allow: []Grant{net("public GET"), {Cap: abi.ClockFine}}})
	for c, want := range map[abi.Capability]string{
		abi.NetHTTP: "https://*.github.com GET except evil.github.com; and of these public GET", abi.Exec: "nothing", abi.KV: "nothing",
	} {
		if got := p.Describe(c); got != want {
			t.Errorf("%s: %q, want %q", c, got, want)
		}
	}
	if got := (*Policy)(nil).Describe(abi.KV); got != "anything" {
		t.Errorf("%q", got)
	}
}
