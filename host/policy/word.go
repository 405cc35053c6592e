package policy

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// word is what can be said of one word before the shell runs it.
type word struct {
	text    string // after quote removal; as written, when dynamic
	dynamic bool   // its value comes from a variable, a command, arithmetic…
	glob    bool   // may become file names
	tilde   bool   // begins with an unquoted ~
}

// maxBraces bounds the words that one brace expansion gives.
const maxBraces = 64

// words evaluates arguments, braces expanded: {rm,-rf,/} is three words.
func (w *walker) words(in []*syntax.Word) []word {
	var out []word
	for _, x := range in {
		raw := w.source(x)
		if !syntax.SplitBraces(x) {
			out = append(out, w.evaluate(x)...)
			continue
		}
		if n := braceCount(x); n <= 0 || n > maxBraces {
			out = append(out, word{text: raw, dynamic: true})
			continue
		}
		for y, err := range expand.BracesSeq(nil, x) {
			if err != nil {
				out = append(out, word{text: raw, dynamic: true})
				break
			}
			// An empty word without quotes is no word: {,rm} is rm.
			for _, v := range w.evaluate(y) {
				if v.dynamic || v.text != "" || quoted(y) {
					out = append(out, v)
				}
			}
		}
	}
	if len(out) == 0 && len(in) > 0 {
		return []word{{text: w.source(in[0]), dynamic: true}}
	}
	return out
}

// evaluate is one word on the first reading, and what it becomes on the second.
func (w *walker) evaluate(x *syntax.Word) []word {
	if w.sup == nil {
		return []word{w.word(x)}
	}
	out := w.fields(x, x)
	if quoted(x) { // what expands to nothing is no word, unless it was quoted
		out = slices.DeleteFunc(out, func(v word) bool { return v.text == "" && !v.dynamic && !slices.ContainsFunc(x.Parts, isQuote) })
	}
	return out
}

func isQuote(p syntax.WordPart) bool {
	switch p.(type) {
	case *syntax.SglQuoted, *syntax.DblQuoted:
		return true
	}
	return false
}

func quoted(x *syntax.Word) bool {
	return slices.ContainsFunc(x.Parts, func(p syntax.WordPart) bool {
		_, lit := p.(*syntax.Lit)
		return !lit
	})
}

// braceCount is how many words the braces give; 0 for a sequence or too many.
func braceCount(x *syntax.Word) int {
	n := 1
	for _, p := range x.Parts {
		b, ok := p.(*syntax.BraceExp)
		if !ok {
			continue
		}
		sum := 0
		for _, e := range b.Elems {
			c := braceCount(e)
			if b.Sequence || c == 0 {
				return 0
			}
			sum += c
		}
		if n *= sum; n > maxBraces {
			return 0
		}
	}
	return n
}

func (w *walker) source(n syntax.Node) string {
	a, b := n.Pos(), n.End()
	if a.IsValid() && b.IsValid() && a.Offset() <= b.Offset() && int(b.Offset()) <= len(w.src) {
		return w.src[a.Offset():b.Offset()]
	}
	return ""
}

func (w *walker) word(x *syntax.Word) word {
	var out word
	if x == nil {
		return out
	}
	var b strings.Builder
	for i, p := range x.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if i == 0 && strings.HasPrefix(p.Value, "~") {
				out.tilde = true
			}
			out.glob = unquote(&b, p.Value) || out.glob
		case *syntax.SglQuoted:
			if !p.Dollar {
				b.WriteString(p.Value)
			} else if s, ok := ansiC(p.Value); ok {
				b.WriteString(s)
			} else {
				out.dynamic = true
			}
		case *syntax.DblQuoted:
			out.dynamic = !doubleQuoted(&b, p) || out.dynamic
		default:
			out.dynamic = true
		}
	}
	out.text = b.String()
	if out.dynamic {
		if out.text = w.source(x); out.text == "" {
			out.text = "$…"
		}
	}
	return out
}

// unquote removes backslashes and reports whether glob characters remain.
func unquote(b *strings.Builder, s string) (glob bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			if i++; s[i] != '\n' {
				b.WriteByte(s[i])
			}
		default:
			glob = glob || c == '*' || c == '?' || c == '['
			b.WriteByte(c)
		}
	}
	return glob
}

func doubleQuoted(b *strings.Builder, q *syntax.DblQuoted) (static bool) {
	for _, p := range q.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || q.Dollar {
			return false
		}
		quotedLit(b, lit.Value)
	}
	return true
}

// quotedLit removes the backslashes that mean something between double quotes.
func quotedLit(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
}

// ansiC decodes the inside of $'…'.
func ansiC(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		num := func(base, most int) (int64, bool) {
			j := i + 1
			if base == 8 {
				j = i
			}
			k := j
			for k < len(s) && k-j < most && isDigit(s[k], base) {
				k++
			}
			n, err := strconv.ParseInt(s[j:k], base, 64)
			i = k - 1
			return n, err == nil
		}
		switch c := s[i]; c {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v', '\\', '\'', '"', '?':
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[strings.IndexByte(`abeEfnrtv\'"?`, c)])
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, ok := num(8, 3)
			if !ok || n == 0 {
				return "", false
			}
			b.WriteByte(byte(n))
		case 'x':
			n, ok := num(16, 2)
			if !ok || n == 0 {
				return "", false
			}
			b.WriteByte(byte(n))
		case 'u', 'U':
			most := 4
			if c == 'U' {
				most = 8
			}
			n, ok := num(16, most)
			if !ok || n == 0 || n > utf8.MaxRune {
				return "", false
			}
			b.WriteRune(rune(n))
		default:
			return "", false
		}
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	switch base {
	case 8:
		return '0' <= c && c <= '7'
	default:
		return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
	}
}
