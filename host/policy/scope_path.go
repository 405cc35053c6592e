package policy

import (
	"errors"
	"path"
	"strings"
)

// pathScope is a scope of fs.read and fs.write.
type pathScope struct{ glob }

func parsePathScope(text string) (scope, error) {
	if !strings.HasPrefix(text, "/") {
		return nil, errors.New("a path scope begins with /, for example /ws/**")
	}
	if strings.Contains(text, "//") {
		return nil, errors.New("a pattern holds no empty, . or .. components")
	}
	if len(text) > 1 {
		text = strings.TrimSuffix(text, "/")
	}
	if strings.TrimSpace(text) != text {
		return nil, errors.New("a path scope does not end in a space")
	}
	g, err := parseGlob(text)
	if err != nil {
		return nil, err
	}
	return &pathScope{g}, nil
}

func (s *pathScope) covers(p *use, _ kind) bool { return s.match(p.segs) }
func (s *pathScope) touches(p *use) bool        { return s.match(p.segs) || s.match(foldAll(p.segs)) }
func (s *pathScope) text() string               { return s.src }
func (s *pathScope) below(dir string) bool      { return s.matchPrefix(splitPath(path.Clean(dir))) }

// names holds when one alternative matches the path and spells out every
// protected name in it.
func (s *pathScope) names(p *use) bool {
	for _, a := range s.alts {
		if !matchSegs(a, p.segs, false) {
			continue
		}
		ok := true
		for _, n := range p.protected {
			ok = ok && literalRun(a, n.run)
		}
		if ok {
			return true
		}
	}
	return false
}

func foldAll(segs []string) []string {
	out := make([]string, len(segs))
	for i, s := range segs {
		out[i] = strings.ToLower(s)
	}
	return out
}
