package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// publicScope is the word for every address that is not of special use.
const publicScope = "public"

// netScope is a scope of net.http:
//
//	https://api.github.com                  GET and HEAD, port 443, any path
//	https://*.good.test:8443/v1/** GET,POST
//	http://[10.1.0.0/16]:8080 GET           a block of addresses
//	public GET                              any address outside the special-use table
//
// A host without a scheme means https; in a rule that denies it means both,
// and what such a rule leaves out (methods, port) means all.
type netScope struct {
	public  bool
	scheme  string // "" only in a denying rule: both
	host    hostPattern
	port    string // "" only in a denying rule: all
	path    *glob
	methods []string // nil only in a denying rule: all
}

func parseNetScope(text string, deny bool) (scope, error) {
	f := strings.Fields(text)
	if len(f) == 0 || len(f) > 2 {
		return nil, errors.New(`a network scope is "URL" or "URL METHOD,METHOD"`)
	}
	s := &netScope{}
	switch {
	case len(f) == 2:
		for m := range strings.SplitSeq(f[1], ",") {
			if err := checkMethod(m); err != nil {
				return nil, err
			}
			s.methods = append(s.methods, m)
		}
		slices.Sort(s.methods)
		s.methods = slices.Compact(s.methods)
	case !deny:
		s.methods = []string{"GET", "HEAD"}
	}
	if f[0] == publicScope {
		s.public = true
		return s, nil
	}
	return s, s.parseTarget(f[0], deny)
}

func (s *netScope) parseTarget(text string, deny bool) error {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case !ok && deny:
		rest = text
	case !ok:
		s.scheme, rest = "https", text
	default:
		if s.scheme = strings.ToLower(scheme); s.scheme != "http" && s.scheme != "https" {
			return fmt.Errorf("the scheme %q is not http or https", scheme)
		}
	}
	host, rest, err := cutHost(rest)
	if err != nil {
		return err
	}
	if s.host, err = parseHostPattern(host); err != nil {
		return err
	}
	if port, ok := strings.CutPrefix(rest, ":"); ok {
		rest = ""
		if i := strings.IndexByte(port, '/'); i >= 0 {
			port, rest = port[:i], port[i:]
		}
		if s.port, err = canonicalPort(port); err != nil {
			return err
		}
	} else if s.scheme != "" && !deny {
		s.port = defaultPort(s.scheme)
	}
	switch {
	case rest == "" || rest == "/**":
	case strings.ContainsAny(rest, "?#%"):
		return errors.New("a path scope is written decoded, without query or fragment")
	case !strings.HasPrefix(rest, "/"):
		return fmt.Errorf("%q after the host is neither a port nor a path", rest)
	default:
		g, err := parseURLGlob(rest)
		if err != nil {
			return err
		}
		s.path = &g
	}
	return nil
}

// parseURLGlob is parseGlob for URL paths, where a trailing slash counts.
func parseURLGlob(p string) (glob, error) {
	g, err := parseGlob(strings.TrimSuffix(p, "/"))
	g.src = p
	if strings.HasSuffix(p, "/") {
		for i := range g.alts {
			g.alts[i] = append(g.alts[i], "")
		}
	}
	return g, err
}

func urlSegs(p string) []string { return strings.Split(strings.TrimPrefix(p, "/"), "/") }

func cutHost(s string) (host, rest string, err error) {
	if strings.HasPrefix(s, "[") {
		i := strings.IndexByte(s, ']')
		if i < 0 {
			return "", "", errors.New("a [ has no ]")
		}
		return s[:i+1], s[i+1:], nil
	}
	if i := strings.IndexAny(s, ":/"); i >= 0 {
		return s[:i], s[i:], nil
	}
	return s, "", nil
}

func (s *netScope) covers(p *use, k kind) bool {
	r := p.req
	if !s.frame(p) {
		return false
	}
	if s.public {
		return k == kindNeed || r.special == "" && !badPort(r.port) ||
			r.special != "" && !r.literal.IsValid() && !localName(r.host) && !badPort(r.port)
	}
	return s.host.match(r.host)
}

// frame is everything but the host.
func (s *netScope) frame(p *use) bool {
	r := p.req
	return (s.methods == nil || slices.Contains(s.methods, p.Verb)) &&
		(s.scheme == "" || s.scheme == r.scheme) &&
		(s.port == "" || s.public || s.port == r.port) &&
		(s.path == nil || !r.odd && s.path.match(urlSegs(r.path)))
}

// names holds for the address that would be dialed, written as an address or
// a block, and for a name of this machine that resolves to loopback.
func (s *netScope) names(p *use) bool {
	r := p.req
	if r == nil || s.public || !s.frame(p) {
		return false
	}
	if localName(r.host) {
		return s.host.name == r.host && !s.host.wild && (!r.addr.IsValid() || r.addr.IsLoopback()) || r.addr.IsValid() && s.host.matchAddr(r.addr)
	}
	return r.addr.IsValid() && s.host.matchAddr(r.addr)
}

func (s *netScope) touches(p *use) bool {
	r := p.req
	if s.methods != nil && !slices.Contains(s.methods, p.Verb) || s.scheme != "" && s.scheme != r.scheme || s.port != "" && s.port != r.port {
		return false
	}
	if s.path != nil && !r.odd && !s.path.match(urlSegs(r.path)) {
		return false
	}
	if s.public {
		return r.special == ""
	}
	return s.host.match(r.host) || r.addr.IsValid() && s.host.matchAddr(r.addr)
}

func (s *netScope) text() string {
	out := publicScope
	if !s.public {
		out = s.host.String()
		if s.host.prefix.IsValid() && !strings.HasPrefix(out, "[") && strings.ContainsAny(out, ":/") {
			out = "[" + out + "]"
		}
		if s.port != "" && s.port != defaultPort(s.scheme) {
			out += ":" + s.port
		}
		if s.scheme != "" {
			out = s.scheme + "://" + out
		}
		if s.path != nil {
			out += s.path.src
		}
	}
	if s.methods != nil {
		out += " " + strings.Join(s.methods, ",")
	}
	return out
}
