package search

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
)

// layout is how lines are shown.
type layout struct {
	heading bool // the file's name once, above its lines
	names   bool
	numbers bool
	column  bool
	only    bool
	replace *string // put in place of what matched
	trim    bool
	columns int  // bytes of a line, past which it is left out; 0: no limit
	preview bool // show the start of such a line
	limit   int  // lines in all, context included
	display func(name string) string
}

// render shows the lines found. cut is true when the limit left some out.
func (a *answer) render(l layout, m *matcher) (text string, cut bool) {
	var b strings.Builder
	left := l.limit
	for i, f := range a.files {
		if len(f.hits) == 0 {
			cut = cut || f.lines > 0
			continue
		}
		if left == 0 {
			return b.String(), true
		}
		name := clean([]byte(l.display(f.name)))
		if l.heading {
			if i > 0 && b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(name)
			if f.note != "" {
				fmt.Fprintf(&b, " (%s)", f.note)
			}
			b.WriteByte('\n')
		}
		for _, h := range f.hits {
			if left == 0 {
				return b.String(), true
			}
			if h.gap {
				b.WriteString("--\n")
			}
			l.line(&b, name, h, m)
			left--
		}
		if kept := matching(f.hits); kept < f.lines {
			cut = true
		}
	}
	return b.String(), cut
}

func matching(hits []hit) (n int) {
	for _, h := range hits {
		if !h.context {
			n++
		}
	}
	return n
}

// line writes one line in grep's form: a colon for a match, a dash for context.
func (l layout) line(b *strings.Builder, name string, h hit, m *matcher) {
	sep := byte(':')
	if h.context {
		sep = '-'
	}
	parts := [][]byte{h.text}
	if l.only && !h.context {
		parts = nil
		for _, s := range h.spans {
			if s[1] <= len(h.text) {
				parts = append(parts, h.text[s[0]:s[1]])
			}
		}
	}
	for i, text := range parts {
		if l.names && !l.heading {
			b.WriteString(name)
			b.WriteByte(sep)
		}
		if l.numbers {
			fmt.Fprintf(b, "%d%c", h.line, sep)
		}
		if l.column && !h.context && i < len(h.spans) {
			fmt.Fprintf(b, "%d%c", h.spans[i][0]+1, sep)
		}
		if l.replace != nil && !h.context {
			text = m.replace(text, *l.replace)
		}
		if l.trim {
			text = bytes.TrimLeft(text, " \t")
		}
		if short, ok := l.tooLong(text, h); ok {
			b.WriteString(short + "\n")
			continue
		}
		b.WriteString(clean(text))
		if h.size > shownLine && !l.only {
			fmt.Fprintf(b, " [line of %d bytes]", h.size)
		}
		b.WriteByte('\n')
	}
}

// tooLong is what stands for a line that max-columns leaves out, as ripgrep
// writes it. A whole line counts with its newline.
func (l layout) tooLong(text []byte, h hit) (string, bool) {
	size := h.size + 1
	if (l.only || l.replace != nil) && !h.context {
		size = len(text)
	}
	switch {
	case l.columns == 0 || size <= l.columns:
		return "", false
	case l.preview:
		n := min(l.columns, len(text))
		for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
			n--
		}
		return clean(text[:n]) + " [... omitted end of long line]", true
	case h.context:
		return "[Omitted long context line]", true
	case !l.only && (l.column || l.replace != nil):
		return fmt.Sprintf("[Omitted long line with %d matches]", max(len(h.spans), 1)), true
	}
	return "[Omitted long matching line]", true
}

// clean makes bytes fit for a model: what is not UTF-8 becomes U+FFFD.
func clean(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

// list shows names, or names with counts.
func (a *answer) list(l layout, m mode) (text string, cut bool) {
	var b strings.Builder
	for i, f := range a.files {
		if l.limit > 0 && i == l.limit {
			return b.String(), true
		}
		b.WriteString(clean([]byte(l.display(f.name))))
		switch m {
		case showCounts:
			fmt.Fprintf(&b, ":%d", f.lines)
		case showCountMatches:
			fmt.Fprintf(&b, ":%d", f.matches)
		}
		b.WriteByte('\n')
	}
	return b.String(), false
}

// respond makes the answer of Grep and search: what was found, then what a
// reader has to know about it.
func (a *answer) respond(q *query, l layout, m *matcher) abi.Result {
	if len(a.files) == 0 {
		return abi.Text("No matches." + a.remarks(q))
	}
	var text string
	var cut bool
	switch q.mode {
	case showLines:
		text, cut = a.render(l, m)
	default:
		text, cut = a.list(l, q.mode)
	}
	var sum string
	switch q.mode {
	case showLines, showCounts, showCountMatches:
		sum = fmt.Sprintf("%s in %s.", plural(a.lines, "matching line"), plural(len(a.files), "file"))
	default:
		sum = plural(len(a.files), "file") + "."
	}
	if cut {
		sum = fmt.Sprintf("%s Only the first %d are shown: narrow the pattern, the path or the files.", sum, l.limit)
	}
	return abi.Text(text + "\n" + sum + a.remarks(q))
}

// remarks are what was left out of a search.
func (a *answer) remarks(q *query) string {
	var b strings.Builder
	if len(a.files) == 0 {
		if a.searched == 0 && q.mode != listFiles {
			b.WriteString(" No file was searched: none is there, or the filters leave none.")
		} else if d := a.sieve.dropped(); d != "" {
			b.WriteString(" " + sentence(d))
		}
		if q.asciiClasses() {
			b.WriteString(` \w, \d, \s and \b know ASCII alone: for other scripts take \p{L} for a letter, and the word option in place of \b.`)
		}
	}
	if a.binary > 0 && len(a.files) == 0 {
		fmt.Fprintf(&b, " %s left out.", isAre(int64(a.binary), "binary file"))
	}
	if n := a.skipped.n.Load(); n > 0 {
		fmt.Fprintf(&b, " %s could not be read (%s).", plural(n, "name"), *a.skipped.first.Load())
	}
	return b.String()
}
