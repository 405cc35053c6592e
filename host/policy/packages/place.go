package packages

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// place is where packages come from: an address, and in a rule everything
// below it.
type place struct {
	scheme, host, path string
	wild               bool // "*.example.com": any host below
}

var defaultPorts = map[string]string{"https": "443", "http": "80", "oci": "443"}

// parsePlace reads an address. In a rule the host may begin with "*.".
func parsePlace(text string, rule bool) (place, error) {
	if strings.HasPrefix(text, "/") {
		text = "file://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return place{}, fmt.Errorf("%q is not an address", text)
	}
	p := place{scheme: strings.ToLower(u.Scheme), host: strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), path: u.Path}
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Opaque != "":
		return place{}, errors.New("an address has no user, query or fragment")
	case p.scheme == "file":
		if p.host != "" && p.host != "localhost" || p.path == "" {
			return place{}, fmt.Errorf("%q is not a folder of this machine, such as file:///srv/hub", text)
		}
		p.host = ""
	case p.scheme != "https" && p.scheme != "http" && p.scheme != "oci":
		return place{}, fmt.Errorf("%q does not begin with https://, oci:// or file:///", text)
	case p.host == "":
		return place{}, fmt.Errorf("%q names no host", text)
	}
	if rule {
		p.host, p.wild = strings.CutPrefix(p.host, "*.")
	}
	if strings.ContainsFunc(p.host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_' || r == ':')
	}) {
		return place{}, fmt.Errorf("the host of %q is not plain ASCII; write it as it is resolved", text)
	}
	if port := u.Port(); port != "" && port != defaultPorts[p.scheme] {
		p.host += " " + port // a space is in no host
	}
	p.path = path.Clean("/" + p.path)
	return p, nil
}

// holds reports whether o is this place, or lies below it.
func (p place) holds(o place) bool {
	if p.scheme != o.scheme || p.path != "/" && p.path != o.path && !strings.HasPrefix(o.path, p.path+"/") {
		return false
	}
	return p.host == o.host && !p.wild || p.wild && strings.HasSuffix(o.host, "."+p.host)
}
