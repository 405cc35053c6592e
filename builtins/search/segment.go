package search

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

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
