package files

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

const (
	diffContext = 3
	diffHunks   = 20
)

// block is a run of whole lines around one or more changes, in the old and
// the new text.
type block struct {
	old, new         span
	oldLine, newLine int // 1-based
}

// diffAt is a unified diff of a text in which the old spans became the new
// ones. Its cost depends on the changes, not on the size of the text. first is
// the number of the texts' first line.
func diffAt(name string, old, new []byte, from, to []span, first int) string {
	blocks, left := blocksOf(old, new, from, to, first)
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", name, name)
	for _, k := range blocks {
		b.WriteString(hunks(old[k.old.from:k.old.to], new[k.new.from:k.new.to], k.oldLine, k.newLine))
	}
	if left > 0 {
		fmt.Fprintf(&b, "(%d more changes are not shown.)\n", left)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// blocksOf groups changes whose context touches. left counts those past the
// bound of what is shown.
func blocksOf(old, new []byte, from, to []span, first int) (blocks []block, left int) {
	oldLine, oldAt := first, 0
	newLine, newAt := first, 0
	for i := 0; i < len(from); {
		j := i + 1
		end := forward(old, from[i].to, diffContext)
		for j < len(from) && backward(old, from[j].from, diffContext) <= end {
			end = forward(old, from[j].to, diffContext)
			j++
		}
		if len(blocks) == diffHunks {
			return blocks, len(from) - i
		}
		k := block{
			old: span{backward(old, from[i].from, diffContext), end},
			new: span{backward(new, to[i].from, diffContext), forward(new, to[j-1].to, diffContext)},
		}
		oldLine += bytes.Count(old[oldAt:k.old.from], []byte{'\n'})
		newLine += bytes.Count(new[newAt:k.new.from], []byte{'\n'})
		oldAt, newAt = k.old.from, k.new.from
		k.oldLine, k.newLine = oldLine, newLine
		blocks = append(blocks, k)
		i = j
	}
	return blocks, 0
}

// backward gives the start of the line n lines before the one at off.
func backward(text []byte, off, n int) int {
	for {
		i := bytes.LastIndexByte(text[:off], '\n')
		if i < 0 {
			return 0
		}
		if n == 0 {
			return i + 1
		}
		off, n = i, n-1
	}
}

// forward gives the end of the line n lines after the one that off is in.
func forward(text []byte, off, n int) int {
	if off > 0 && text[off-1] == '\n' {
		n-- // the change ends with its line
	}
	for ; n >= 0; n-- {
		i := bytes.IndexByte(text[off:], '\n')
		if i < 0 {
			return len(text)
		}
		off += i + 1
	}
	return off
}

// hunks renders the difference of two pieces that start at the given lines.
func hunks(old, new []byte, oldLine, newLine int) string {
	before, after := string(old), string(new)
	u, err := udiff.ToUnifiedDiff("", "", before, udiff.Lines(before, after), diffContext)
	if err != nil {
		return fmt.Sprintf("(The difference cannot be shown: %s.)\n", err)
	}
	for _, h := range u.Hunks {
		h.FromLine += oldLine - 1
		h.ToLine += newLine - 1
	}
	text := u.String()
	if i := strings.Index(text, "@@"); i >= 0 {
		return text[i:]
	}
	return ""
}
