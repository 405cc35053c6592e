package search

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPattern bounds a pattern's text.
const maxPattern = 64 << 10

// pattern is what is looked for. Its zero value matches every line.
type pattern struct {
	exprs      []string // any of them
	fixed      bool     // they are strings, not RE2
	ignoreCase bool
	word       bool // a match is not part of a longer word
	wholeLine  bool // a match is a whole line
	multiline  bool // a match may span lines
	dotAll     bool // and . matches a newline
}

// matcher is a compiled pattern. It is immutable; each goroutine has a scanner.
type matcher struct {
	re        *regexp.Regexp // where in a line, or in the whole text, the matches lie
	group     int            // of re, that is the match proper: 1 for words, which re finds with what is around them
	bare      *regexp.Regexp // re without what stands around a word
	prog      *program       // nil: lines are asked of re one by one
	lits      []needle
	fold      bool // lits are in lower case
	certain   bool // a literal that is found is a match
	multiline bool
}

// compile checks a pattern.
func compile(p pattern) (*matcher, error) {
	expr, err := p.expr()
	if err != nil {
		return nil, err
	}
	m := &matcher{multiline: p.multiline}
	flags := ""
	if p.ignoreCase {
		flags += "i"
	}
	if p.multiline {
		flags += "m"
		if p.dotAll {
			flags += "s"
		}
	}
	if flags != "" {
		expr = "(?" + flags + ")" + expr
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, explain(err, strings.Join(p.exprs, "|"))
	}
	if m.re, err = regexp.Compile(expr); err != nil {
		return nil, explain(err, strings.Join(p.exprs, "|"))
	}
	m.bare = m.re
	if p.word {
		m.group = 1
		p.word = false
		if expr, err = p.expr(); err != nil {
			return nil, err
		}
		if flags != "" {
			expr = "(?" + flags + ")" + expr
		}
		if m.bare, err = regexp.Compile(expr); err != nil {
			return nil, explain(err, strings.Join(p.exprs, "|"))
		}
	}
	if !p.multiline && hasNewline(tree) {
		return nil, fmt.Errorf("the pattern contains a newline, but lines are searched one by one: set multiline to let a match span lines")
	}
	tree = tree.Simplify()
	if l, ok := required(tree); ok {
		for _, lit := range l.any {
			m.lits = append(m.lits, newNeedle(lit))
		}
		m.fold = l.fold
	}
	if !p.multiline {
		if prog, err := newProgram(tree); err == nil {
			m.prog = prog
		}
	}
	m.certain = len(p.exprs) == 1 && tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 &&
		len(m.lits) == 1 && string(m.lits[0].lit) == string(tree.Rune)
	return m, nil
}

func (p pattern) expr() (string, error) {
	var alternatives []string
	size := 0
	for _, e := range p.exprs {
		if size += len(e); size > maxPattern {
			return "", fmt.Errorf("the pattern is %d bytes long; at most %d are allowed", size, maxPattern)
		}
		if !utf8.ValidString(e) {
			return "", fmt.Errorf("the pattern is not valid UTF-8")
		}
		if p.fixed {
			e = regexp.QuoteMeta(e)
		}
		alternatives = append(alternatives, e)
	}
	expr := strings.Join(alternatives, "|")
	if len(alternatives) > 1 {
		expr = "(?:" + strings.Join(alternatives, ")|(?:") + ")"
	}
	switch {
	case p.wholeLine && p.multiline:
		return "^(?:" + expr + ")$", nil
	case p.wholeLine:
		return `\A(?:` + expr + `)\z`, nil
	case p.word:
		const other = `[^\p{L}\p{M}\p{N}\p{Pc}]` // see partOfWord
		return "(?:^|" + other + ")(" + expr + ")(?:" + other + "|$)", nil
	}
	return expr, nil
}

// asciiClasses reports a pattern that names letters outside ASCII beside a class
// that holds none: RE2's classes are narrower than ripgrep's.
func (p pattern) asciiClasses() bool {
	return !p.fixed && slices.ContainsFunc(p.exprs, func(e string) bool {
		return asciiClass.MatchString(e) && strings.ContainsFunc(e, func(r rune) bool { return r >= utf8.RuneSelf })
	})
}

var asciiClass = regexp.MustCompile(`\\[wWdDsSbB]`)

// explain makes a sentence of a compile error, with what to do about it.
func explain(err error, expr string) error {
	hint := ""
	switch {
	case strings.Contains(expr, "(?=") || strings.Contains(expr, "(?!") || strings.Contains(expr, "(?<"):
		hint = ". RE2 has no look-around; search for the text itself, or twice"
	case regexp.MustCompile(`\\[1-9]`).MatchString(expr):
		hint = ". RE2 has no back-references"
	case strings.Contains(err.Error(), "repeat") || strings.Contains(err.Error(), "missing argument"):
		hint = `. To search for the characters as they are, escape them with \ or ask for fixed strings`
	case strings.Contains(err.Error(), "missing closing") || strings.Contains(err.Error(), "unexpected )"):
		hint = `. To search for ( [ or { as they are, escape them with \ or ask for fixed strings`
	}
	return fmt.Errorf("the pattern is not a valid RE2 expression: %s%s", strings.TrimPrefix(err.Error(), "error parsing regexp: "), hint)
}

func hasNewline(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if r == '\n' {
				return true
			}
		}
	}
	if re.Op == syntax.OpCharClass && len(re.Rune) == 2 && re.Rune[0] == '\n' && re.Rune[1] == '\n' {
		return true
	}
	for _, s := range re.Sub {
		if hasNewline(s) {
			return true
		}
	}
	return false
}

// scanner finds matching lines in texts, one text after the other.
type scanner struct {
	*matcher
	dfa    *dfa
	find   finder
	low    []byte
	text   []byte
	screen bool // the literals decide which lines are looked at
}

func (m *matcher) scanner() *scanner {
	s := &scanner{matcher: m, find: finder{lits: m.lits}}
	if m.prog != nil {
		s.dfa = newDFA(m.prog)
	}
	return s
}

// reset takes the next text. It returns false when no line of it can match.
func (s *scanner) reset(text []byte) bool {
	s.text, s.screen = text, len(s.lits) > 0
	if !s.screen {
		return true
	}
	if s.fold {
		if foldsToASCII(text) {
			s.screen = false
			return true
		}
		s.low = lower(s.low, text)
		text = s.low
	}
	s.find.reset(text)
	return s.find.from(0) >= 0
}

// next returns the first matching line that begins at or after from, without
// its newline. from is the start of a line.
func (s *scanner) next(from int) (start, end int, ok bool) {
	for from < len(s.text) {
		at := from
		switch {
		case s.screen:
			at = s.find.from(from)
		case s.dfa != nil:
			at = s.byDFA(from)
		}
		if at < 0 {
			return 0, 0, false
		}
		start, end = lineAround(s.text, from, at)
		if s.certain || !s.screen && s.dfa != nil || s.matches(s.text[start:end]) {
			return start, end, true
		}
		from = end + 1
	}
	return 0, 0, false
}

func (s *scanner) byDFA(from int) int {
	at, err := s.dfa.find(s.text, from)
	if err != nil {
		s.dfa = nil // too many states: the slow way from here on
		return from
	}
	return at
}

// matches asks about one line.
func (s *scanner) matches(line []byte) bool {
	if s.dfa != nil {
		at, err := s.dfa.find(line, 0)
		if err == nil {
			return at >= 0 || len(line) == 0 && s.re.Match(line)
		}
		s.dfa = nil
	}
	return s.re.Match(line)
}

// lineAround gives the line that at is in. A newline is part of the line it ends.
func lineAround(text []byte, from, at int) (start, end int) {
	start = from
	if i := bytes.LastIndexByte(text[from:at], '\n'); i >= 0 {
		start = from + i + 1
	}
	end = len(text)
	if at < len(text) {
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i
		}
	}
	return start, end
}

// spans returns where in a line the matches lie, at most n.
func (m *matcher) spans(line []byte, n int) [][2]int {
	var out [][2]int
	for _, loc := range m.locate(line, n) {
		out = append(out, [2]int{loc[0], loc[1]})
	}
	return out
}

// locate returns at most n matches, all for -1, as pairs of offsets: the match,
// then the groups of the pattern as it was given.
func (m *matcher) locate(text []byte, n int) (out [][]int) {
	if m.group == 0 {
		return m.re.FindAllSubmatchIndex(text, n)
	}
	// Two words may share what is between them, so that the search goes on right
	// after a word, and not after what is around it.
	for at := 0; at <= len(text) && len(out) != n; {
		loc := m.re.FindSubmatchIndex(text[at:])
		if loc == nil {
			return out
		}
		loc = loc[2*m.group:]
		_, size := utf8.DecodeRune(text[at:])
		if before, _ := utf8.DecodeLastRune(text[:at]); loc[0] == 0 && at > 0 && partOfWord(before) {
			at += max(size, 1) // ^ stands for the start of the text, which is not here
			continue
		}
		for i := range loc {
			if loc[i] >= 0 {
				loc[i] += at
			}
		}
		out = append(out, loc)
		if at = max(at, loc[1]); loc[0] == loc[1] {
			_, size = utf8.DecodeRune(text[at:])
			at += max(size, 1)
		}
	}
	return out
}

func partOfWord(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Pc)
}

// replace puts what the template gives in place of every match.
func (m *matcher) replace(text []byte, template string) []byte {
	var out []byte
	last := 0
	for _, loc := range m.locate(text, -1) {
		out = append(out, text[last:loc[0]]...)
		out = m.bare.Expand(out, []byte(template), text, loc)
		last = loc[1]
	}
	return append(out, text[last:]...)
}
