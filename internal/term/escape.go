package term

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape makes s safe to show on one line of a terminal: everything that could
// move the cursor, hide, reorder or imitate text is written as <U+202E>.
// Letters of every script stay as they are. hidden counts what was replaced.
//
// The set: C0, C1 and DEL, bidirectional controls, zero-width and other format
// characters (Cf, which includes the tag characters), blank look-alikes such as
// U+3164, line separators, private use and surrogates, and bytes that are not
// UTF-8 (shown as <0x9B>).
func Escape(s string) (out string, hidden int) {
	if plain(s) {
		return s, 0
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "<0x%02X>", s[i])
			hidden++
		case unsafeRune(r):
			fmt.Fprintf(&b, "<U+%04X>", r)
			hidden++
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String(), hidden
}

// Line is Escape without the count.
func Line(s string) string {
	out, _ := Escape(s)
	return out
}

// Lines escapes a text of several lines; newlines stay, tabs become spaces.
func Lines(s string) string {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\t", "    ")
	if plain(strings.ReplaceAll(s, "\n", "")) {
		return s
	}
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = Line(p)
	}
	return strings.Join(parts, "\n")
}

func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// blanks are letters or symbols that show as nothing.
var blanks = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
	{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
	{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
	{Lo: 0x180b, Hi: 0x180f, Stride: 1}, // Mongolian variation selectors
	{Lo: 0x2800, Hi: 0x2800, Stride: 1}, // Braille blank
	{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
	{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, // variation selectors
	{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // half-width Hangul filler
}, R32: []unicode.Range32{
	{Lo: 0xe0000, Hi: 0xe0fff, Stride: 1}, // tags, variation selectors supplement
}}

func unsafeRune(r rune) bool {
	if r < 0x20 || r >= 0x7f && r < 0xa0 {
		return true
	}
	if r < 0xa0 {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp, blanks) ||
		unicode.Is(unicode.Zs, r) || !unicode.IsPrint(r) && !unicode.Is(unicode.M, r)
}
