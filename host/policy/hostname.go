package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// lookupProfile maps as browsers do (UTS 46): full-width dots, soft hyphens,
// case; then checks every label.
var lookupProfile = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.Transitional(false), idna.StrictDomainName(true), idna.VerifyDNSLength(true))

// CanonicalHost returns the one spelling under which a host is matched,
// resolved and shown: ASCII (IDNA), lower case, no trailing dot; an address in
// its shortest form without brackets. A name whose last label is a number but
// which is not a dotted-quad address is refused: resolvers disagree on it.
func CanonicalHost(host string) (string, error) {
	if host == "" {
		return "", errors.New("the host is empty")
	}
	if len(host) > 1024 {
		return "", errors.New("the host is too long")
	}
	if in, ok := strings.CutPrefix(host, "["); ok {
		if in, ok = strings.CutSuffix(in, "]"); !ok {
			return "", fmt.Errorf("host %q lacks its closing bracket", host)
		}
		host = in
		if !strings.Contains(host, ":") {
			return "", fmt.Errorf("host %q is bracketed but no IPv6 address", host)
		}
	}
	if strings.Contains(host, ":") {
		a, err := netip.ParseAddr(host)
		if err != nil || a.Zone() != "" {
			return "", fmt.Errorf("host %q is not an IPv6 address (zones are not reached)", host)
		}
		return a.String(), nil
	}
	name, err := asciiHost(host)
	if err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".")
	if err := checkLabels(name); err != nil {
		return "", err
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if numericLabel(last) {
		a, err := netip.ParseAddr(name)
		if err != nil {
			return "", fmt.Errorf("host %q ends in a number but is not an address such as 192.0.2.1", name)
		}
		return a.String(), nil
	}
	return name, nil
}

// asciiHost leaves plain ASCII names to checkLabels, which allows the
// underscores that some real hosts have.
func asciiHost(host string) (string, error) {
	ascii, puny := true, false
	for i := 0; i < len(host); i++ {
		ascii = ascii && host[i] < 0x80
	}
	host = strings.ToLower(host)
	puny = strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--")
	if ascii && !puny {
		return host, nil
	}
	name, err := lookupProfile.ToASCII(strings.TrimSuffix(host, "."))
	if err != nil {
		return "", fmt.Errorf("host %q is not a valid internationalised name", host)
	}
	return name, nil
}

func checkLabels(name string) error {
	if len(name) > 253 || name == "" {
		return fmt.Errorf("host %q is not a name of 1 to 253 bytes", name)
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return fmt.Errorf("host %q has a malformed label %q", name, label)
		}
		for i := 0; i < len(label); i++ {
			c := label[i]
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
				return fmt.Errorf("host %q has a forbidden character %q", name, c)
			}
		}
	}
	return nil
}

// numericLabel is the "ends in a number" check of the URL standard.
func numericLabel(s string) bool {
	if hex, ok := strings.CutPrefix(s, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// localName reports names that mean this machine wherever they resolve (RFC 6761).
func localName(host string) bool {
	switch host {
	case "localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain", "localhost6", "localhost6.localdomain6", "broadcasthost":
		return true
	}
	return strings.HasSuffix(host, ".localhost")
}

// CheckURL parses a URL that is about to be requested and returns it in
// canonical form: http or https, canonical host, a default port dropped, no
// fragment. User-info is refused: it leaks, and hides the real host.
func CheckURL(raw string) (*url.URL, error) {
	if len(raw) > maxTarget {
		return nil, errors.New("the URL is too long")
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] <= ' ' || raw[i] == 0x7f || raw[i] == '\\' {
			return nil, errors.New("the URL contains a space, backslash or control character")
		}
	}
	u, err := url.Parse(raw)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a secret
		}
		return nil, fmt.Errorf("the URL is malformed: %w", err)
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the scheme %q is not http or https", u.Scheme)
	case u.User != nil:
		return nil, errors.New("the URL carries user-info (user:password@)")
	case u.Opaque != "":
		return nil, errors.New("the URL has no host")
	}
	name := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		name = "[" + name + "]"
	}
	host, err := CanonicalHost(name)
	if err != nil {
		return nil, err
	}
	port := u.Port()
	if strings.HasSuffix(u.Host, ":") && port == "" {
		port = defaultPort(u.Scheme)
	}
	if port != "" {
		if port, err = canonicalPort(port); err != nil {
			return nil, err
		}
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && port != defaultPort(u.Scheme) {
		host += ":" + port
	}
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	return u, nil
}

func canonicalPort(s string) (string, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not between 1 and 65535", s)
	}
	return strconv.FormatUint(n, 10), nil
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}

// checkMethod accepts upper-case methods. CONNECT opens tunnels and TRACE and
// TRACK echo credentials: no grant gives them.
func checkMethod(m string) error {
	if m == "" || len(m) > 24 || strings.Trim(m, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
		return fmt.Errorf("%q is not an HTTP method in upper case", m)
	}
	switch m {
	case "CONNECT", "TRACE", "TRACK":
		return fmt.Errorf("the method %s is never allowed", m)
	}
	return nil
}
