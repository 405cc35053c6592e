package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

// maxTarget bounds what is parsed of one use: longer ones are refused unread.
const maxTarget = 64 << 10

// use is a Use, parsed once for all layers.
type use struct {
	Use
	segs      []string // fs: the path's components
	protected []protectedName
	req       *request // net.http
	argv      []string // exec
}

// request is a canonical URL, taken apart.
type request struct {
	scheme, host, path string
	port               string
	literal            netip.Addr // the host, if it is an address
	addr               netip.Addr // what would be dialed, if known
	special            string     // class of addr, or of a name such as localhost
	odd                bool       // the path can be read in two ways
}

func parseUse(u Use) (*use, error) {
	p := &use{Use: u}
	if len(u.Target) > maxTarget {
		return nil, errors.New("it is too long")
	}
	if u.Cap != abi.Exec && strings.ContainsRune(u.Target, 0) {
		return nil, errors.New("it contains a NUL byte")
	}
	var err error
	switch u.Cap {
	case abi.FSRead, abi.FSWrite:
		err = p.parsePath()
	case abi.NetHTTP:
		err = p.parseRequest()
	case abi.Exec:
		p.argv = strings.Split(u.Target, "\x00")
		if p.argv[0] == "" {
			err = errors.New("no program is named")
		}
	case abi.KV, abi.Model:
		if u.N < 0 {
			err = errors.New("the amount is negative")
		}
	case abi.Secret:
		name, host, ok := strings.Cut(u.Target, "@")
		if !ok || name == "" {
			return nil, errors.New("a secret is used as name@host")
		}
		host, err = CanonicalHost(host)
		p.Target = name + "@" + host
	default:
		if !u.Cap.Known() {
			err = fmt.Errorf("there is no capability %q", u.Cap)
		}
	}
	return p, err
}

func (p *use) parsePath() error {
	t := p.Target
	switch {
	case !utf8.ValidString(t):
		return errors.New("the path is not valid UTF-8")
	case !strings.HasPrefix(t, "/") || path.Clean(t) != t:
		return errors.New("the path is not absolute and clean")
	}
	p.segs = splitPath(t)
	if len(p.segs) > 0 {
		switch p.segs[0] {
		case "proc", "sys", "dev":
			return errors.New("system folders are never reached")
		}
	}
	if p.Cap == abi.FSWrite {
		p.protected = protectedIn(p.segs)
	}
	return nil
}

func splitPath(t string) []string {
	t = strings.Trim(t, "/")
	if t == "" {
		return nil
	}
	return strings.Split(t, "/")
}

func (p *use) parseRequest() error {
	u, err := CheckURL(p.Target)
	if err != nil {
		return err
	}
	if err := checkMethod(p.Verb); err != nil {
		return err
	}
	r := &request{scheme: u.Scheme, host: u.Hostname(), port: u.Port()}
	if r.port == "" {
		r.port = defaultPort(u.Scheme)
	}
	r.path, r.odd = cleanURLPath(u)
	r.literal, _ = netip.ParseAddr(r.host)
	r.addr = p.Addr.Unmap()
	if r.literal.IsValid() {
		if r.addr.IsValid() && r.addr != r.literal.Unmap() {
			return fmt.Errorf("the URL names %s, not %s", r.literal, r.addr)
		}
		r.addr = r.literal.Unmap()
	}
	if r.addr.IsValid() {
		if special, name := AddressClass(r.addr); special {
			r.special = name
		}
	} else if localName(r.host) {
		r.special = "loopback"
	}
	p.req = r
	return nil
}

// cleanURLPath decodes and cleans the path. odd reports one that servers read
// differently: dot segments, encoded slashes, backslashes.
func cleanURLPath(u *url.URL) (clean string, odd bool) {
	raw := u.EscapedPath()
	if raw == "" {
		return "/", false
	}
	dec := u.Path
	clean = path.Clean("/" + dec)
	if strings.HasSuffix(dec, "/") && clean != "/" {
		clean += "/"
	}
	low := strings.ToLower(raw)
	odd = clean != dec || strings.Contains(low, "%2f") || strings.Contains(low, "%5c") || strings.ContainsAny(dec, "\\\x00;") || strings.Contains(low, "%25")
	return clean, odd
}

// sensitive says why the target needs a grant that names it, or "".
func (p *use) sensitive() string {
	if len(p.protected) > 0 {
		n := p.protected[0]
		return fmt.Sprintf("%s is protected, because %s; it needs a grant of its own", n.name, n.why)
	}
	if p.req != nil && p.req.special != "" {
		what := p.req.host
		if p.req.addr.IsValid() && !p.req.literal.IsValid() {
			what += " resolves to " + p.req.addr.String() + ", which"
		}
		return fmt.Sprintf("%s is a %s address, and no grant names it", what, p.req.special)
	}
	return ""
}

// denial is the refusal of a grant layer, with the narrowest grant.
func (p *use) denial(layer, why string) *Denial {
	return &Denial{Use: p.Use, Layer: layer, Why: why, Final: p.sensitive() != "", Grant: p.narrowest()}
}

// narrowest is the smallest grant that covers the use.
func (p *use) narrowest() Grant {
	g := Grant{Cap: p.Cap}
	switch p.Cap {
	case abi.FSRead, abi.FSWrite:
		g.Scope = []string{escapeGlob(p.Target)}
	case abi.NetHTTP:
		g.Scope = p.req.scopes(p.Verb)
	case abi.Exec:
		words := make([]string, len(p.argv))
		for i, a := range p.argv {
			words[i] = quoteWord(a)
		}
		g.Scope = []string{strings.Join(words, " ")}
	case abi.KV:
		g.Scope = []string{formatSize(p.N)}
	case abi.Model:
		g.Scope = []string{formatTokens(p.N)}
	case abi.ClockFine:
	default:
		g.Scope = []string{p.Target}
	}
	es, err := parseEntries([]Grant{g}, false)
	if err != nil || slices.ContainsFunc(g.Scope, func(s string) bool { return strings.TrimSpace(s) != s }) {
		return Grant{} // a target that no scope can express, such as a name with a line break
	}
	g.Scope = nil
	for _, e := range es {
		g.Scope = append(g.Scope, e.grant().Scope...)
	}
	return g
}

// scopes name the URL and, where it is special, the address.
func (r *request) scopes(method string) []string {
	s := func(host string) string {
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if r.port != defaultPort(r.scheme) {
			host += ":" + r.port
		}
		p := ""
		if !r.odd {
			p = escapeGlob((&url.URL{Path: r.path}).Path)
		}
		if strings.ContainsAny(p, " \t\r\n") {
			p = ""
		}
		return r.scheme + "://" + host + p + " " + method
	}
	out := []string{s(r.host)}
	if r.special != "" && r.addr.IsValid() && !r.literal.IsValid() && !(localName(r.host) && r.addr.IsLoopback()) {
		out = append(out, s(r.addr.String()))
	}
	return out
}

func shownTarget(u Use) string {
	switch u.Cap {
	case abi.Exec:
		return strings.ReplaceAll(u.Target, "\x00", " ")
	case abi.NetHTTP:
		if x, err := url.Parse(u.Target); err == nil {
			x.User, x.RawQuery, x.Fragment = nil, "", ""
			return x.String()
		}
		if i := strings.LastIndexByte(u.Target, '@'); i >= 0 {
			return "…" + u.Target[i:]
		}
	case abi.KV, abi.Model:
		return fmt.Sprint(u.N)
	}
	return u.Target
}
