package files

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hintText is how much of a file is searched for what an edit may have meant.
const hintText = 4 << 20

// numbered matches a line that still has Read's number column: "   248→text",
// and the forms of other tools, "12|text" and "12<tab>text".
var numbered = regexp.MustCompile(`^ *\d+(?:→|\||\t)`)

// notFound explains why old does not occur in text. Each cause is checked
// against the file, not guessed.
func notFound(text, old []byte, p names) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s was not found in the file, which is unchanged. It must match exactly, white space included.", p.old)
	text, old = fold(text).text, fold(old).text
	text = text[:min(len(text), hintText)]
	if why := cause(text, old, p); why != "" {
		b.WriteString("\n" + why)
	}
	if near, from := nearest(text, old); near != nil {
		fmt.Fprintf(&b, "\nThe nearest lines of the file (→ is a tab, · a space, ␍ a carriage return):\n%s", visible(near, from))
	}
	return b.String()
}

func cause(text, old []byte, p names) string {
	if bare, ok := stripNumbers(old); ok {
		why := "Its lines begin with the line-number column that Read prints; that is not part of the file. Leave the numbers and the arrow out."
		if n := bytes.Count(text, bare); n == 1 {
			why += fmt.Sprintf(" Without them it matches at line %d.", lineAt(text, bytes.Index(text, bare)))
		}
		return why
	}
	if trimmed := bytes.TrimRight(old, "\n"); len(trimmed) < len(old) && len(trimmed) > 0 && bytes.HasSuffix(text, trimmed) {
		return fmt.Sprintf("%s ends with a newline, but the file's last line has none. Leave the final newline out.", p.old)
	}
	if i := indexFolded(text, old, foldQuote); i >= 0 {
		return fmt.Sprintf("Line %d differs only in typographic characters (curly quotes, long dashes or no-break spaces). Copy them as the file has them.", lineAt(text, i))
	}
	if i := indexFolded(text, old, foldCR); i >= 0 {
		return fmt.Sprintf("Line %d differs only in line ends: the file has lone carriage returns there.", lineAt(text, i))
	}
	if lines := spaceMatches(text, old); len(lines) > 0 {
		return fmt.Sprintf("Only white space differs at line %s: check tabs, spaces and indentation.", join(lines))
	}
	if i := indexFolded(text, old, unicode.ToLower); i >= 0 {
		return fmt.Sprintf("Only upper and lower case differ at line %d.", lineAt(text, i))
	}
	return ""
}

func stripNumbers(old []byte) ([]byte, bool) {
	lines := bytes.Split(old, []byte{'\n'})
	for i, line := range lines {
		if len(line) == 0 && i == len(lines)-1 {
			break
		}
		n := numbered.FindIndex(line)
		if n == nil {
			return nil, false
		}
		lines[i] = line[n[1]:]
	}
	return bytes.Join(lines, []byte{'\n'}), true
}

func foldQuote(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '′':
		return '\''
	case '“', '”', '„', '‟', '″', '«', '»':
		return '"'
	case '–', '—', '‐', '‑', '−':
		return '-'
	case '\u00a0', '\u202f', '\u2009', '\u3000':
		return ' '
	}
	return r
}

func foldCR(r rune) rune {
	if r == '\r' {
		return '\n'
	}
	return r
}

// indexFolded finds old in text after mapping the runes of both, one to one.
// The offset is in the original.
func indexFolded(text, old []byte, m func(rune) rune) int {
	ft, fo := bytes.Map(m, text), bytes.Map(m, old)
	i := bytes.Index(ft, fo)
	if i < 0 {
		return -1
	}
	off := 0
	for n := utf8.RuneCount(ft[:i]); n > 0; n-- {
		_, w := utf8.DecodeRune(text[off:])
		off += w
	}
	return off
}

// spaceMatches gives the lines at which old occurs when every run of white
// space counts as one. It needs something besides white space to go by.
func spaceMatches(text, old []byte) []int {
	want := bytes.Fields(old)
	if len(want) == 0 {
		return nil
	}
	var lines []int
	work := 4 << 20 // words compared
	for at := 0; len(lines) < 3 && work > 0; {
		i := bytes.Index(text[at:], want[0])
		if i < 0 {
			return lines
		}
		at += i
		n := fieldsAt(text[at:], want)
		if work -= n + 1; n == len(want) {
			lines = append(lines, lineAt(text, at))
		}
		at += len(want[0])
	}
	return lines
}

// fieldsAt counts how many of the words text begins with.
func fieldsAt(text []byte, want [][]byte) int {
	for i, w := range want {
		if i > 0 {
			text = bytes.TrimLeftFunc(text, unicode.IsSpace)
		}
		if !bytes.HasPrefix(text, w) {
			return i
		}
		text = text[len(w):]
	}
	return len(want)
}

func lineAt(text []byte, off int) int { return 1 + bytes.Count(text[:off], []byte{'\n'}) }

// visible numbers lines and shows their white space.
func visible(lines [][]byte, from int) string {
	var b strings.Builder
	for i, line := range lines {
		if len(line) > 400 {
			line = append(append([]byte(nil), cutRune(line, 400)...), "…"...)
		}
		fmt.Fprintf(&b, "%6d|%s\n", from+i, strings.NewReplacer("\t", "→", " ", "·", "\r", "␍", "\u00a0", "⍽").Replace(string(line)))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func cutRune(b []byte, n int) []byte {
	if len(b) <= n {
		return b
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n]
}

func join(lines []int) string {
	var b strings.Builder
	for i, n := range lines {
		switch {
		case i == 40:
			fmt.Fprintf(&b, " and %d more", len(lines)-40)
			return b.String()
		case i > 0 && i == len(lines)-1:
			b.WriteString(" and ")
		case i > 0:
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}
