package scan

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// invisible is a kind of characters that a reader does not see and a model does.
type invisible struct {
	rule, what string
	level      Level
	is         func(rune) bool
}

// kinds of invisible characters. The joiners and selectors that scripts and
// emoji need are none of them.
var kinds = []invisible{
	{"hidden-tags", "tag characters, which spell a hidden text", Alarm, func(r rune) bool { return r >= 0xe0000 && r <= 0xe007f }},
	{"hidden-bytes", "variation selectors, which can carry hidden bytes", Alarm, func(r rune) bool { return r >= 0xe0100 && r <= 0xe01ef }},
	{"hidden-bidi", "characters that turn the direction of text around", Alarm, func(r rune) bool {
		return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
	}},
	{"hidden", "invisible characters", Look, func(r rune) bool {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == 0x200c || r == 0x200d || r == 0x00ad || r == 0x200e || r == 0x200f:
			return false
		case r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0 || r == 0x2800 || r == 0x034f:
			return true
		}
		return unicode.In(r, unicode.Cc, unicode.Cf)
	}},
}

// hidden counts the invisible characters of a text.
func (c *collector) hidden(where, body string) {
	body = strings.TrimPrefix(body, "\ufeff") // a mark of the encoding, not a message
	counts, first := make([]int, len(kinds)), make([]int, len(kinds))
	var tags strings.Builder
	flag := false
	for i, r := range body {
		if r < 0x80 && r >= ' ' || r == '\n' {
			continue
		}
		// The flags of England, Scotland and Wales are spelled with tags after a
		// black flag.
		if flag = r == 0x1f3f4 || flag && kinds[0].is(r); flag {
			continue
		}
		for k := range kinds {
			if kinds[k].is(r) {
				if counts[k]++; counts[k] == 1 {
					first[k] = i
				}
				if k == 0 && tags.Len() < 200 {
					tags.WriteRune(r - 0xe0000)
				}
				break
			}
		}
	}
	for k, n := range counts {
		if n == 0 {
			continue
		}
		says := fmt.Sprintf("%d %s", n, kinds[k].what)
		if k == 0 {
			says += ": " + line(tags.String(), 80)
		}
		c.add(kinds[k].rule, kinds[k].level, at(where, body, first[k]), says)
	}
}

// at is the place of an offset: "SKILL.md:12" in a file, and the whole else.
func at(where, body string, off int) string {
	if !strings.Contains(where, ".") || off < 0 {
		return where
	}
	return fmt.Sprintf("%s:%d", where, 1+strings.Count(body[:off], "\n"))
}

// line is s on one line without what cannot be seen, at most n characters.
func line(s string, n int) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		for _, k := range kinds {
			if k.is(r) {
				return -1
			}
		}
		return r
	}, s)), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}
