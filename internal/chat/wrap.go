package chat

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/internal/term"
)

// noBegin are characters that no line begins with, noEnd those that none ends
// with (the essence of JIS X 4051 and GB/T 15834).
const (
	noBegin = "、。，．：；？！）］｝〉》」』】〕〗’”…・ー々ゝゞヽヾぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;?!)]}%"
	noEnd   = "（［｛〈《「『【〔〖‘“([{"
)

// unspaced reports a character of a script that is written without spaces.
func unspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Bopomofo) ||
		r >= 0x3000 && r <= 0x303f || r >= 0xff00 && r <= 0xffef
}

// pieces parts a word where a line may end inside of it: between characters of
// scripts that have no spaces.
func pieces(word string) (out []string) {
	from := 0
	var before rune
	for i, r := range word {
		if i > 0 && (unspaced(before) || unspaced(r)) && !strings.ContainsRune(noBegin, r) && !strings.ContainsRune(noEnd, before) &&
			!unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			out = append(out, word[from:i])
			from = i
		}
		before = r
	}
	return append(out, word[from:])
}

// wrap breaks the lines of a safe text between words, or pieces of them, so that
// each fits into width columns. What follows a break has the line's own indent.
func wrap(text string, width int) string {
	if width < 20 {
		return text
	}
	var b strings.Builder
	for n, line := range strings.Split(text, "\n") {
		if n > 0 {
			b.WriteByte('\n')
		}
		rest := strings.TrimLeft(line, " ")
		indent := line[:min(len(line)-len(rest), width/2)]
		b.WriteString(indent)
		col, space := len(indent), ""
		for _, word := range strings.Split(rest, " ") {
			for i, p := range pieces(word) {
				gap := space
				if i > 0 {
					gap = ""
				}
				w := ansi.StringWidth(p)
				if col > len(indent) && col+len(gap)+w > width-1 {
					b.WriteString("\n" + indent)
					col, gap = len(indent), ""
				}
				b.WriteString(gap + p)
				col += len(gap) + w
			}
			space = " "
		}
	}
	return b.String()
}

// told is a text for a line of its own, wrapped where there is a window.
func (s *screen) told(text string) string { return wrap(text, term.Width(s.out)) }
