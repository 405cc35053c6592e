// Package term is how elfhost meets a person at a terminal: what may be shown,
// how a question looks, how an answer is read, and the words for errors.
//
// Everything that comes from a model, a plugin, a page or a file passes Escape
// before it is written. A question is made from the fields of host.Ask alone,
// so that its text equals the rule that an answer writes.
package term

import (
	"io"
	"os"

	xterm "golang.org/x/term"
)

// Style says what a terminal may be sent. The zero value is plain: words
// only, no byte of an escape sequence.
type Style struct {
	Color bool // text may be painted
	Moves bool // the cursor may be moved, and lines drawn anew
	Width int  // columns; 0: unknown
}

// Rich reports that text may be laid out: it need not be its own source.
func (s Style) Rich() bool { return s.Color || s.Moves }

// StyleOf looks at a stream and the environment: ACCESSIBLE and TERM=dumb make
// it plain, NO_COLOR takes the colours alone, CLICOLOR_FORCE gives them to what
// is no terminal.
func StyleOf(w io.Writer, env func(string) string) Style {
	f, ok := w.(*os.File)
	tty := ok && xterm.IsTerminal(int(f.Fd()))
	s := Style{Width: Width(w)}
	plain := env("ACCESSIBLE") != "" || env("TERM") == "dumb"
	s.Moves = tty && !plain
	switch {
	case env("NO_COLOR") != "", plain:
	case env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0":
		s.Color = true
	default:
		s.Color = tty
	}
	return s
}

// Width is how many columns a terminal has at this moment; 0: it is none, or
// does not say.
func Width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	n, _, err := xterm.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return n
}

// IsTerminal reports whether f is one.
func IsTerminal(f *os.File) bool { return f != nil && xterm.IsTerminal(int(f.Fd())) }

// The styles in use; each is also told by a word.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (s Style) paint(code, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold, Dim, Red, Green, Yellow and Cyan colour a text that is already safe.
func (s Style) Bold(t string) string   { return s.paint(bold, t) }
func (s Style) Dim(t string) string    { return s.paint(dim, t) }
func (s Style) Red(t string) string    { return s.paint(red, t) }
func (s Style) Green(t string) string  { return s.paint(green, t) }
func (s Style) Yellow(t string) string { return s.paint(yellow, t) }
func (s Style) Cyan(t string) string   { return s.paint(cyan, t) }
