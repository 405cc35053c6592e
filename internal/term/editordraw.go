package term

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	xterm "golang.org/x/term"
)

// draw shows the text anew, and puts the cursor where it is. Rows are broken
// here, not by the terminal, so that both agree on where each cell is.
func (l *line) draw() {
	width, height, err := xterm.GetSize(int(l.e.In.Fd()))
	if err != nil || width < 8 {
		width, height = 80, 24
	}
	rows, row, col := l.layout(width)
	for _, h := range l.hint {
		rows = append(rows, l.e.Style.Dim(ansi.Truncate(Line(h), width-1, "…")))
	}
	var b strings.Builder
	b.WriteString(l.top())
	// What is taller than the screen is shown around the cursor.
	top := 0
	if most := max(1, height-1); len(rows) > most {
		top = min(max(0, row-most/2), len(rows)-most)
		rows = rows[top : top+most]
	}
	row -= top
	b.WriteString(strings.Join(rows, "\r\n"))
	if up := len(rows) - 1 - row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	_, _ = io.WriteString(l.e.Out, b.String())
	l.row, l.rows = row, len(rows)
}

// top goes to where the text begins, and clears the screen from there.
func (l *line) top() string {
	if l.row > 0 {
		return fmt.Sprintf("\x1b[%dA\r\x1b[J", l.row)
	}
	return "\r\x1b[J"
}

func (l *line) wipe() { _, _ = io.WriteString(l.e.Out, l.top()) }

// layout breaks the text into rows of at most width-1 cells, and says where
// the cursor is. What is no plain character is shown as Escape writes it.
func (l *line) layout(width int) (rows []string, row, col int) {
	prompt := l.e.Prompt
	if l.search != nil {
		prompt = ansi.Truncate("history: "+Line(string(l.search.words)), max(8, width-12), "…") + l.search.miss() + " > "
	}
	indent := strings.Repeat(" ", ansi.StringWidth(prompt))
	var b strings.Builder
	b.WriteString(l.e.Style.Cyan(prompt))
	at := len(indent)
	next := func() {
		rows = append(rows, b.String())
		b.Reset()
		b.WriteString(indent)
		at = len(indent)
	}
	for i, r := range l.text {
		if i == l.pos {
			row, col = len(rows), at
		}
		if r == '\n' {
			next()
			continue
		}
		cell := Line(strings.ReplaceAll(string(r), "\t", "    "))
		w := ansi.StringWidth(cell)
		if at+w > width-1 && at > len(indent) {
			next()
			if i == l.pos {
				row, col = len(rows), at
			}
		}
		b.WriteString(cell)
		at += w
	}
	if l.pos == len(l.text) {
		row, col = len(rows), at
	}
	return append(rows, b.String()), row, col
}
