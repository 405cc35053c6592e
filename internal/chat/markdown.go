package chat

import (
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/internal/term"
)

// markdown shows a model's Markdown as it comes: a word at a time where that
// can be, a line or a table at a time where its look depends on what follows.
// In a plain style the source is shown as it is. Everything is escaped.
type markdown struct {
	out   io.Writer
	style term.Style
	width func() int // columns at this moment; nil: those of style

	line  string // not shown yet
	fence string
	table []string // rows that wait for the last one
	begun bool     // the beginning of line was shown already
	col   int      // of the cursor
	hang  int      // indent of the rows that follow
	gap   bool     // a space stands before the next word
	said  bool     // something was shown
}

// Write takes the next piece. It holds back what it cannot show yet.
func (m *markdown) Write(p string) {
	m.line += strings.ReplaceAll(p, "\r\n", "\n")
	for {
		l, rest, ok := strings.Cut(m.line, "\n")
		if !ok {
			break
		}
		m.line = l
		m.whole()
		m.line, m.begun = rest, false
	}
	m.partial()
}

// Close shows what was held back, and ends the last line.
func (m *markdown) Close() {
	if m.line != "" || m.begun {
		m.whole()
	}
	m.flushTable()
	m.line, m.begun, m.fence = "", false, ""
}

func (m *markdown) put(s string) {
	if s != "" {
		m.said = true
		_, _ = io.WriteString(m.out, s)
	}
}

func (m *markdown) newline() {
	m.put("\n")
	m.col, m.gap = 0, false
}

// whole shows a line to its end.
func (m *markdown) whole() {
	switch {
	case m.begun:
		m.words(m.line, normal)
		m.newline()
	case !m.style.Rich():
		m.put(term.Lines(m.line))
		m.newline()
	case m.fence != "":
		m.fenced()
	case strings.HasPrefix(strings.TrimSpace(m.line), "|"):
		m.table = append(m.table, m.line)
	default:
		m.flushTable()
		m.block()
	}
}

func (m *markdown) fenced() {
	if s := strings.TrimSpace(m.line); strings.HasPrefix(s, m.fence) && strings.Trim(s, m.fence[:1]) == "" {
		m.fence = ""
		return
	}
	m.put("  " + m.style.Cyan(term.Lines(m.line)))
	m.newline()
}

// block shows a line that nothing of was shown.
func (m *markdown) block() {
	s := strings.TrimSpace(m.line)
	if f := fenceOf(s); f != "" {
		m.fence = f
		return
	}
	if h := strings.TrimLeft(s, "#"); len(s)-len(h) >= 1 && len(s)-len(h) <= 6 && strings.HasPrefix(h, " ") {
		m.hang = 0
		if !m.style.Color { // nothing else tells it from the text
			m.put(strings.Repeat("#", len(s)-len(h)) + " ")
		}
		runs, _ := inline(strings.TrimRight(strings.TrimSpace(h), "# "))
		for _, r := range runs {
			m.words(r.text, bold)
		}
		m.newline()
		return
	}
	if len(s) >= 3 && (strings.Trim(s, "- ") == "" || strings.Trim(s, "* ") == "") && strings.Count(s, s[:1]) >= 3 {
		m.put(m.style.Dim("---"))
		m.newline()
		return
	}
	m.words(m.start(m.line), normal)
	m.newline()
}

func fenceOf(s string) string {
	for _, c := range []string{"`", "~"} {
		if n := len(s) - len(strings.TrimLeft(s, c)); n >= 3 && !strings.Contains(s[n:], "`") {
			return s[:n]
		}
	}
	return ""
}

// start shows the indent and the mark of a list or a quotation, and gives what
// follows it.
func (m *markdown) start(line string) string {
	s := strings.TrimLeft(strings.ReplaceAll(line, "\t", "    "), " ")
	indent := min(len(strings.ReplaceAll(line, "\t", "    "))-len(s), 16)
	mark := ""
	switch {
	case strings.HasPrefix(s, "- "), strings.HasPrefix(s, "* "), strings.HasPrefix(s, "+ "):
		mark, s = "• ", s[2:]
	case strings.HasPrefix(s, "> "):
		mark, s = "│ ", s[2:]
	default:
		if n := numbered(s); n > 0 {
			mark, s = s[:n], s[n:]
		}
	}
	m.put(strings.Repeat(" ", indent) + m.style.Dim(mark))
	m.hang = indent + ansi.StringWidth(mark)
	m.col, m.gap = m.hang, false
	return s
}

// numbered is the length of a mark like "12. ".
func numbered(s string) int {
	n := 0
	for n < len(s) && n < 4 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n > 0 && n+1 < len(s) && (s[n] == '.' || s[n] == ')') && s[n+1] == ' ' {
		return n + 2
	}
	return 0
}

// partial shows of an unfinished line what no later piece can change.
func (m *markdown) partial() {
	if !m.style.Rich() || m.fence != "" || m.line == "" {
		return
	}
	text := m.line
	if !m.begun {
		s := strings.TrimLeft(text, " \t")
		// The first word decides what the line is.
		if !strings.Contains(s, " ") || strings.IndexByte("#|`~-*+>", s[0]) >= 0 && len(s) < 4 || s[0] == '#' || s[0] == '|' || fenceOf(s) != "" {
			return
		}
		if strings.Trim(s, "-* ") == "" || s[0] >= '0' && s[0] <= '9' && len(s) < 6 {
			return
		}
	}
	_, at := inline(text)
	if at <= 0 {
		return
	}
	ready := text[:at]
	if !m.begun {
		m.flushTable()
		ready = strings.TrimSuffix(m.start(text[:at+1]), " ")
		m.begun = true
	}
	m.words(ready, normal)
	m.line, m.gap = text[at:], true
}

// words shows text, broken between words at the style's width.
func (m *markdown) words(text string, as look) {
	runs := []run{{text, as}}
	if as == normal {
		runs, _ = inline(text)
	}
	for _, r := range runs {
		for i, w := range strings.Split(r.text, " ") {
			if i > 0 {
				m.gap = true
			}
			if w != "" {
				m.word(w, r.look)
			}
		}
	}
}

func (m *markdown) word(w string, l look) {
	if ansi.StringWidth(term.Line(w)) < m.columns()-m.hang {
		m.piece(w, l, false)
		return
	}
	for i, p := range pieces(w) { // it fits on no line
		m.piece(p, l, i > 0)
	}
}

func (m *markdown) columns() int {
	if m.width != nil {
		return m.width()
	}
	return m.style.Width
}

// piece shows a word, or what goes on one that may be broken here.
func (m *markdown) piece(w string, l look, goesOn bool) {
	width := ansi.StringWidth(term.Line(w))
	space := 0
	if m.gap && m.col > m.hang {
		space = 1
	}
	most := m.columns()
	if most > 20 && (m.gap || goesOn) && m.col > m.hang && m.col+space+width > most-1 {
		m.put("\n" + strings.Repeat(" ", m.hang))
		m.col, space = m.hang, 0
	}
	m.put(strings.Repeat(" ", space) + paint(m.style, w, l))
	m.col += space + width
	m.gap = false
}

// flushTable shows the rows that were kept, their columns aligned where they fit.
func (m *markdown) flushTable() {
	if len(m.table) == 0 {
		return
	}
	rows := make([][]string, 0, len(m.table))
	var widths []int
	for _, line := range m.table {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = term.Line(flat(strings.TrimSpace(cells[i])))
			if i >= len(widths) {
				widths = append(widths, 0)
			}
			if strings.Trim(cells[i], ":-") != "" {
				widths[i] = max(widths[i], ansi.StringWidth(cells[i]))
			}
		}
		rows = append(rows, cells)
	}
	for n, cells := range rows {
		var b strings.Builder
		for i, c := range cells {
			if n == 1 && strings.Trim(strings.Join(cells, ""), ":-") == "" {
				b.WriteString(m.style.Dim(strings.Repeat("-", min(widths[i], 200))) + "  ")
				continue
			}
			pad := strings.Repeat(" ", widths[i]-min(widths[i], ansi.StringWidth(c)))
			if n == 0 {
				c = m.style.Bold(c)
			}
			b.WriteString(c + pad + "  ")
		}
		m.put(strings.TrimRight(b.String(), " "))
		m.newline()
	}
	m.table = nil
}

// flat is a text without its inline marks.
func flat(s string) string {
	runs, _ := inline(s)
	var b strings.Builder
	for _, r := range runs {
		b.WriteString(r.text)
	}
	return b.String()
}
