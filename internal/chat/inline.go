package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/elfhost/elfhost/internal/term"
)

// look is how a run of text is shown.
type look int

const (
	normal look = iota
	bold
	emphasis
	code
)

// run is a piece of a line with one look. Its text is not escaped yet.
type run struct {
	text string
	look look
}

// marks are the inline marks, longest first.
var marks = []struct {
	mark string
	look look
}{{"**", bold}, {"__", bold}, {"*", emphasis}, {"_", emphasis}}

// inline parts a line at its marks. While the line streams, what stands before
// s[cut], a space, can be shown: no mark that follows changes it. cut is 0
// where nothing can.
func inline(s string) (runs []run, cut int) {
	open := false // a mark may yet claim the rest
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			runs = append(runs, run{plain.String(), normal})
			plain.Reset()
		}
	}
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\\`*_[]<>#|", s[i+1]) >= 0 {
			plain.WriteByte(s[i+1])
			i += 2
			continue
		}
		r, n, closed := marked(s, i)
		if n == 0 {
			if s[i] == ' ' && !open {
				cut = i
			}
			_, size := utf8.DecodeRuneInString(s[i:])
			plain.WriteString(s[i : i+size])
			i += size
			continue
		}
		open = open || !closed
		if closed {
			flush()
			runs = append(runs, r)
		} else {
			plain.WriteString(s[i : i+n])
		}
		i += n
	}
	flush()
	return runs, cut
}

// marked reads a span that begins at i; n is 0 where none does, and the length
// of the mark where it is not closed in s.
func marked(s string, i int) (r run, n int, closed bool) {
	rest := s[i:]
	switch rest[0] {
	case '`':
		ticks := len(rest) - len(strings.TrimLeft(rest, "`"))
		if end := strings.Index(rest[ticks:], rest[:ticks]); end >= 0 {
			text := rest[ticks : ticks+end]
			if len(text) > 2 && text[0] == ' ' && text[len(text)-1] == ' ' {
				text = text[1 : len(text)-1]
			}
			return run{text, code}, ticks*2 + end, true
		}
		return run{}, ticks, false
	case '[':
		return link(rest)
	}
	for _, m := range marks {
		if !strings.HasPrefix(rest, m.mark) {
			continue
		}
		body := rest[len(m.mark):]
		if body == "" {
			return run{}, len(m.mark), false
		}
		// "2 * 3" and snake_case are no emphasis.
		if body[0] == ' ' || m.mark[0] == '_' && i > 0 && wordy(s[:i]) {
			return run{}, 0, false
		}
		for from := 0; ; {
			end := strings.Index(body[from:], m.mark)
			if end < 0 {
				return run{}, len(m.mark), false
			}
			end += from
			after := body[end+len(m.mark):]
			inWord := m.mark[0] == '_' && after != "" && (after[0] == '_' || letter(after))
			if end > 0 && body[end-1] != ' ' && !inWord {
				return run{body[:end], m.look}, end + 2*len(m.mark), true
			}
			from = end + len(m.mark)
		}
	}
	return run{}, 0, false
}

// link shows [text](target) as "text (target)": people see where it leads.
func link(s string) (r run, n int, closed bool) {
	end := strings.IndexByte(s, ']')
	switch {
	case end < 0:
		return run{}, 1, false
	case end+1 == len(s):
		return run{}, 1, false
	case s[end+1] != '(':
		return run{}, 0, false
	}
	stop := strings.IndexByte(s[end+2:], ')')
	if stop < 0 {
		return run{}, 1, false
	}
	text, target := s[1:end], s[end+2:end+2+stop]
	if text != target && text != "" {
		target = text + " (" + target + ")"
	}
	return run{target, normal}, end + 3 + stop, true
}

func wordy(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

func letter(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r) || unicode.IsDigit(r)
}

// paint escapes a word and gives it its look.
func paint(s term.Style, word string, l look) string {
	word = term.Line(word)
	switch l {
	case bold:
		return s.Bold(word)
	case emphasis:
		return s.Yellow(word)
	case code:
		return s.Cyan(word)
	}
	return word
}
