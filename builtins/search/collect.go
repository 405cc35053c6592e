package search

import (
	"bytes"

	"github.com/elfhost/elfhost/builtins/internal/textfile"
)

// Bounds on what is kept of a line.
const (
	shownLine   = 500 // bytes of a longer line that are kept, around its first match
	shownBefore = 120 // bytes of those before the match
)

// collector turns the matching lines of one file into hits. The file comes
// in one piece or several; each begins with lines of the piece before, which
// are there for context only.
type collector struct {
	*searcher
	scan *scanner
	out  *found

	text    []byte
	from    int // where the new part of text begins
	counted int // offset up to which lines were counted
	line    int // lines before counted
	shown   int // offset after the last line given out
	any     bool
	pending int // lines after a match still to be shown
	skipped bool
	hide    bool // only count
}

// skip leaves a file of binary data out.
func (c *collector) skip() {
	c.skipped = true
	c.binary.Add(1)
}

// search goes through one piece. It returns false when no more is wanted.
func (c *collector) search(text []byte, last bool) bool {
	c.text = text
	if c.multiline {
		return c.spanning(text)
	}
	live := c.scan.reset(text[c.from:]) // offsets of the scanner begin at from
	if !live && !c.invert && c.pending == 0 && !c.any {
		return true // nothing here; the usual case
	}
	limit := len(text)
	binary := -1
	if !c.asText && live {
		if binary = bytes.IndexByte(text[c.from:], 0); binary >= 0 {
			limit = c.from + binary
		}
	}
	at := 0
	for live && c.from+at < limit {
		start, end, ok := c.scan.next(at)
		if !ok || c.from+start >= limit {
			break
		}
		if c.invert {
			if !c.lines(c.from+at, c.from+start) {
				return false
			}
		} else if !c.match(c.from+start, c.from+end) {
			return false
		}
		at = end + 1
	}
	if c.invert && !c.lines(c.from+at, limit) {
		return false
	}
	c.finish(limit)
	if binary >= 0 {
		if c.out.lines > 0 {
			c.out.note = "binary data follows"
		}
		return false
	}
	return true
}

// lines gives out whole lines: what an inverted search matches.
func (c *collector) lines(from, to int) bool {
	for from < to {
		end := to
		if i := bytes.IndexByte(c.text[from:to], '\n'); i >= 0 {
			end = from + i
		}
		if !c.match(from, end) {
			return false
		}
		from = end + 1
	}
	return true
}

// match takes a matching line. It returns false when the file is done.
func (c *collector) match(start, end int) bool {
	c.out.lines++
	switch c.mode {
	case showFiles, showFilesWithout:
		return false
	case showCountMatches:
		c.out.matches += max(len(c.m.spans(c.text[start:end], -1)), 1)
	case showLines:
		if !c.hide && (c.keep == 0 || len(c.out.hits) < c.keep) {
			c.showContext(start)
			c.give(start, end, false)
			c.pending = c.after
		}
	}
	return c.perFile == 0 || c.out.lines < c.perFile || c.last(end)
}

// last shows the context after the last match that is wanted.
func (c *collector) last(end int) bool {
	c.finish(len(c.text))
	return false
}

// showContext gives out the lines due before a match: those after the last
// one, and those before this one.
func (c *collector) showContext(start int) {
	c.showPending(start)
	if c.before == 0 {
		return
	}
	from := start
	for n := c.before; n > 0 && from > c.shown; n-- {
		from = max(bytes.LastIndexByte(c.text[c.shown:from-1], '\n')+1+c.shown, c.shown)
	}
	for from < start {
		end := from + bytes.IndexByte(c.text[from:start], '\n')
		c.give(from, end, true)
		from = end + 1
	}
}

// showPending gives out lines after a match, up to limit.
func (c *collector) showPending(limit int) {
	for at := c.shown; c.pending > 0 && at < limit; c.pending-- {
		end := len(c.text)
		if i := bytes.IndexByte(c.text[at:], '\n'); i >= 0 {
			end = at + i
		}
		c.give(at, end, true)
		at = end + 1
	}
}

// finish shows what is due at a piece's end.
func (c *collector) finish(limit int) { c.showPending(limit) }

// give keeps one line.
func (c *collector) give(start, end int, context bool) {
	c.line += bytes.Count(c.text[c.counted:start], []byte{'\n'})
	c.counted = start
	line := c.text[start:end]
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	h := hit{line: c.line + 1, size: len(line), context: context, gap: c.any && start > c.shown}
	if !context && !c.invert && (c.only || len(line) > shownLine || c.columns) {
		h.spans = c.m.spans(line, 64)
		if len(h.spans) > 0 {
			h.offset = h.spans[0][0]
		}
	}
	if c.only {
		h.text = bytes.Clone(line[:min(len(line), 1<<16)])
	} else {
		h.text = window(line, h.offset)
	}
	c.out.hits = append(c.out.hits, h)
	c.shown, c.any = min(end+1, len(c.text)), true
}

// window copies a line, or the part of a long one around its first match.
func window(line []byte, at int) []byte {
	if len(line) <= shownLine {
		return bytes.Clone(line)
	}
	from := max(0, min(at-shownBefore, len(line)-shownLine))
	part := line[from : from+shownLine]
	var out []byte
	if from > 0 {
		out = append(out, "…"...)
		for len(part) > 0 && part[0]&0xC0 == 0x80 {
			part = part[1:]
		}
	}
	out = append(out, part...)
	if from+shownLine < len(line) {
		for n := 0; n < 3 && len(out) > 0 && out[len(out)-1] >= 0xC0; n++ {
			out = out[:len(out)-1]
		}
		out = append(out, "…"...)
	}
	return out
}

// carry says how much of a piece the next one has to begin with, and moves
// the offsets there.
func (c *collector) carry(end int) int {
	c.line += bytes.Count(c.text[c.counted:end], []byte{'\n'})
	from := end
	for n := c.before; n > 0 && from > c.shown; n-- {
		from = bytes.LastIndexByte(c.text[:from-1], '\n') + 1
	}
	c.line -= bytes.Count(c.text[from:end], []byte{'\n'})
	c.shown = max(c.shown-from, 0)
	c.from, c.counted = end-from, 0
	return from
}

// spanning searches a piece for matches that may span lines.
func (c *collector) spanning(text []byte) bool {
	if !c.scan.reset(text) {
		return !c.invert || c.lines(0, len(text))
	}
	if !c.asText && bytes.IndexByte(text[min(len(text), textfile.HeadSize):], 0) >= 0 {
		return false
	}
	at := 0
	for at <= len(text) {
		loc := c.m.re.FindSubmatchIndex(text[at:])
		if loc == nil {
			break
		}
		loc = loc[2*c.m.group:]
		c.out.matches++
		start, _ := lineAround(text, 0, at+loc[0])
		_, end := lineAround(text, 0, max(at+loc[1]-1, at+loc[0]))
		if c.invert {
			if !c.lines(at, start) {
				return false
			}
		} else if !c.block(max(start, min(at, len(text))), end) {
			return false
		}
		at = end + 1
	}
	if c.invert {
		return c.lines(min(at, len(text)), len(text))
	}
	c.finish(len(text))
	return true
}

// block takes the lines that one match spans.
func (c *collector) block(start, end int) bool {
	for first := true; first || start < end; first = false {
		stop := end
		if i := bytes.IndexByte(c.text[start:end], '\n'); i >= 0 {
			stop = start + i
		}
		if !c.match(start, stop) {
			return false
		}
		start = stop + 1
	}
	return true
}
