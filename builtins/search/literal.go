package search

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// Bounds on the literals that stand in for a pattern.
const (
	maxLiterals   = 12  // alternatives that are looked for one by one
	maxCross      = 24  // alternatives while literals are joined
	maxLiteralLen = 100 // bytes; a longer one is cut
	maxClass      = 6   // runes of a class that are spelled out
)

// literals is a set of strings of which every match contains at least one.
// An empty set says nothing.
type literals struct {
	any  [][]byte
	fold bool // they are in lower case, to be compared without regard to case
}

// required extracts the literals of a pattern. ok is false where it has none
// that are worth looking for.
func required(re *syntax.Regexp) (literals, bool) {
	for _, fold := range []bool{false, true} {
		set := walkLiterals(re, fold).best()
		if len(set) == 0 || len(set) > maxLiterals || shortest(set) < 2 && !rareByte(set) {
			continue
		}
		l := literals{fold: fold}
		for _, s := range set {
			l.any = append(l.any, []byte(s))
		}
		return l, true
	}
	return literals{}, false
}

// rareByte reports whether a set is one byte that few lines have.
func rareByte(set []string) bool {
	return len(set) == 1 && len(set[0]) == 1 && rarity(set[0][0]) < 14
}

// facts are what is known of the strings that a node matches: all of them
// (exact), or that each contains one of inner.
type facts struct {
	exact []string // nil: not known
	inner []string // nil: nothing
}

func (f facts) best() []string {
	if f.exact != nil && (f.inner == nil || worth(f.exact) >= worth(f.inner)) {
		return f.exact
	}
	return f.inner
}

// worth orders sets: a long shortest member is good, many members are bad.
func worth(set []string) int {
	if len(set) == 0 {
		return -1
	}
	n := shortest(set)
	if n < 2 {
		return n
	}
	return 16*min(n, 8) - 4*len(set)
}

func shortest(set []string) int {
	n := 1 << 30
	for _, s := range set {
		n = min(n, len(s))
	}
	return n
}

func walkLiterals(re *syntax.Regexp, fold bool) facts {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText,
		syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return facts{exact: []string{""}}
	case syntax.OpLiteral:
		return literalFacts(re, fold)
	case syntax.OpCharClass:
		return classFacts(re, fold)
	case syntax.OpCapture:
		return walkLiterals(re.Sub[0], fold)
	case syntax.OpConcat:
		return concatFacts(re.Sub, fold)
	case syntax.OpAlternate:
		return alternateFacts(re.Sub, fold)
	case syntax.OpPlus:
		return facts{inner: walkLiterals(re.Sub[0], fold).best()}
	case syntax.OpQuest:
		if e := walkLiterals(re.Sub[0], fold).exact; e != nil && len(e) < maxLiterals {
			return facts{exact: append([]string{""}, e...)}
		}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return facts{inner: walkLiterals(re.Sub[0], fold).best()}
		}
	}
	return facts{}
}

func literalFacts(re *syntax.Regexp, fold bool) facts {
	insensitive := re.Flags&syntax.FoldCase != 0
	var b []byte
	for _, r := range re.Rune {
		switch {
		case fold && r >= utf8.RuneSelf:
			// Lower-casing bytes is for ASCII only. Cut the literal here.
			return facts{inner: oneOf(b)}
		case fold:
			b = append(b, byte(unicode.ToLower(r)))
		case insensitive && unicode.SimpleFold(r) != r:
			return facts{}
		default:
			b = utf8.AppendRune(b, r)
		}
		if len(b) > maxLiteralLen {
			return facts{inner: oneOf(b)}
		}
	}
	return facts{exact: []string{string(b)}}
}

func oneOf(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return []string{string(b)}
}

func classFacts(re *syntax.Regexp, fold bool) facts {
	var set []string
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for r := re.Rune[i]; r <= re.Rune[i+1]; r++ {
			if len(set) == maxClass {
				return facts{}
			}
			if fold {
				if r >= utf8.RuneSelf {
					if r == 'ſ' || r == 'K' {
						continue // folds to s and k, which mark looks out for
					}
					return facts{}
				}
				r := unicode.ToLower(r)
				if !contains(set, string(r)) {
					set = append(set, string(r))
				}
				continue
			}
			set = append(set, string(r))
		}
	}
	return facts{exact: set}
}

func contains(set []string, s string) bool {
	for _, t := range set {
		if s == t {
			return true
		}
	}
	return false
}

func concatFacts(subs []*syntax.Regexp, fold bool) facts {
	run := []string{""} // strings that end where the next node begins
	whole := true       // run covers everything so far
	var best []string
	keep := func(set []string) {
		if worth(set) > worth(best) {
			best = set
		}
	}
	for _, sub := range subs {
		f := walkLiterals(sub, fold)
		if f.exact == nil || len(run)*len(f.exact) > maxCross {
			keep(run)
			whole, run = false, []string{""}
			keep(f.inner)
			if f.exact == nil || len(f.exact) > maxCross {
				continue
			}
		}
		var next []string
		for _, a := range run {
			for _, b := range f.exact {
				next = append(next, a+b)
			}
		}
		run = next
		if shortest(run) > maxLiteralLen {
			keep(run)
			whole, run = false, []string{""}
		}
	}
	if whole {
		return facts{exact: run, inner: best}
	}
	keep(run)
	return facts{inner: best}
}

func alternateFacts(subs []*syntax.Regexp, fold bool) facts {
	var exact, inner []string
	exactAll := true
	for _, sub := range subs {
		f := walkLiterals(sub, fold)
		if f.exact == nil {
			exactAll = false
		} else {
			exact = append(exact, f.exact...)
		}
		b := f.best()
		if len(b) == 0 {
			return facts{}
		}
		inner = append(inner, b...)
		if len(inner) > maxCross {
			return facts{}
		}
	}
	if exactAll {
		return facts{exact: exact}
	}
	return facts{inner: inner}
}
