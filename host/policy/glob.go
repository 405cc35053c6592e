package policy

import (
	"errors"
	"path"
	"strings"
)

const (
	maxAlternatives = 64  // of {a,b} in one pattern
	maxComponents   = 256 // of a pattern
)

// glob is a path pattern with the semantics of doublestar: '*', '?' and
// classes stay inside a component, a component "**" stands for any number of
// them, none included, and {a,b} for either.
type glob struct {
	src  string
	alts [][]string // alternatives after braces are expanded, by component
}

func parseGlob(src string) (glob, error) {
	alts, err := expandBraces(src, maxAlternatives)
	if err != nil {
		return glob{}, err
	}
	g := glob{src: src}
	for _, a := range alts {
		if strings.Contains(a, "//") {
			return glob{}, errors.New("a pattern holds no empty, . or .. components")
		}
		segs := splitPath(a)
		if len(segs) > maxComponents {
			return glob{}, errors.New("the pattern has too many components")
		}
		for _, s := range segs {
			if s == "" || s == "." || s == ".." {
				return glob{}, errors.New("a pattern holds no empty, . or .. components")
			}
			if s != "**" && strings.Contains(s, "**") {
				return glob{}, errors.New("** stands alone in its component")
			}
			if _, err := path.Match(s, ""); err != nil {
				return glob{}, errors.New("the pattern is malformed")
			}
		}
		g.alts = append(g.alts, segs)
	}
	return g, nil
}

func (g glob) match(segs []string) bool {
	for _, a := range g.alts {
		if matchSegs(a, segs, false) {
			return true
		}
	}
	return false
}

// matchPrefix reports whether something at or below segs could match.
func (g glob) matchPrefix(segs []string) bool {
	for _, a := range g.alts {
		if matchSegs(a, segs, true) {
			return true
		}
	}
	return false
}

// matchSegs runs the pattern as a set of positions, so its work is the product
// of both lengths whatever the number of "**".
func matchSegs(pat, segs []string, prefix bool) bool {
	at := make([]bool, len(pat)+1)
	next := make([]bool, len(pat)+1)
	at[0] = true
	skip := func(set []bool) {
		for i, p := range pat {
			if set[i] && p == "**" {
				set[i+1] = true
			}
		}
	}
	skip(at)
	for _, s := range segs {
		clear(next)
		alive := false
		for i, p := range pat {
			if !at[i] {
				continue
			}
			if p == "**" {
				next[i], alive = true, true
			} else if ok, _ := path.Match(p, s); ok {
				next[i+1], alive = true, true
			}
		}
		if !alive {
			return false
		}
		skip(next)
		at, next = next, at
	}
	return prefix || at[len(pat)]
}

// literal reports whether a pattern holds this run of components word for word.
func literalRun(pat, run []string) bool {
	for i := 0; i+len(run) <= len(pat); i++ {
		ok := true
		for j, r := range run {
			p := pat[i+j]
			ok = ok && (!strings.ContainsAny(p, "*?[") || strings.Contains(p, `\`)) && foldName(unescapeGlob(p)) == r
		}
		if ok {
			return true
		}
	}
	return false
}

func expandBraces(s string, limit int) ([]string, error) {
	start, depth := -1, 0
	var commas []int
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				start = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			depth--
			if depth < 0 {
				return nil, errors.New("a } has no {")
			}
			if depth == 0 {
				return expandAt(s, start, i, commas, limit)
			}
		}
	}
	if depth != 0 {
		return nil, errors.New("a { has no }")
	}
	return []string{s}, nil
}

func expandAt(s string, start, end int, commas []int, limit int) ([]string, error) {
	var out []string
	from := start + 1
	for _, c := range append(commas, end) {
		part, err := expandBraces(s[:start]+s[from:c]+s[end+1:], limit-len(out))
		if err != nil {
			return nil, err
		}
		if out = append(out, part...); len(out) > limit {
			return nil, errors.New("the pattern has too many alternatives")
		}
		from = c + 1
	}
	return out, nil
}

const globMeta = `*?[]{},\`

func escapeGlob(s string) string {
	if !strings.ContainsAny(s, globMeta) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(globMeta, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func unescapeGlob(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
