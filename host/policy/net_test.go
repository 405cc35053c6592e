package policy

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

func TestNET01HostNotListed(t *testing.T) {
	g := grants(t, net("https://api.good.test GET,POST", "http://api.good.test"))
	check(t, g, get("https://api.good.test/x"), true)
	d := check(t, g, get("http://evil.test/"), false)
	if d.Final || d.Grant.String() != "net.http http://evil.test/ GET" {
		t.Errorf("the denial offers %q", d.Grant)
	}
}

func TestNET02SuffixConfusion(t *testing.T) {
	g := grants(t, net("http://*.good.test"))
	check(t, g, get("http://a.good.test/"), true)
	check(t, g, get("http://a.b.good.test/"), true)
	for _, h := range []string{"evilgood.test", "good.test.evil.test", "good.test@evil.test", "good.test#@evil.test", "good.test", ".good.test", "a.good.test@evil.test", `a.good.test\@evil.test`} {
		check(t, g, get("http://"+h+"/"), false)
	}
}

func TestNET03BareWildcard(t *testing.T) {
	for _, s := range []string{"*", "*.com", "", "https://*", "https://* GET", "http://*.", "http://*.xn--p1ai"} {
		if _, err := New("g", net(s)); err == nil {
			t.Errorf("scope %q is accepted", s)
		}
	}
}

func TestNET04PrivateLiteral(t *testing.T) {
	g := grants(t, net("public GET", "http://name.test"))
	for _, a := range []string{"127.0.0.1", "127.9.9.9", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "0.1.2.3", "198.18.0.1", "198.19.0.1", "192.0.0.8", "240.0.0.1", "255.255.255.255", "224.0.0.1"} {
		d := check(t, g, get("http://"+a+"/"), false)
		if d != nil && (!d.Final || d.Grant.String() != "net.http http://"+a+"/ GET") {
			t.Errorf("%s: %+v", a, d)
		}
		check(t, g, dial("http://name.test/", a), false)
		check(t, g, dial("http://other.test/", a), false)
	}
	check(t, g, get("http://8.8.8.8/"), true)
	check(t, g, dial("http://name.test/", "8.8.8.8"), true)

	named := grants(t, net("http://127.0.0.1:8080", "http://[10.1.0.0/16]", "http://name.test"))
	check(t, named, get("http://127.0.0.1:8080/"), true)
	check(t, named, get("http://127.0.0.1/"), false)
	check(t, named, get("http://10.1.2.3/"), true)
	check(t, named, get("http://10.2.2.3/"), false)
	check(t, named, dial("http://name.test/", "10.1.9.9"), true)
	check(t, named, dial("http://other.test/", "10.1.9.9"), false)
	check(t, named, dial("http://10.1.2.3/", "10.1.9.9"), false)
}

func TestNET05IPv6Embedded(t *testing.T) {
	g := grants(t, net("public GET", "http://name.test"))
	for _, a := range []string{"::1", "::", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::", "2002:7f00:1::", "fec0::1", "fd00:ec2::254", "fe80::1", "ff02::1", "2001::1", "2001:db8::1", "4000::1", "100::1", "3fff::1", "5f00::1"} {
		check(t, g, get("http://["+a+"]/"), false)
		check(t, g, dial("http://name.test/", a), false)
	}
	check(t, g, get("http://[fe80::1%25lo]/"), false)
	check(t, g, dial("http://name.test/", "fe80::1%lo"), false)
	for _, a := range []string{"2606:4700:4700::1111", "64:ff9b::808:808", "2002:808:808::1"} {
		check(t, g, get("http://["+a+"]/"), true)
	}
	// A grant of 127.0.0.1 covers its mapped spelling, not a translation.
	named := grants(t, net("http://127.0.0.1"))
	check(t, named, get("http://[::ffff:127.0.0.1]/"), true)
	check(t, named, get("http://[64:ff9b::7f00:1]/"), false)
}

func TestNET06NumericForms(t *testing.T) {
	g := grants(t, net("public GET"))
	for _, h := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "2852039166", "1.2.3.4.5", "a.0x7f", "127.0.0.1.", "01.2.3.4"} {
		check(t, g, get("http://"+h+"/"), false)
	}
}

func TestNET07LocalhostNames(t *testing.T) {
	g := grants(t, net("public GET"))
	for _, h := range []string{"localhost", "LOCALHOST", "localhost.", "foo.localhost", "ip6-localhost", "ｌocalhost"} {
		check(t, g, get("http://"+h+"/"), false)
		check(t, g, dial("http://"+h+"/", "127.0.0.1"), false)
	}
	own := grants(t, net("http://localhost:11434 GET,POST"))
	check(t, own, get("http://localhost:11434/api"), true)
	check(t, own, dial("http://localhost:11434/api", "127.0.0.1"), true)
	check(t, own, dial("http://localhost:11434/api", "::1"), true)
	check(t, own, dial("http://localhost:11434/api", "10.0.0.1"), false)
}

func TestNET14Userinfo(t *testing.T) {
	g := grants(t, net("http://good.test"))
	d := check(t, g, get("http://user:hunter2@good.test/?token=hunter2#hunter2"), false)
	if s := d.Error(); strings.Contains(s, "hunter2") {
		t.Errorf("the error shows the password: %s", s)
	}
	d = check(t, g, get("http://user:hunter2@good.test:x/"), false)
	if s := d.Error(); strings.Contains(s, "hunter2") {
		t.Errorf("the error shows the password: %s", s)
	}
}

func TestNET15Homograph(t *testing.T) {
	g := grants(t, net("http://good.test"))
	check(t, g, get("http://gооd.test/"), false) // Cyrillic о
	check(t, g, get("http://good。test/"), true)  // a full-width dot is a dot
	check(t, g, get("http://go\u00adod.test/"), true)
	if h, err := CanonicalHost("gооd.test"); err != nil || h != "xn--gd-olea.test" && h[:4] != "xn--" {
		t.Errorf("CanonicalHost = %q, %v, want punycode", h, err)
	}
	idn := grants(t, net("http://bücher.test"))
	check(t, idn, get("http://xn--bcher-kva.test/"), true)
}

func TestNET16TrailingDotAndCase(t *testing.T) {
	g := grants(t, net("http://good.test"))
	check(t, g, get("HTTP://GOOD.test./"), true)
	check(t, g, get("http://good.test:80/"), true)
	check(t, g, get("http://good.test:/"), true)
	check(t, g, get("http://good.test../"), false)
}

func TestNET17NulInHost(t *testing.T) {
	for _, h := range []string{"evil.test\x00.good.test", "evil.test%00.good.test", "a b.test", "a\tb", "a/b", "good.test%2eevil"} {
		if c, err := CanonicalHost(h); err == nil {
			t.Errorf("CanonicalHost(%q) = %q", h, c)
		}
	}
	check(t, grants(t, net("http://*.good.test")), get("http://evil.test\x00.good.test/"), false)
}

func TestNET18PortAndMethod(t *testing.T) {
	g := grants(t, net("https://good.test GET"))
	check(t, g, get("https://good.test/"), true)
	check(t, g, get("https://good.test:443/"), true)
	for _, m := range []string{"POST", "HEAD", "CONNECT", "TRACE", "get", ""} {
		u := get("https://good.test/")
		u.Verb = m
		check(t, g, u, false)
	}
	for _, p := range []string{":8443", ":0", ":99999", ":80", ":-1", ":443x"} {
		check(t, g, get("https://good.test"+p+"/"), false)
	}
	check(t, g, get("http://good.test/"), false)
	check(t, g, get("http://good.test:443/"), false)
	check(t, g, get("ftp://good.test/"), false)
	check(t, grants(t, net("public GET")), get("http://good.test:25/"), false)
}

func TestPathNarrows(t *testing.T) {
	g := grants(t, net("https://good.test/v1/** GET", "https://good.test/exact"))
	for p, ok := range map[string]bool{"/v1/a/b": true, "/v1": true, "/v1/": true, "/exact": true, "/exact/": false, "/v2": false, "/": false, "/v1x": false,
		"/v1/../v2": false, "/v1/%2e%2e/v2": false, "/v1/a%2fb": false, "/v1//a": false, "/v1/%252e": false, "/v1/a?x=/../": true} {
		check(t, g, get("https://good.test"+p), ok)
	}
}

func TestAddressClassNames(t *testing.T) {
	for a, want := range map[string]string{"127.0.0.1": "loopback", "10.0.0.1": "private", "2002:a00:1::": "private", "8.8.8.8": "", "100.127.255.255": "shared", "100.128.0.0": ""} {
		if _, got := AddressClass(netip.MustParseAddr(a)); got != want {
			t.Errorf("AddressClass(%s) = %q, want %q", a, got, want)
		}
	}
	if s, _ := AddressClass(netip.Addr{}); !s {
		t.Error("an invalid address is special")
	}
}

func TestSH17ArgvInjection(t *testing.T) {
	g := grants(t, Grant{Cap: abi.Exec, Scope: []string{"git log -- *", "git show *", "make **", "cc -O? -*", "cp 'a b' *"}})
	for argv, ok := range map[string]bool{
		"git\x00log\x00--\x00a.go":              true,
		"git\x00log\x00--":                      true,
		"git\x00log\x00--\x00--output=PWN":      false,
		"git\x00log\x00--\x00a\x00--output=PWN": false,
		"git\x00log":                            false,
		"git\x00show\x00HEAD\x00x":              true,
		"git\x00show\x00-O":                     false,
		"git\x00show\x00-":                      false,
		"git\x00-c\x00x=y\x00show":              false,
		"/tmp/git\x00show":                      false,
		"make\x00-j4\x00all":                    true,
		"cp\x00a b\x00c":                        true,
		"cp\x00a\x00b":                          false,
		"":                                      false,
	} {
		check(t, g, Use{Cap: abi.Exec, Target: argv}, ok)
	}
	// A plain name means the host's own program of that name.
	check(t, g, Use{Cap: abi.Exec, Target: "/usr/bin/git\x00show", Name: "git"}, true)
	check(t, g, Use{Cap: abi.Exec, Target: "/usr/bin/git\x00push", Name: "git"}, false)
	check(t, g, Use{Cap: abi.Exec, Target: "/usr/bin/git\x00show", Name: "cp"}, false)
	full := grants(t, Grant{Cap: abi.Exec, Scope: []string{"/usr/bin/git show *"}})
	check(t, full, Use{Cap: abi.Exec, Target: "/usr/bin/git\x00show", Name: "git"}, true)
	check(t, full, Use{Cap: abi.Exec, Target: "/opt/git\x00show", Name: "git"}, false)
}
