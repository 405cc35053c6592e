// Package plain makes text of others safe to show: to a person, who must see
// all that a model sees, and to a model, which must see no more than a person.
package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line is s on one line: no hidden characters, no ends of lines, at most n
// characters.
func Line(s string, n int) string {
	s = strings.Join(strings.Fields(Visible(s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimSpace(string(r[:n-1])) + "…"
}

// Visible drops the hidden characters; ends of lines and tabs stay.
func Visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && Hidden(r) {
			return -1
		}
		return r
	}, s)
}

// Hidden reports characters that a reader does not see, but a model does:
// controls, format characters (bidirectional controls, tags, zero-width ones),
// private use, and letters that show as nothing. The joiners that scripts and
// emoji need are none.
func Hidden(r rune) bool {
	switch {
	case r == 0x200c || r == 0x200d || r == 0x00ad: // joiners, soft hyphen
		return false
	case r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800 || r == 0x034f:
		return true
	case r >= 0xe0100 && r <= 0xe01ef: // variation selectors that can carry bytes
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}
