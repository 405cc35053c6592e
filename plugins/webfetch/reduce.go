package main

import (
	"bytes"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of what is handed to the parser. golang.org/x/net/html refuses more
// than 512 open elements, and Readability walks the tree many times over.
const (
	maxDepth      = 100     // open elements by the reducer's own count, which can be a little under the parser's
	maxQuotes     = 16      // open quotations and lists, each of which indents every line in it
	maxFormatting = 24      // open elements that a parser re-opens in every block
	maxNodes      = 50_000  // elements and texts, past which a page is read as plain text
	maxBytes      = 2 << 20 // of the reduced page, likewise
	maxAttribute  = 2 << 10 // bytes of one attribute's value
	maxColumns    = 100     // of a table, each of which is written in all its rows
	maxMetadata   = 64 << 10
)

// reduced is a page without what never carries text.
type reduced struct {
	html  []byte
	large bool // there are more than maxNodes; html is cut there
	deep  bool // elements were left out because they are nested too deeply
}

// reduce copies a page token by token, in one pass and without a tree. It
// drops scripts, styles, drawings, comments and attributes that say nothing
// about the text, and closes formatting elements with the block around them, so
// that hostile nesting cannot make the parser multiply them.
func reduce(page []byte) reduced {
	r := reducer{z: html.NewTokenizer(bytes.NewReader(page)), count: map[atom.Atom]int{}}
	r.out.Grow(min(len(page), 1<<20))
	for r.nodes <= maxNodes && r.out.Len() <= maxBytes {
		switch token := r.z.Next(); token {
		case html.ErrorToken:
			return reduced{html: r.out.Bytes(), deep: r.deep}
		case html.TextToken:
			r.nodes++
			r.out.Write(r.z.Raw())
		case html.StartTagToken, html.SelfClosingTagToken:
			r.start(token == html.SelfClosingTagToken)
		case html.EndTagToken:
			name, _ := r.z.TagName()
			r.end(atom.Lookup(name))
		case html.DoctypeToken:
			r.out.Write(r.z.Raw())
		}
	}
	return reduced{html: r.out.Bytes(), large: true}
}

type reducer struct {
	z          *html.Tokenizer
	out        bytes.Buffer
	open       []atom.Atom       // 0 for an unknown element
	count      map[atom.Atom]int // of each in open, so that most searches need not be made
	formatting int               // of open
	quotes     int               // of open
	cells      int               // of the row that was opened last, spans counted
	nodes      int
	deep       bool
}

func (r *reducer) start(selfClosing bool) {
	raw, more := r.z.TagName()
	tag, name := atom.Lookup(raw), string(raw)
	if dropped[tag] {
		r.formula(tag, more)
		if !void[tag] && !(selfClosing && (tag == atom.Svg || tag == atom.Math)) {
			skip(r.z, name)
		}
		return
	}
	if tag == atom.Script {
		r.script(more)
		return
	}
	r.imply(tag)
	if len(r.open) >= maxDepth || formats[tag] && r.formatting >= maxFormatting || indents[tag] && r.quotes >= maxQuotes {
		r.deep = true
		return
	}
	switch tag {
	case atom.Tr:
		r.cells = 0
	case atom.Td, atom.Th:
		if r.cells++; r.cells > maxColumns {
			r.deep = true
			r.out.WriteByte(' ')
			return
		}
	}
	r.nodes++
	r.out.WriteByte('<')
	r.out.WriteString(name)
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		if string(key) == "colspan" && keep("colspan", value) {
			r.cells += int(value[0]-'0') - 1
		}
		if keep(string(key), value) {
			r.out.WriteByte(' ')
			r.out.Write(key)
			r.out.WriteString(`="`)
			r.out.WriteString(html.EscapeString(string(value)))
			r.out.WriteByte('"')
		}
	}
	r.out.WriteByte('>')
	if !void[tag] {
		r.push(tag)
	}
}

func (r *reducer) push(tag atom.Atom) {
	r.open = append(r.open, tag)
	r.count[tag]++
	if indents[tag] {
		r.quotes++
	}
	if formats[tag] {
		r.formatting++
	}
}

// pop closes the elements from i up, except that the element at i itself is
// left to the caller. Only formatting is closed in writing: the parser knows
// what else an end tag implies.
func (r *reducer) pop(i int) {
	for len(r.open) > i {
		tag := r.open[len(r.open)-1]
		r.open = r.open[:len(r.open)-1]
		r.count[tag]--
		if indents[tag] {
			r.quotes--
		}
		if formats[tag] {
			r.formatting--
			if len(r.open) > i {
				r.write("</", tag.String(), ">")
			}
		}
	}
}

func (r *reducer) write(parts ...string) {
	for _, p := range parts {
		r.out.WriteString(p)
	}
}

func (r *reducer) end(tag atom.Atom) {
	i := -1
	if r.count[tag] > 0 {
		i = lastIndex(r.open, []atom.Atom{tag}, nil)
	}
	if i >= 0 {
		r.pop(i)
	}
	switch {
	case tag == 0, tag == atom.P, tag == atom.Br:
		// The parser knows an unknown element by its name, and makes one of </p> and </br>.
		r.out.Write(r.z.Raw())
	case i >= 0:
		r.write("</", tag.String(), ">")
	}
}

// imply closes what a start tag closes by itself, so that pages that never
// write </p> or </li> are not taken for deep ones.
func (r *reducer) imply(tag atom.Atom) {
	for _, rule := range implied[tag] {
		if !slices.ContainsFunc(rule.closes, func(a atom.Atom) bool { return r.count[a] > 0 }) {
			continue
		}
		i := lastIndex(r.open, rule.closes, rule.within)
		if i < 0 {
			continue
		}
		closed, inner := r.open[i], len(r.open) > i+1
		r.pop(i)
		if inner { // formatting was closed inside: keep the order of end tags
			r.write("</", closed.String(), ">")
		}
	}
}

// lastIndex finds the innermost open element that is one of tags, looking no
// further than a boundary.
func lastIndex(open, tags, boundary []atom.Atom) int {
	for i := len(open) - 1; i >= 0; i-- {
		if slices.Contains(tags, open[i]) {
			return i
		}
		if slices.Contains(boundary, open[i]) {
			break
		}
	}
	return -1
}

// formula keeps the source of a formula, which MathML carries beside its
// drawing instructions.
func (r *reducer) formula(tag atom.Atom, more bool) {
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		if tag == atom.Math && string(key) == "alttext" && len(value) <= maxAttribute {
			r.nodes += 2
			r.write("<code>", html.EscapeString(string(value)), "</code>")
		}
	}
}

// skip reads past the end of an element whose start tag was just read.
func skip(z *html.Tokenizer, name string) {
	for depth := 1; depth > 0; {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken:
			if n, _ := z.TagName(); string(n) == name {
				depth++
			}
		case html.EndTagToken:
			if n, _ := z.TagName(); string(n) == name {
				depth--
			}
		}
	}
}

// script keeps an article's metadata and nothing else.
func (r *reducer) script(more bool) {
	metadata := false
	for more {
		var key, value []byte
		key, value, more = r.z.TagAttr()
		if string(key) == "type" && strings.EqualFold(strings.TrimSpace(string(value)), "application/ld+json") {
			metadata = true
		}
	}
	if r.z.Next() != html.TextToken {
		return
	}
	if raw := r.z.Raw(); metadata && len(raw) <= maxMetadata {
		r.nodes++
		r.write(`<script type="application/ld+json">`)
		r.out.Write(raw)
		r.write("</script>")
	}
}
