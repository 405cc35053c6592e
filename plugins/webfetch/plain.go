package main

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// plain reads a page as text in one pass, without a tree: a line for each
// block, headings and list items marked. It is for pages on which anything
// better would run past the limits, so it works on any nesting.
func plain(page []byte) article {
	var (
		z     = html.NewTokenizer(bytes.NewReader(page))
		text  lines
		a     article
		title bool
	)
	for {
		switch z.Next() {
		case html.ErrorToken:
			a.text = text.String()
			return a
		case html.TextToken:
			s := html.UnescapeString(string(z.Raw()))
			if title {
				a.title += s
				continue
			}
			text.add(s)
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch tag := atom.Lookup(name); {
			case tag == atom.Title:
				title = a.title == ""
			case tag == atom.Script || dropped[tag] && !void[tag]:
				skip(z, string(name))
			case blocks[tag]:
				text.end(marks[tag])
			case tag == atom.Td || tag == atom.Th:
				text.add(" | ")
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			if tag == atom.Title {
				title = false
				a.title = strings.Join(strings.Fields(a.title), " ")
			}
			if blocks[tag] {
				text.end("")
			}
		}
	}
}

var blocks = set(atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Br, atom.Caption, atom.Dd, atom.Div, atom.Dl,
	atom.Dt, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6,
	atom.Header, atom.Hr, atom.Li, atom.Main, atom.Nav, atom.Ol, atom.P, atom.Pre, atom.Section, atom.Table, atom.Tr, atom.Ul)

var marks = map[atom.Atom]string{
	atom.H1: "# ", atom.H2: "## ", atom.H3: "### ", atom.H4: "#### ", atom.H5: "##### ", atom.H6: "###### ", atom.Li: "- ",
}

// lines collects words into lines with single spaces.
type lines struct {
	out   strings.Builder
	mark  string // of the line that has not begun
	begun bool
	space bool
}

func (l *lines) add(s string) {
	for i, word := range strings.Fields(s) {
		switch {
		case !l.begun:
			l.out.WriteString(l.mark)
			l.begun = true
		case l.space || i > 0 || strings.IndexAny(s[:1], " \t\r\n") == 0:
			l.out.WriteByte(' ')
		}
		l.out.WriteString(word)
		l.space = false
	}
	if s != "" {
		l.space = strings.ContainsAny(s[len(s)-1:], " \t\r\n") || (l.space && strings.TrimSpace(s) == "")
	}
}

func (l *lines) end(mark string) {
	if l.begun {
		l.out.WriteByte('\n')
	}
	l.begun, l.space, l.mark = false, false, mark
}

func (l *lines) String() string { return strings.TrimSpace(l.out.String()) }
