package packages

import (
	"errors"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

const (
	keyA = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
	keyB = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO0"
)

func rule(t *testing.T, k Kind, deny bool, text string) Rule {
	t.Helper()
	r, err := ParseRule(k, deny, text, "p.toml:1")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func facts() Facts {
	return Facts{
		Name: "fetch", Version: "1.2.3", Publisher: "corp", Key: keyA,
		Hub: "https://hub.corp.test/stable", Digest: "sha256:" + strings.Repeat("a", 64),
		Needs: []abi.Need{{Cap: abi.FSRead}, {Cap: abi.NetHTTP}},
	}
}

// TestOneRule: each row is one rule alone, and whether the package of facts()
// is refused by it.
func TestOneRule(t *testing.T) {
	for _, c := range []struct {
		kind    Kind
		deny    bool
		text    string
		refused bool
	}{
		{Name, false, "fetch", false},
		{Name, false, "fet*", false},
		{Name, false, "fetcher", true},
		{Name, false, "fetch >=1.2, <2", false},
		{Name, false, "fetch ^2", true},
		{Name, false, "sha256:" + strings.Repeat("a", 64), false},
		{Name, false, "sha256:" + strings.Repeat("b", 64), true},
		{Name, true, "fetch", true},
		{Name, true, "fetch <1.2.3", false},
		{Name, true, "fetch <=1.2.3", true},
		{Name, true, "*", true},
		{Name, true, "sha256:" + strings.Repeat("a", 64), true},
		{Publisher, false, "corp", false},
		{Publisher, false, "corp-*", true},
		{Publisher, true, "c*", true},
		{Publisher, true, "evil", false},
		{Key, false, keyA, false},
		{Key, false, "corp " + keyA, false},
		{Key, false, "other " + keyA, true},
		{Key, false, keyB, true},
		{Key, true, keyA, true},
		{Key, true, "other " + keyA, false},
		{Hub, false, "https://hub.corp.test", false},
		{Hub, false, "https://hub.corp.test/stable/", false},
		{Hub, false, "https://HUB.corp.test:443/stable", false},
		{Hub, false, "https://*.corp.test", false},
		{Hub, false, "https://hub.corp.test/sta", true},
		{Hub, false, "https://hub.corp.test:8443", true},
		{Hub, false, "http://hub.corp.test", true},
		{Hub, false, "https://*.hub.corp.test", true},
		{Hub, false, "https://corp.test", true},
		{Hub, false, "oci://hub.corp.test", true},
		{Hub, true, "https://hub.corp.test", true},
		{Hub, true, "https://*.corp.test/stable", true},
		{Hub, true, "https://other.test", false},
	} {
		f := facts()
		got := Judge([]Rules{{Layer: "the system policy", Rules: []Rule{rule(t, c.kind, c.deny, c.text)}}}, f)
		if refused := len(got.Denied()) > 0; refused != c.refused {
			t.Errorf("deny=%v %q: refused %v, want %v", c.deny, c.text, refused, c.refused)
		}
		if err := got.Err(); c.refused && (!errors.Is(err, abi.ErrDenied) || !strings.Contains(err.Error(), "the system policy, p.toml:1")) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// What a denying rule cannot tell is a hit, what an allowing one cannot is none.
func TestDoubt(t *testing.T) {
	old := facts()
	for _, c := range []struct {
		text, version string
		allows, hits  bool
	}{
		{"fetch <1.2.3", "1.2.2-rc1", false, true},
		{"fetch <1.2.3", "1.2.3-rc1", false, true},
		{"fetch =1.2.3", "1.2.3+build", true, true},
		{"fetch <1.2.3", "latest", false, true},
		{"fetch <1.2.3", "01.2.9", false, true},
		{"fetch <1.2.3", "99999999999999999999999.0.0", false, true},
		{"fetch >=1.2.3-rc1", "1.2.3-rc2", true, true},
		{"fetch <1.2.3", "1.2.4", false, false},
	} {
		f := old
		f.Version = c.version
		allow := Judge([]Rules{{Rules: []Rule{rule(t, Name, false, c.text)}}}, f)
		deny := Judge([]Rules{{Rules: []Rule{rule(t, Name, true, c.text)}}}, f)
		if len(allow.Denied()) == 0 != c.allows || len(deny.Denied()) > 0 != c.hits {
			t.Errorf("%q of %s: allows %v, denies %v", c.text, c.version, len(allow.Denied()) == 0, len(deny.Denied()) > 0)
		}
	}
	for _, hub := range []string{"", "https://hub.corp.test/stable/../../evil", "https://u@hub.corp.test", "https://hub.corp.test/stable?x", "https://hub.corp.test\\@evil.test", "gopher://x", "https://hüb.test"} {
		f := old
		f.Hub = hub
		if len(Judge([]Rules{{Rules: []Rule{rule(t, Hub, false, "https://hub.corp.test/stable")}}}, f).Denied()) == 0 {
			t.Errorf("%q is allowed", hub)
		}
	}
}

func TestPublisherIsAClaimWithoutASignature(t *testing.T) {
	f := facts()
	f.Key = ""
	got := Judge([]Rules{{Rules: []Rule{rule(t, Publisher, false, "corp")}}}, f)
	if d := got.Denied(); len(d) != 1 || !strings.Contains(d[0].Why, "a claim") {
		t.Errorf("%+v", got)
	}
	if len(Judge([]Rules{{Rules: []Rule{rule(t, Publisher, true, "corp")}}}, f).Denied()) == 0 {
		t.Error("a denied publisher gets in by not signing")
	}
}

func TestSignature(t *testing.T) {
	for _, c := range []struct {
		least   Signature
		key     string
		pinned  bool
		rules   []Rule
		refused bool
	}{
		{Unsigned, "", false, nil, false},
		{Signed, "", false, nil, true},
		{Signed, keyA, false, nil, false},
		{Pinned, keyA, false, nil, true},
		{Pinned, keyA, true, nil, false},
		{Pinned, keyA, false, []Rule{rule(t, Key, false, "corp "+keyA)}, false},
		{Pinned, "", true, nil, true},
	} {
		f := facts()
		f.Key, f.Pinned = c.key, c.pinned
		got := Judge([]Rules{{Least: c.least, Where: "p:2", Rules: c.rules}}, f)
		if refused := len(got.Denied()) > 0; refused != c.refused {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	// A key that a weaker layer names does not satisfy a stronger one.
	f := facts()
	got := Judge([]Rules{{Layer: "system", Least: Pinned, Where: "p:2"}, {Layer: "user", Rules: []Rule{rule(t, Key, false, keyA)}}}, f)
	if d := got.Denied(); len(d) != 1 || d[0].Layer != "system" {
		t.Errorf("%+v", got)
	}
}

func TestNeverTogether(t *testing.T) {
	apart := Apart{[]abi.Capability{abi.FSRead, abi.NetHTTP}, "p:9"}
	f := facts()
	if d := Judge([]Rules{{Apart: []Apart{apart}}}, f).Denied(); len(d) != 1 || d[0].Where != "p:9" || !strings.Contains(d[0].Why, "fs.read and net.http") {
		t.Errorf("%+v", d)
	}
	f.Needs = f.Needs[:1]
	if d := Judge([]Rules{{Apart: []Apart{apart, {}}}}, f).Denied(); len(d) != 0 {
		t.Errorf("%+v", d)
	}
}

// TestPOL01PackagesDenied: in whatever layer and order, one refusal is enough.
func TestPOL01PackagesDenied(t *testing.T) {
	allow := Rules{Layer: "the system policy", Rules: []Rule{rule(t, Name, false, "fetch")}}
	deny := Rules{Layer: "the project policy", Rules: []Rule{rule(t, Name, true, "fetch")}}
	none := Rules{Layer: "the user policy", Rules: []Rule{rule(t, Name, false, "other")}}
	for _, layers := range [][]Rules{{allow, deny}, {deny, allow}, {allow, none}, {none, allow}} {
		got := Judge(layers, facts())
		if got.Err() == nil || got.Findings[0].Effect != Deny || got.Findings[0].Layer == "the system policy" {
			t.Errorf("%+v", got)
		}
	}
	if got := Judge([]Rules{allow}, facts()); got.Err() != nil || len(got.Findings) != 1 || got.Findings[0].Effect != Allow {
		t.Errorf("%+v", got)
	}
}

func TestPartialFactsAreOpen(t *testing.T) {
	rules := []Rule{
		rule(t, Name, true, "fetch <1.2"), rule(t, Publisher, false, "corp"), rule(t, Key, false, keyA),
		rule(t, Hub, true, "https://evil.test"), rule(t, Name, false, "fetch"),
	}
	got := Judge([]Rules{{Rules: rules, Least: Signed}}, Facts{Name: "fetch", Partial: true})
	if len(got.Denied()) != 0 || len(got.Open()) != 5 {
		t.Errorf("%+v", got)
	}
	got = Judge([]Rules{{Rules: rules}}, Facts{Hub: "https://evil.test/x", Partial: true}) // an address, before it is fetched
	if d := got.Denied(); len(d) != 1 || !strings.Contains(d[0].Why, "evil.test") {
		t.Errorf("%+v", got)
	}
	got = Judge([]Rules{{Rules: rules}}, Facts{Name: "other", Partial: true})
	if d := got.Denied(); len(d) != 1 || !strings.Contains(d[0].Why, "the package other is not among") {
		t.Errorf("%+v", got)
	}
}

func TestBadRules(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		text string
	}{
		{Name, ""}, {Name, "Fetch"}, {Name, "a/b"}, {Name, "fetch >=1 ||"}, {Name, "sha256:abc"}, {Name, "fetch [1-2]"}, {Name, strings.Repeat("a", 600)},
		{Publisher, "a b"}, {Key, "39E1E0189B4E8F6"}, {Key, "a b " + keyA}, {Key, keyA[:55] + "\n"},
		{Hub, "hub.corp.test"}, {Hub, "ftp://x"}, {Hub, "https://u:p@x"}, {Hub, "https://x?y"}, {Hub, "file://host/x"}, {Hub, "https://[x"}, {Hub, "https://"}, {Hub, "https://h*b.test"},
	} {
		if _, err := ParseRule(c.kind, false, c.text, ""); err == nil {
			t.Errorf("%q is accepted", c.text)
		}
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{"fetch >=1.2, <2", keyA, "https://*.corp.test:8443/x", "sha256:", "file:///srv"} {
		f.Add(uint8(0), s, "1.0.0", "https://x")
		f.Add(uint8(3), s, "1.0.0", s)
	}
	f.Fuzz(func(t *testing.T, kind uint8, text, version, hub string) {
		allow, err := ParseRule(Kind(kind%4), false, text, "f:1")
		if err != nil {
			return
		}
		deny, err := ParseRule(Kind(kind%4), true, text, "f:1")
		if err != nil {
			t.Fatalf("%q is a rule that allows only", text)
		}
		fs := facts()
		fs.Version, fs.Hub = version, hub
		// The same text never allows what it would not also deny.
		if allow.hits(&fs) && !deny.hits(&fs) {
			t.Errorf("%q allows %+v and does not deny it", text, fs)
		}
	})
}
