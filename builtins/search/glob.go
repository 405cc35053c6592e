package search

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
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

// segment is one component of a pattern.
type segment struct {
	deep   bool // **
	kind   segmentKind
	text   string // literal, prefix or suffix
	tokens []token
}

type segmentKind int

const (
	tokens  segmentKind = iota
	literal             // no wildcards
	prefix              // text*
	suffix              // *text
	all                 // *
)

type token struct {
	op     tokenOp
	r      rune
	ranges []rune // pairs
	not    bool
}

type tokenOp int

const (
	opRune tokenOp = iota
	opAny
	opStar
	opClass
)

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

func compileSegment(s string) (segment, error) {
	if !strings.ContainsAny(s, `*?[\`) {
		return segment{kind: literal, text: s}, nil
	}
	if s == "*" {
		return segment{kind: all}, nil
	}
	if rest := s[1:]; s[0] == '*' && !strings.ContainsAny(rest, `*?[\`) {
		return segment{kind: suffix, text: rest}, nil
	}
	if rest := s[:len(s)-1]; s[len(s)-1] == '*' && !strings.ContainsAny(rest, `*?[\`) {
		return segment{kind: prefix, text: rest}, nil
	}
	var toks []token
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		i += w
		switch r {
		case '*':
			if n := len(toks); n == 0 || toks[n-1].op != opStar {
				toks = append(toks, token{op: opStar})
			}
		case '?':
			toks = append(toks, token{op: opAny})
		case '[':
			t, n, err := compileClass(s[i:])
			if err != nil {
				return segment{}, err
			}
			toks, i = append(toks, t), i+n
		case '\\':
			if i == len(s) {
				return segment{}, fmt.Errorf("it ends in a lone backslash")
			}
			r, w = utf8.DecodeRuneInString(s[i:])
			i += w
			fallthrough
		default:
			toks = append(toks, token{r: r})
		}
	}
	return segment{tokens: toks}, nil
}

// compileClass reads a class after its opening bracket.
func compileClass(s string) (token, int, error) {
	t := token{op: opClass}
	i := 0
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		t.not = true
		i++
	}
	for first := true; i < len(s); first = false {
		r, w := utf8.DecodeRuneInString(s[i:])
		i += w
		if r == ']' && !first {
			return t, i, nil
		}
		if r == '\\' && i < len(s) {
			r, w = utf8.DecodeRuneInString(s[i:])
			i += w
		}
		hi := r
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, w = utf8.DecodeRuneInString(s[i+1:])
			i += 1 + w
		}
		if hi < r {
			return t, 0, fmt.Errorf("the range %c-%c is backwards", r, hi)
		}
		t.ranges = append(t.ranges, r, hi)
	}
	return t, 0, fmt.Errorf("a [ is not closed")
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

func (s *segment) match(name string) bool {
	switch s.kind {
	case literal:
		return name == s.text
	case all:
		return name != ""
	case suffix:
		return strings.HasSuffix(name, s.text)
	case prefix:
		return strings.HasPrefix(name, s.text)
	}
	toks := s.tokens
	i, j, star, from := 0, 0, -1, 0
	for j < len(name) {
		r, w := rune(name[j]), 1
		if r >= utf8.RuneSelf {
			r, w = utf8.DecodeRuneInString(name[j:])
		}
		switch {
		case i < len(toks) && toks[i].op == opStar:
			star, from = i, j
			i++
		case i < len(toks) && toks[i].match(r):
			i++
			j += w
		case star >= 0:
			_, w := utf8.DecodeRuneInString(name[from:])
			from += w
			i, j = star+1, from
		default:
			return false
		}
	}
	for i < len(toks) && toks[i].op == opStar {
		i++
	}
	return i == len(toks)
}

func (t *token) match(r rune) bool {
	switch t.op {
	case opRune:
		return t.r == r
	case opAny:
		return true
	}
	in := false
	for k := 0; k < len(t.ranges); k += 2 {
		if t.ranges[k] <= r && r <= t.ranges[k+1] {
			in = true
			break
		}
	}
	return in != t.not
}

// expandBraces spells out {a,b}. It fails where the alternatives would be
// more than max, before making them. Braces without a comma are themselves.
func expandBraces(s string, max int) ([]string, error) {
	open, commas, end := -1, []int(nil), -1
	depth, class := 0, false
scan:
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = strings.IndexByte(s[i:], ']') > 0
		case c == '{':
			if depth == 0 {
				open, commas = i, nil
			}
			depth++
		case c == ',' && depth == 1:
			commas = append(commas, i)
		case c == '}' && depth > 0:
			if depth--; depth == 0 {
				end = i
				break scan
			}
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("the glob %q has a { without its }; write \\{ for the character itself", s)
	}
	if end < 0 {
		return []string{s}, nil
	}
	rest, err := expandBraces(s[end+1:], max)
	if err != nil {
		return nil, err
	}
	inner, err := alternativesOf(s, open, end, commas, max)
	if err != nil {
		return nil, err
	}
	if len(inner)*len(rest) > max {
		return nil, fmt.Errorf("the braces of the glob stand for more than %d alternatives", max)
	}
	out := make([]string, 0, len(inner)*len(rest))
	for _, a := range inner {
		for _, b := range rest {
			out = append(out, s[:open]+a+b)
		}
	}
	return out, nil
}

func alternativesOf(s string, open, end int, commas []int, max int) ([]string, error) {
	if len(commas) == 0 {
		return []string{`\{` + s[open+1:end] + `\}`}, nil
	}
	var out []string
	from := open + 1
	for _, c := range append(commas, end) {
		more, err := expandBraces(s[from:c], max)
		if err != nil {
			return nil, err
		}
		if out = append(out, more...); len(out) > max {
			return nil, fmt.Errorf("the braces of the glob stand for more than %d alternatives", max)
		}
		from = c + 1
	}
	return out, nil
}

// hasUpper reports whether a pattern has an upper-case letter, for smart case.
func hasUpper(s string) bool {
	return strings.IndexFunc(s, unicode.IsUpper) >= 0
}
