package term

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"
)

// Editor reads what a person writes, over one or several lines, with the keys
// that people know from their shell. Enter sends; Alt-Enter, Ctrl-J or a
// backslash before Enter begins a new line; a paste keeps its lines. It takes
// the terminal only while it reads.
type Editor struct {
	In     *os.File // a terminal
	Out    io.Writer
	Style  Style
	Prompt string // before the first line: "> "
	// History is what can be gone back to, the newest last. The Editor does not
	// change it.
	History []string
	// Text is what stands there already.
	Text string
	// Complete finds what the end of a text may become: choices take the place
	// of what comes after from, in bytes. Nil: nothing is completed.
	Complete func(ctx context.Context, text string) (from int, choices []string)
}

// Bracketed paste tells what was pasted from what was typed.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

// maxInput bounds what is written at once, in bytes.
const maxInput = 1 << 20

// Read gives what was sent. Ctrl-C is ErrInterrupt, together with what had been
// written; Ctrl-D on an empty line is io.EOF. At the end of ctx it leaves no
// trace on the screen, and its error and what had been written come together.
func (e *Editor) Read(ctx context.Context) (string, error) {
	k := &keyboard{f: e.In}
	if err := k.take(); err != nil {
		return "", fmt.Errorf("reading keys from the terminal: %w", err)
	}
	_, _ = io.WriteString(e.Out, pasteOn)
	l := &line{e: e, at: len(e.History), text: []rune(clean(e.Text))}
	l.pos = len(l.text)
	defer func() {
		if l.pos, l.hint, l.search = len(l.text), nil, nil; ctx.Err() != nil {
			l.wipe() // it will be read again
			_, _ = io.WriteString(e.Out, pasteOff)
		} else {
			l.draw()
			_, _ = io.WriteString(e.Out, pasteOff+"\r\n")
		}
		k.giveBack()
	}()
	for {
		l.draw()
		key, pasted, err := k.read(ctx)
		if err != nil {
			return string(l.text), err
		}
		l.hint = nil
		switch {
		case key == keyPaste:
			l.found()
			l.insert([]rune(pasted)...)
			continue
		case key == '\t' && l.search == nil:
			l.complete(ctx)
			continue
		}
		done, err := l.press(key)
		if done || err != nil {
			return string(l.text), err
		}
	}
}

// line is what is being written.
type line struct {
	e    *Editor
	text []rune
	pos  int
	at   int    // in the history; its length: the person's own text
	own  []rune // that, while the history is shown

	search *search  // what is looked for in the history
	hint   []string // shown below the text until the next key

	row, rows int // of the cursor on the screen, and of all that is drawn
}

// press carries out one key; done: the text is sent.
func (l *line) press(key rune) (done bool, err error) {
	if l.search != nil && l.seek(key) {
		return false, nil
	}
	switch key {
	case '\r':
		if l.pos == len(l.text) && l.pos > 0 && l.text[l.pos-1] == '\\' {
			l.text[l.pos-1] = '\n'
			return false, nil
		}
		return true, nil
	case '\n', keyNewline:
		l.insert('\n')
	case 4: // Ctrl-D
		if len(l.text) == 0 {
			return false, io.EOF
		}
		l.cut(l.pos, l.pos+1)
	case 8, 127:
		l.cut(l.pos-1, l.pos)
	case keyDelete:
		l.cut(l.pos, l.pos+1)
	case 21: // Ctrl-U
		l.cut(l.start(), l.pos)
	case 11: // Ctrl-K
		l.cut(l.pos, l.end())
	case 23: // Ctrl-W
		l.cut(l.word(-1), l.pos)
	case 12: // Ctrl-L
		_, _ = io.WriteString(l.e.Out, "\x1b[H\x1b[2J")
		l.row, l.rows = 0, 0
	case '\t':
		l.insert(' ', ' ')
	case ctrlR:
		if len(l.e.History) == 0 {
			break
		}
		l.search = &search{at: len(l.e.History), text: l.text, pos: l.pos}
	default:
		l.move(key)
	}
	return false, nil
}

// move carries out the keys that change nothing but the place, and writes characters.
func (l *line) move(key rune) {
	switch key {
	case keyLeft, 2:
		l.pos = max(0, l.pos-1)
	case keyRight, 6:
		l.pos = min(len(l.text), l.pos+1)
	case keyHome, 1:
		l.pos = l.start()
	case keyEnd, 5:
		l.pos = l.end()
	case keyWordLeft:
		l.pos = l.word(-1)
	case keyWordRight:
		l.pos = l.word(1)
	case keyUp, 16:
		l.vertical(-1)
	case keyDown, 14:
		l.vertical(1)
	default:
		if key >= 0x20 && key <= unicode.MaxRune {
			l.insert(key)
		}
	}
}

func (l *line) insert(r ...rune) {
	if len(l.text)+len(r) > maxInput {
		return
	}
	l.text = slices.Insert(l.text, l.pos, r...)
	l.pos += len(r)
}

func (l *line) cut(from, to int) {
	from, to = max(0, from), min(to, len(l.text))
	if from < to {
		l.text = slices.Delete(l.text, from, to)
		l.pos = from
	}
}

// start and end are of the line of the text that the cursor is in.
func (l *line) start() int {
	i := l.pos
	for i > 0 && l.text[i-1] != '\n' {
		i--
	}
	return i
}

func (l *line) end() int {
	i := l.pos
	for i < len(l.text) && l.text[i] != '\n' {
		i++
	}
	return i
}

func (l *line) word(dir int) int {
	i := l.pos
	at := func(i int) bool { return unicode.IsSpace(l.text[i]) }
	if dir < 0 {
		for i > 0 && at(i-1) {
			i--
		}
		for i > 0 && !at(i-1) {
			i--
		}
		return i
	}
	for i < len(l.text) && at(i) {
		i++
	}
	for i < len(l.text) && !at(i) {
		i++
	}
	return i
}

// vertical goes to the line above or below; past the first or last line, to
// the history.
func (l *line) vertical(dir int) {
	col := l.pos - l.start()
	if dir < 0 {
		if s := l.start(); s > 0 {
			l.pos = s - 1
			l.pos = min(l.start()+col, l.pos)
			return
		}
	} else if e := l.end(); e < len(l.text) {
		l.pos = e + 1
		l.pos = min(l.pos+col, l.end())
		return
	}
	to := l.at + dir
	if to < 0 || to > len(l.e.History) {
		return
	}
	if l.at == len(l.e.History) {
		l.own = l.text
	}
	l.at, l.text = to, l.own
	if to < len(l.e.History) {
		l.text = []rune(strings.ToValidUTF8(l.e.History[to], "\uFFFD"))
	}
	l.text = slices.Clone(l.text)
	l.pos = len(l.text)
}
