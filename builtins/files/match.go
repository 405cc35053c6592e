package files

import (
	"bytes"
	"sort"
)

// span is a range of bytes of the original text.
type span struct{ from, to int }

// folded is a text with every CR LF read as LF. It remembers where the CRs
// were, so that a place found in it is known in the original.
type folded struct {
	text []byte // shares the original's memory when there was nothing to fold
	cuts []int  // offsets in text before which a CR was dropped, ascending
}

var crlf = []byte("\r\n")

func fold(b []byte) folded {
	i := bytes.Index(b, crlf)
	if i < 0 {
		return folded{text: b}
	}
	f := folded{text: make([]byte, 0, len(b))}
	for i >= 0 {
		f.text = append(f.text, b[:i]...)
		f.cuts = append(f.cuts, len(f.text))
		f.text = append(f.text, '\n')
		b = b[i+2:]
		i = bytes.Index(b, crlf)
	}
	f.text = append(f.text, b...)
	return f
}

// origin gives the original's offset for an offset in the folded text. An
// offset just before a folded line end is before its CR.
func (f folded) origin(off int) int { return off + sort.SearchInts(f.cuts, off) }

// find returns where old occurs in text, not overlapping. Line ends are the
// only thing in which they may differ. It stops after limit matches.
func find(f folded, old []byte, limit int) []span {
	needle := fold(old).text
	var found []span
	for at := 0; len(found) < limit; {
		i := bytes.Index(f.text[at:], needle)
		if i < 0 {
			break
		}
		at += i
		found = append(found, span{f.origin(at), f.origin(at + len(needle))})
		at += len(needle)
	}
	return found
}

// adapt gives the new text the line ends of the place it goes to. Lines that
// the replaced text and the new one share, from the front and from the back,
// keep each its own; the rest take the end of the line they replace.
func adapt(old, new []byte, around []byte) []byte {
	new = fold(new).text
	if !bytes.Contains(new, []byte{'\n'}) {
		return new
	}
	ends, alike := lineEnds(old)
	if len(ends) == 0 {
		ends, alike = []bool{bytes.HasSuffix(around, crlf)}, true
	}
	if alike {
		if !ends[0] {
			return new
		}
		return bytes.ReplaceAll(new, []byte{'\n'}, crlf)
	}
	return mixed(bytes.SplitAfter(fold(old).text, []byte{'\n'}), bytes.SplitAfter(new, []byte{'\n'}), ends)
}

func mixed(old, new [][]byte, ends []bool) []byte {
	front := 0
	for front < len(old) && front < len(new) && bytes.Equal(old[front], new[front]) {
		front++
	}
	back := 0
	for back < len(old)-front && back < len(new)-front && bytes.Equal(old[len(old)-1-back], new[len(new)-1-back]) {
		back++
	}
	var out []byte
	for i, line := range new {
		j := min(i, max(len(old)-back-1, 0))
		if i >= len(new)-back {
			j = len(old) - (len(new) - i)
		}
		if n := len(line); n > 0 && line[n-1] == '\n' && ends[min(max(j, 0), len(ends)-1)] {
			out = append(append(out, line[:n-1]...), crlf...)
			continue
		}
		out = append(out, line...)
	}
	return out
}

// lineEnds lists for each line whether it ends in CR LF, and whether all do
// or none does.
func lineEnds(b []byte) (ends []bool, alike bool) {
	alike = true
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			return ends, alike
		}
		ends = append(ends, i > 0 && b[i-1] == '\r')
		alike = alike && ends[len(ends)-1] == ends[0]
		b = b[i+1:]
	}
}

// lineEndNear returns the line end closest to a place: of its own line, else
// of the line before.
func lineEndNear(text []byte, at int) []byte {
	i := bytes.IndexByte(text[at:], '\n')
	if i >= 0 {
		i += at
	} else {
		i = bytes.LastIndexByte(text[:at], '\n')
	}
	if i < 0 {
		return nil
	}
	return text[max(i-1, 0) : i+1]
}

// replace puts new in place of every span. It returns the result in parts,
// most of which are the text's own, and where in it each piece lies.
func replace(text []byte, at []span, new []byte) (parts [][]byte, put []span) {
	put = make([]span, len(at))
	last, size := 0, 0
	for i, s := range at {
		piece := adapt(text[s.from:s.to], new, lineEndNear(text, s.from))
		parts = append(parts, text[last:s.from], piece)
		size += s.from - last
		put[i] = span{size, size + len(piece)}
		size += len(piece)
		last = s.to
	}
	return append(parts, text[last:]), put
}

// unchanged reports whether the parts that replace gave are what was there.
func unchanged(text []byte, at []span, parts [][]byte) bool {
	for i, s := range at {
		if !bytes.Equal(text[s.from:s.to], parts[2*i+1]) {
			return false
		}
	}
	return true
}

// linesOf gives the 1-based line of each offset. Offsets ascend.
func linesOf(text []byte, at []span) []int {
	lines := make([]int, len(at))
	line, last := 1, 0
	for i, s := range at {
		line += bytes.Count(text[last:s.from], []byte{'\n'})
		lines[i], last = line, s.from
	}
	return lines
}
