package policy

import (
	"errors"
	"path"
	"strings"
)

// execScope is an argv pattern: words as a shell would quote them, without a
// shell. Inside a word '*' stands for any characters. A word "*" is one
// argument that is no option, as the last word any number of them; a last
// word "**" is any number of any arguments. An option is never positional,
// not even after "--": it must be written out, or matched by a word that
// begins with '-' (SH-17). A program written as a plain name is the one that
// the host finds in its PATH, when it was asked for by that name.
type execScope struct {
	words []execWord
	rest  string // "", "*" or "**"
}

type execWord struct {
	pat string // path.Match pattern over the text with '/' replaced
	lit string // text, when there is no '*'
	any bool   // "*"
}

func parseExecScope(text string) (scope, error) {
	words, err := splitWords(text)
	if err != nil {
		return nil, err
	}
	if len(words) == 0 {
		return nil, errors.New("a program scope names a program")
	}
	if words[0].lit == "" || strings.Contains(words[0].lit, "/") && !path.IsAbs(words[0].lit) {
		return nil, errors.New("the program is a plain name or an absolute path, without *")
	}
	s := &execScope{words: words}
	if last := words[len(words)-1]; last.any {
		s.words, s.rest = words[:len(words)-1], "*"
	} else if last.pat == "**" {
		s.words, s.rest = words[:len(words)-1], "**"
	}
	return s, nil
}

// splitWords reads words with '…' and \ quoting.
func splitWords(text string) ([]execWord, error) {
	var out []execWord
	var lit, pat strings.Builder
	in, star := false, false
	end := func() {
		if in {
			w := execWord{pat: pat.String(), lit: lit.String()}
			w.any = star && w.pat == "*"
			if star {
				w.lit = ""
			}
			out = append(out, w)
		}
		lit.Reset()
		pat.Reset()
		in, star = false, false
	}
	put := func(c byte) {
		in = true
		lit.WriteByte(c)
		if strings.IndexByte(`*?[]\`, c) >= 0 {
			pat.WriteByte('\\')
		}
		pat.WriteByte(c)
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ':
			end()
		case '\'':
			j := strings.IndexByte(text[i+1:], '\'')
			if j < 0 {
				return nil, errors.New("a quote is not closed")
			}
			in = true
			for k := range j {
				put(text[i+1+k])
			}
			i += j + 1
		case '\\':
			if i++; i == len(text) {
				return nil, errors.New("it ends in a backslash")
			}
			put(text[i])
		case '*':
			in, star = true, true
			pat.WriteByte('*')
		default:
			put(c)
		}
	}
	end()
	return out, nil
}

// match lets '*' cross slashes, which path.Match does not: both sides get
// another byte for '/', one that no valid UTF-8 holds.
func (w execWord) match(arg string) bool {
	if w.any {
		return !strings.HasPrefix(arg, "-")
	}
	if w.lit != "" || !strings.Contains(w.pat, "*") {
		return arg == w.lit
	}
	if !strings.HasPrefix(w.pat, "-") && strings.HasPrefix(arg, "-") {
		return false
	}
	ok, _ := path.Match(strings.ReplaceAll(w.pat, "/", "\x00"), strings.ReplaceAll(arg, "/", "\x00"))
	return ok
}

func (s *execScope) covers(p *use, _ kind) bool {
	argv := p.argv
	if len(argv) < len(s.words) || len(argv) > len(s.words) && s.rest == "" {
		return false
	}
	for i, w := range s.words {
		if !w.match(argv[i]) && !(i == 0 && p.Name != "" && w.lit == p.Name) {
			return false
		}
	}
	for _, a := range argv[len(s.words):] {
		if s.rest == "*" && strings.HasPrefix(a, "-") {
			return false
		}
	}
	return true
}

// touches ignores where the program lies and what follows the pattern.
func (s *execScope) touches(p *use) bool {
	if len(p.argv) < len(s.words) {
		return false
	}
	for i, w := range s.words {
		a := p.argv[i]
		if !w.match(a) && !(i == 0 && w.match(path.Base(a))) {
			return false
		}
	}
	return true
}

func (s *execScope) names(*use) bool { return false }

func (s *execScope) text() string {
	parts := make([]string, 0, len(s.words)+1)
	for _, w := range s.words {
		parts = append(parts, w.text())
	}
	if s.rest != "" {
		parts = append(parts, s.rest)
	}
	return strings.Join(parts, " ")
}

func (w execWord) text() string {
	if w.lit != "" || !strings.Contains(w.pat, "*") {
		return quoteWord(w.lit)
	}
	var b strings.Builder
	for i := 0; i < len(w.pat); i++ {
		c := w.pat[i]
		if c == '\\' && i+1 < len(w.pat) {
			i++
			if c = w.pat[i]; c != '?' && c != '[' && c != ']' {
				b.WriteByte('\\')
			}
		} else if c == ' ' || c == '\'' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

func quoteWord(a string) string {
	if a == "" {
		return "''"
	}
	if !strings.ContainsAny(a, ` '\*`) {
		return a
	}
	return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
}
