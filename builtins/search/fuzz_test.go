package search

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/internal/queries"
)

// FuzzSearch compares the engine with regexp asked line by line.
func FuzzSearch(f *testing.F) {
	for _, p := range queries.Patterns() {
		f.Add(p[len(p)-1], "func main() {\n\treturn err // TODO: x\n}\n\nЖ é ſ K\n", false, false)
	}
	f.Add(`\b(a|b)+\B.$`, "ab a\nba\xff\n", true, true)
	f.Add(`^$`, "\n\na\n", false, false)
	f.Add(`(?i)skill`, "ſkill\nsKill\n", true, false)
	f.Fuzz(func(t *testing.T, expr, text string, ignoreCase, word bool) {
		if len(expr) > 200 || len(text) > 4000 {
			return
		}
		m, err := compile(pattern{exprs: []string{expr}, ignoreCase: ignoreCase, word: word})
		if err != nil {
			return
		}
		var want []int
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if text != "" && m.re.MatchString(line) {
				want = append(want, i)
			}
		}
		for _, s := range []*scanner{m.scanner(), bare(m, true), bare(m, false)} {
			if got := s.all([]byte(text)); !slices.Equal(got, want) {
				t.Fatalf("%q in %q: lines %v, want %v", expr, text, got, want)
			}
		}
	})
}

// bare is a scanner without literals, with or without the automaton.
func bare(m *matcher, automaton bool) *scanner {
	n := *m
	n.lits, n.certain = nil, false
	if !automaton {
		n.prog = nil
	}
	return n.scanner()
}

// all gives the numbers of the matching lines.
func (s *scanner) all(text []byte) (lines []int) {
	if !s.reset(text) {
		return nil
	}
	for at := 0; ; {
		start, end, ok := s.next(at)
		if !ok {
			return lines
		}
		lines = append(lines, bytes.Count(text[:start], []byte{'\n'}))
		at = end + 1
	}
}

func TestTooManyStatesFallBack(t *testing.T) {
	m, err := compile(pattern{exprs: []string{`[ab]*a[ab]{18}c`}})
	if err != nil {
		t.Fatal(err)
	}
	s := m.scanner()
	var text []byte
	for i := range 40_000 {
		text = append(text, "ab"[i*i/7%13%2], "ab"[i/3%2])
		if i%200 == 0 {
			text = append(text, '\n')
		}
	}
	text = append(text, "\naabababababababababac\n"...)
	if got := s.all(text); len(got) != 1 {
		t.Errorf("lines %v", got)
	}
	if len(s.dfaStates()) > dfaStates+1 {
		t.Errorf("%d states", len(s.dfaStates()))
	}
}

func (s *scanner) dfaStates() []state {
	if s.dfa == nil {
		return nil
	}
	return s.dfa.states
}

// FuzzGlob compares components without ** and braces with path.Match, and
// looks for patterns that take long.
func FuzzGlob(f *testing.F) {
	f.Add("*.{go,[a-c]}", "a.go")
	f.Add("a/**/b*?[!x]", "a/x/y/bcd")
	f.Add(`\{a,b\}`, "{a,b}")
	f.Fuzz(func(t *testing.T, text, name string) {
		start := time.Now()
		g, err := compileGlob(text, globOptions{})
		if err == nil {
			got := g.match(name)
			if !strings.ContainsAny(text, "{}!^") && !strings.Contains(text, "**") && name != "" && valid(text) && valid(name) && !strings.Contains(name, "//") {
				if want, err := path.Match(text, name); err == nil && got != want && !emptyPart(text) && !emptyPart(name) {
					t.Fatalf("%q against %q is %v", text, name, got)
				}
			}
		}
		parseIgnore(text)
		if took := time.Since(start); took > 30*time.Second {
			t.Fatalf("%q takes %v", text, took)
		}
	})
}

func valid(s string) bool { return !strings.ContainsRune(s, '\uFFFD') }

func emptyPart(s string) bool { return slices.Contains(strings.Split(s, "/"), "") }

func FuzzRG(f *testing.F) {
	f.Add("-n\x00-g\x00*.go\x00x")
	f.Add("--max-count=3\x00-A\x001\x00--\x00-x")
	f.Fuzz(func(t *testing.T, line string) {
		c, err := parseRG(strings.Split(line, "\x00"))
		if err == nil && c.mode != listFiles && !c.typeList && len(c.exprs) == 0 {
			t.Fatalf("%q has no pattern and no error", line)
		}
	})
}

func TestLower(t *testing.T) {
	for i := range 256 {
		for pad := range 9 {
			text := append(bytes.Repeat([]byte{'Z'}, pad), byte(i))
			text = append(text, "[@`{Aa\xc1\xff rest of it"...)
			want := regexp.MustCompile(`[A-Z]`).ReplaceAllFunc(slices.Clone(text), func(b []byte) []byte { return []byte{b[0] + 32} })
			if got := lower(nil, text); !bytes.Equal(got, want) {
				t.Fatalf("lower(%q) = %q, want %q", text, got, want)
			}
		}
	}
}
