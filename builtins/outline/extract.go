package outline

import (
	"strings"
	"unicode"
)

// Symbol is one row of an outline.
type Symbol struct {
	Label   string `json:"l"`
	Name    string `json:"n,omitempty"` // empty: anonymous
	First   int    `json:"a"`           // lines, from 1
	Last    int    `json:"b"`
	Depth   int    `json:"d,omitempty"`
	Comment string `json:"c,omitempty"` // the first line of the comment before it
}

// Bounds of what is shown, in characters.
const (
	maxText = 100 // of a comment
	maxName = 300
)

// extract finds the symbols of a tree, in the order of the text.
func (l *language) extract(t *tree) []Symbol {
	x := &extractor{t: t, kinds: make([]kind, len(t.kinds))}
	for i, k := range t.kinds {
		x.kinds[i] = l.kinds[k]
	}
	if len(t.nodes) > 0 {
		x.inside(0, 0)
	}
	return x.out
}

type extractor struct {
	t     *tree
	kinds []kind // by number
	out   []Symbol
}

func (x *extractor) inside(n int32, depth int) {
	for c := x.t.first(n); c >= 0; c = x.t.nodes[c].next {
		k := &x.kinds[x.t.nodes[c].kind]
		if k.walk&(walkOpen|walkBody) == 0 {
			continue
		}
		if x.add(c, k, depth) {
			x.inside(c, depth+1)
		} else {
			x.inside(c, depth)
		}
	}
}

// add appends the rows of a node, if it is a symbol.
func (x *extractor) add(n int32, k *kind, depth int) bool {
	t := x.t
	label := k.label
	if label != "" && k.relabel != nil {
		label = k.relabel(t, n)
	}
	if p := t.nodes[n].parent; label == "" || k.below != "" && (p < 0 || t.kind(p) != k.below) {
		return false
	}
	// A signature inside a member's node is the same row.
	if p := t.nodes[n].parent; p >= 0 && strings.HasSuffix(t.kind(n), "_signature") &&
		(t.kind(p) == "method_signature" || t.kind(p) == "declaration") {
		return false
	}
	find := k.names
	if find == nil {
		find = nameOf
	}
	names := find(t, n)
	if len(names) == 0 {
		if k.named {
			return false
		}
		names = []name{{"", n}}
	}
	for i, m := range names {
		s := Symbol{Label: label, Name: clip(m.text, maxName), Depth: depth}
		s.First, s.Last = x.lines(m.at)
		switch {
		case i == 0:
			s.Comment = x.comment(n)
		case m.at != n:
			s.Comment = x.comment(m.at)
		}
		x.out = append(x.out, s)
	}
	return true
}

// lines are the first and the last line of a declaration. A body that the
// grammar puts beside the signature belongs to it.
func (x *extractor) lines(n int32) (first, last int) {
	t := x.t
	end := n
	if next := t.nodes[n].next; next >= 0 && t.kind(next) == "function_body" {
		end = next
	}
	e := t.nodes[end]
	last = int(e.endRow) + 1
	// Some grammars count the line break to the declaration.
	if e.end > e.start && t.src[e.end-1] == '\n' {
		last -= strings.Count(string(t.src[trimmedEnd(t.src, e.start, e.end):e.end]), "\n")
	}
	first = int(t.nodes[n].row) + 1
	return first, max(first, last)
}

// trimmedEnd is the end of a range without the white space at its end.
func trimmedEnd(src []byte, start, end uint32) uint32 {
	for end > start && (src[end-1] == '\n' || src[end-1] == '\r' || src[end-1] == ' ' || src[end-1] == '\t') {
		end--
	}
	return end
}

// line makes one printable line of a text, as long as a comment may be.
func line(s string) string { return clip(s, maxText) }

func clip(s string, most int) string {
	var b strings.Builder
	n, gap := 0, false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			gap = n > 0
			continue
		}
		if n >= most {
			b.WriteString("…")
			break
		}
		if gap {
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
