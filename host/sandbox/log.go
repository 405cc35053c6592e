package sandbox

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogLine is one line that a guest wrote, made safe for a terminal.
type LogLine struct {
	Plugin, Tool, Call string
	Level              string // "debug", "info", "warn", "error", "stdout", "stderr"
	Text               string
}

// logs bounds what one call writes: lines, and bytes a line.
type logs struct {
	to       func(LogLine)
	head     LogLine
	lines    int // left
	max      int // bytes a line
	dropped  int
	out, err lineWriter
}

func newLogs(to func(LogLine), head LogLine, lines, bytes int) *logs {
	l := &logs{to: to, head: head, lines: lines, max: bytes}
	l.out, l.err = lineWriter{logs: l, level: "stdout"}, lineWriter{logs: l, level: "stderr"}
	return l
}

// write logs one message. Its lines become one: a guest must not forge others.
func (l *logs) write(level string, text []byte) {
	if l.lines <= 0 {
		l.dropped++
		return
	}
	l.lines--
	if l.to == nil {
		return
	}
	cut := len(text) > l.max
	if cut {
		text = text[:l.max]
		for len(text) > 0 && !utf8.RuneStart(text[len(text)-1]) {
			text = text[:len(text)-1]
		}
	}
	line := l.head
	line.Level, line.Text = level, printable(string(text))
	if cut {
		line.Text += "…"
	}
	l.to(line)
}

// flush logs what stands on the streams without an end of line.
func (l *logs) flush() {
	l.out.flush()
	l.err.flush()
}

// lineWriter cuts a stream into lines, and holds at most one.
type lineWriter struct {
	logs  *logs
	level string
	buf   []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if w.logs.lines <= 0 { // two GiB of line ends take minutes to look at
			w.logs.dropped++
			break
		}
		line, rest, end := bytes.Cut(p, []byte("\n"))
		room := max(w.logs.max+1-len(w.buf), 0) // one more than fits, so that the cut is seen
		w.buf = append(w.buf, line[:min(room, len(line))]...)
		if end {
			w.flushLine()
		}
		p = rest
	}
	return n, nil
}

func (w *lineWriter) flushLine() {
	w.logs.write(w.level, w.buf)
	w.buf = w.buf[:0]
}

func (w *lineWriter) flush() {
	if len(w.buf) > 0 {
		w.flushLine()
	}
}

// printable makes control characters, escape sequences and characters that
// change the direction of text visible.
func printable(s string) string {
	clean := true
	for _, r := range s {
		if r != '\t' && !unicode.IsPrint(r) || r == utf8.RuneError {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		default:
			b.WriteString(quoteRune(r))
		}
	}
	return b.String()
}

func quoteRune(r rune) string {
	const hex = "0123456789abcdef"
	if r < 0x80 {
		return `\x` + string(hex[r>>4]) + string(hex[r&15])
	}
	s := `\u{`
	started := false
	for shift := 20; shift >= 0; shift -= 4 {
		d := r >> shift & 15
		if started = started || d != 0; started {
			s += string(hex[d])
		}
	}
	return s + "}"
}
