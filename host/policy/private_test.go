package policy

import (
	"net/netip"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

// Hosts that somebody configured by name may have the private addresses that
// the system policy lists, and nothing else may.
func TestPrivateHosts(t *testing.T) {
	blocks := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
	sys := Layer{Kind: System, File: "s", PrivateHosts: blocks}
	limited := sys
	limited.Allow = []Grant{net("https://*.corp.test"), net("public GET")}
	elsewhere := sys
	elsewhere.Allow = []Grant{net("https://other.test")}
	given := grants(t, net("https://hub.corp.test", "public GET"))
	for _, c := range []struct {
		layers []Layer
		use    Use
		ok     bool
	}{
		{[]Layer{sys}, dial("https://hub.corp.test/x", "10.1.2.3"), true},
		{[]Layer{limited}, dial("https://hub.corp.test/x", "10.1.2.3"), true},
		{[]Layer{elsewhere}, dial("https://hub.corp.test/x", "10.1.2.3"), false},
		{[]Layer{sys, {Kind: User, Allow: []Grant{net("https://hub.corp.test")}}}, dial("https://hub.corp.test/x", "10.1.2.3"), true},
		{[]Layer{sys}, dial("https://hub.corp.test/x", "10.2.0.1"), false},
		{[]Layer{sys}, dial("https://hub.corp.test/x", "127.0.0.1"), false},
		{[]Layer{sys}, dial("https://hub.corp.test/x", "169.254.169.254"), false},
		{[]Layer{sys}, dial("https://intranet.corp.test/x", "10.1.2.3"), false}, // where it sends one on
		{[]Layer{sys}, get("https://10.1.2.3/x"), false},
		{[]Layer{{Kind: User, File: "u", PrivateHosts: blocks}}, dial("https://hub.corp.test/x", "10.1.2.3"), false},
		{nil, dial("https://hub.corp.test/x", "10.1.2.3"), false},
		{[]Layer{sys, {Kind: User, Deny: []Grant{net("[10.0.0.0/8]")}}}, dial("https://hub.corp.test/x", "10.1.2.3"), false},
	} {
		p := stack(t, c.layers...)
		check(t, p.Private(given).Meet(p.Ceiling()), c.use, c.ok)
		if c.ok { // without it, no grant names the address
			check(t, given.Meet(p.Ceiling()), c.use, false)
		}
	}
	if p := stack(t, Layer{Kind: User, File: "u", PrivateHosts: blocks}); len(p.Notes()) != 1 {
		t.Errorf("%q", p.Notes())
	}
	p := stack(t, limited)
	if got := p.Describe(abi.NetHTTP); got != "https://*.corp.test GET,HEAD, public GET" {
		t.Errorf("%q", got)
	}
	if n := len(p.Private(given).List()); n != 2 {
		t.Errorf("%d grants are listed", n)
	}
	for text, ok := range map[string]bool{
		"10.0.0.0/8": true, "192.168.3.0/24": true, "fd00::/8": true, "100.64.0.0/10": true,
		"10.0.0.1/8": false, "0.0.0.0/0": false, "127.0.0.0/8": false, "169.254.0.0/16": false, "8.8.8.0/24": false, "10.0.0.0": false, "8.0.0.0/6": false, "::ffff:10.0.0.0/104": false,
	} {
		if _, err := ParsePrivate(text); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
