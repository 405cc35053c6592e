package outline

import (
	"bytes"
	"strings"
)

// comment is the excerpt of the comment that stands immediately before a
// declaration, or of its docstring.
func (x *extractor) comment(n int32) string {
	if s := x.docstring(n); s != "" {
		return s
	}
	t := x.t
	anchor := n
	for {
		p := t.nodes[anchor].parent
		if p < 0 || !x.kinds[t.nodes[p].kind].wrap || x.before(anchor) >= 0 {
			break
		}
		// In a group, what stands before the group is about the group.
		if t.nodes[p].row != t.nodes[anchor].row && bytes.IndexByte(t.src[t.nodes[p].start:t.nodes[anchor].start], '(') >= 0 {
			break
		}
		anchor = p
	}
	var block []int32 // from the last line up
	row := t.nodes[anchor].row
	for c := x.before(anchor); c >= 0; c = t.nodes[c].prev {
		if x.kinds[t.nodes[c].kind].skip {
			row = t.nodes[c].row
			continue
		}
		if !x.isComment(c) || !x.alone(c) || x.endRow(c)+1 < row {
			break
		}
		block = append(block, c)
		row = t.nodes[c].row
		if !lineComment(t.src[t.nodes[c].start:t.nodes[c].end]) {
			break
		}
	}
	var text strings.Builder
	for i := len(block) - 1; i >= 0; i-- {
		text.WriteString(t.text(block[i]))
		text.WriteByte('\n')
	}
	return excerpt(text.String())
}

// before is the sibling before a node in which a comment may be: keywords and
// braces in between mean that there is none.
func (x *extractor) before(n int32) int32 {
	c := x.t.nodes[n].prev
	if c < 0 || x.isComment(c) || x.t.nodes[c].flags&flagNamed != 0 {
		return c
	}
	if k := x.t.kind(c); k == ";" || k == "," || k == "\n" { // ends the one before
		return x.t.nodes[c].prev
	}
	return -1
}

func (x *extractor) isComment(n int32) bool { return strings.HasSuffix(x.t.kind(n), "comment") }

// endRow is the last line of a comment, also where its node holds the line break.
func (x *extractor) endRow(n int32) uint32 {
	m := x.t.nodes[n]
	return m.row + uint32(bytes.Count(x.t.src[m.start:trimmedEnd(x.t.src, m.start, m.end)], []byte("\n")))
}

// alone reports whether nothing stands before a comment on its line: otherwise
// it is about that.
func (x *extractor) alone(n int32) bool {
	start := x.t.nodes[n].start
	from := bytes.LastIndexByte(x.t.src[:start], '\n') + 1
	return len(bytes.TrimSpace(x.t.src[from:start])) == 0
}

func lineComment(b []byte) bool {
	return bytes.HasPrefix(b, []byte("//")) || bytes.HasPrefix(b, []byte("#"))
}

// docstring is the text that a Python body begins with.
func (x *extractor) docstring(n int32) string {
	body := x.t.child(n, "body")
	if body < 0 || x.t.kind(body) != "block" {
		return ""
	}
	b := x.t.src[x.t.nodes[body].start:x.t.nodes[body].end]
	for i := 0; i < 2 && len(b) > 0 && strings.IndexByte("rRuU", b[0]) >= 0; i++ {
		b = b[1:]
	}
	for _, q := range []string{`"""`, `'''`, `"`, `'`} {
		if rest, ok := bytes.CutPrefix(b, []byte(q)); ok {
			if end := bytes.Index(rest, []byte(q)); end >= 0 {
				return firstLine(string(rest[:end]))
			}
			return ""
		}
	}
	return ""
}

// excerpt is the first line of a comment that says something to people.
func excerpt(text string) string {
	tag := ""
	for l := range strings.Lines(text) {
		l = undress(l)
		switch {
		case l == "" || directive(l):
		case l[0] == '@':
			if tag == "" {
				tag = l
			}
		default:
			return line(l)
		}
	}
	return line(tag)
}

func firstLine(text string) string {
	for l := range strings.Lines(text) {
		if l = line(l); l != "" {
			return l
		}
	}
	return ""
}

// undress takes the marks of a comment away.
func undress(l string) string {
	l = strings.TrimSpace(l)
	for _, mark := range []string{"/**", "/*!", "/*", "///", "//!", "//", "#!", "#"} {
		if rest, ok := strings.CutPrefix(l, mark); ok {
			l = rest
			break
		}
	}
	l = strings.TrimSuffix(l, "*/")
	l = strings.TrimLeft(strings.TrimSpace(l), "*")
	return strings.Trim(l, " \t-=*/#")
}

// directive reports whether a line speaks to a tool.
func directive(l string) bool {
	for _, p := range []string{"go:", "nolint", "+build", "eslint", "prettier-ignore", "@ts-", "noqa", "pylint:", "pragma:", "type:",
		"swiftlint:", "MARK:", "NOLINT", "clang-format", "ktlint", "ignore_for_file:", "ignore:", "export "} {
		if strings.HasPrefix(l, p) {
			return p != "export " || strings.Count(l, " ") == 1 // cgo's //export name
		}
	}
	return false
}
