package search

import (
	"fmt"
	"strings"
	"unicode"
)

// Bounds on globs.
const (
	maxGlob   = 4096 // bytes
	maxBraces = 1024 // alternatives that braces may stand for
)

// globOptions say how a glob is read.
type globOptions struct {
	fold     bool // letters match in either case
	noBraces bool // braces are ordinary characters, as in gitignore
}

// glob is a compiled file name pattern: * and ? within a component, [a-z] and
// [!a-z], ** for any number of components, {a,b} for alternatives. Matching is
// bounded by the product of pattern and path, whatever the pattern.
type glob struct {
	alternatives [][]segment
	fold         bool
}

// compileGlob checks a pattern. The error is a clause for a sentence.
func compileGlob(text string, o globOptions) (*glob, error) {
	if len(text) > maxGlob {
		return nil, fmt.Errorf("the glob is %d bytes long; at most %d are allowed", len(text), maxGlob)
	}
	if o.fold {
		text = strings.ToLower(text)
	}
	alternatives := []string{text}
	if !o.noBraces {
		var err error
		if alternatives, err = expandBraces(text, maxBraces); err != nil {
			return nil, err
		}
	}
	g := &glob{fold: o.fold}
	for _, a := range alternatives {
		var segs []segment
		for _, part := range splitGlob(a) {
			if part == "**" {
				if len(segs) == 0 || !segs[len(segs)-1].deep {
					segs = append(segs, segment{deep: true})
				}
				continue
			}
			s, err := compileSegment(part)
			if err != nil {
				return nil, fmt.Errorf("the glob %q is not valid: %w", text, err)
			}
			segs = append(segs, s)
		}
		g.alternatives = append(g.alternatives, segs)
	}
	return g, nil
}

// splitGlob splits at slashes that are not escaped.
func splitGlob(s string) []string {
	var parts []string
	from := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '/':
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}

// match asks about a path, components separated by slashes.
func (g *glob) match(name string) bool {
	if g.fold {
		name = strings.ToLower(name)
	}
	var parts []string
	for _, segs := range g.alternatives {
		if len(segs) == 1 && !segs[0].deep {
			if strings.IndexByte(name, '/') < 0 && segs[0].match(name) {
				return true
			}
			continue
		}
		if parts == nil {
			parts = strings.Split(name, "/")
		}
		if matchSegments(segs, parts) {
			return true
		}
	}
	return false
}

// matchSegments backs up to the last ** only, like a glob with one kind of
// star does: what an earlier ** could do, the later one can do too.
func matchSegments(segs []segment, parts []string) bool {
	i, j, star, from := 0, 0, -1, 0
	for j < len(parts) {
		switch {
		case i < len(segs) && segs[i].deep:
			if i == len(segs)-1 {
				return true // a final ** takes at least one component
			}
			star, from = i, j
			i++
		case i < len(segs) && segs[i].match(parts[j]):
			i++
			j++
		case star >= 0:
			from++
			i, j = star+1, from
		default:
			return false
		}
	}
	return i == len(segs)
}

// hasUpper reports whether a pattern has an upper-case letter, for smart case.
func hasUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0
}
