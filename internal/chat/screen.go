package chat

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/internal/term"
)

// screen is what is written to the terminal: text, and below it a status line
// that moves while something runs. In a plain style there is no status line.
// It is safe for concurrent use.
type screen struct {
	out   io.Writer
	style term.Style

	mu     sync.Mutex
	status string // "" when there is none
	since  time.Time
	drawn  bool   // the status line is on the screen
	held   bool   // a question has the terminal
	later  []byte // what was written meanwhile
	middle bool   // the text so far does not end with a newline

	typed string // what the person is writing meanwhile
	waits int    // lines of theirs that nobody has read yet
	frame int
}

// width is how many columns there are now: people resize their windows.
func (s *screen) width() int {
	if n := term.Width(s.out); n > 0 {
		return n
	}
	return s.style.Width
}

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Write shows text; the status line gives way to it. While a question has the
// terminal the text waits.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.later = append(s.later, p...)
		return len(p), nil
	}
	return s.show(p)
}

// show is called with the lock held.
func (s *screen) show(p []byte) (int, error) {
	s.wipe()
	if len(p) > 0 {
		s.middle = p[len(p)-1] != '\n'
	}
	return s.out.Write(p)
}

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// line ends a line that was begun.
func (s *screen) line() {
	s.mu.Lock()
	middle := s.middle
	if s.held {
		middle = len(s.later) > 0 && s.later[len(s.later)-1] != '\n'
	}
	s.mu.Unlock()
	if middle {
		s.printf("\n")
	}
}

// say sets what the status line tells; "" takes it away.
func (s *screen) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	if what != s.status {
		s.status, s.since = what, time.Now()
	}
}

// hold keeps everything away while a question has the terminal.
func (s *screen) hold(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	if on && s.middle {
		_, _ = io.WriteString(s.out, "\n")
		s.middle = false
	}
	s.held = on
	if !on && len(s.later) > 0 {
		_, _ = s.show(s.later)
		s.later = nil
	}
}

// start lets the status line move, until the function it returns is called.
func (s *screen) start() (end func()) {
	if !s.style.Moves {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.mu.Lock()
				s.frame++
				s.draw()
				s.mu.Unlock()
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		s.mu.Lock()
		s.typed = ""
		s.mu.Unlock()
		s.say("")
	}
}

// typing shows what the person writes while something runs.
func (s *screen) typing(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.typed = term.Line(strings.NewReplacer("\n", " ⏎ ", "\t", "  ").Replace(text))
	s.draw()
}

// waiting says how many lines of the person wait for the next step.
func (s *screen) waiting(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits = n
}

// draw draws the status line anew, with the lock held. Text that streams is
// not disturbed: the line appears only below a text that ended.
func (s *screen) draw() {
	if s.held || s.middle {
		return
	}
	if s.status == "" && s.typed == "" {
		s.wipe()
		return
	}
	width := 79
	if n := s.width(); n > 4 {
		width = n - 1
	}
	typed := ""
	if s.typed != "" { // its end is what matters
		if typed = s.typed; ansi.StringWidth(typed) > width*2/3 {
			typed = "…" + ansi.TruncateLeft(typed, ansi.StringWidth(typed)-width*2/3, "")
		}
		typed = s.style.Cyan("> ") + typed + " "
	}
	after := ""
	if d := time.Since(s.since); d >= time.Second && s.status != "" {
		after = " " + d.Truncate(time.Second).String()
	}
	if s.waits > 0 {
		after += fmt.Sprintf(" (%d queued)", s.waits)
	}
	room := max(0, width-ansi.StringWidth(typed)-ansi.StringWidth(after)-2)
	text := frames[s.frame%len(frames)] + " " + ansi.Truncate(s.status, room, "…") + after
	_, _ = io.WriteString(s.out, "\r\x1b[K"+ansi.Truncate(typed+s.style.Dim(text), width, "…"))
	s.drawn = true
}

// wipe takes the status line off the screen. It is called with the lock held.
func (s *screen) wipe() {
	if s.drawn {
		_, _ = io.WriteString(s.out, "\r\x1b[K")
		s.drawn = false
	}
}

// diff is where a unified diff begins in a tool's answer, or -1.
func diff(text string) int {
	at := 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "--- ") && strings.Contains(text[at:], "\n+++ ") {
			return at
		}
		at += len(line)
	}
	return -1
}

// shownDiff is how many lines of a diff are shown.
const shownDiff = 40

// showDiff prints a diff, its signs coloured too.
func showDiff(s *screen, text string) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if i == shownDiff {
			s.printf("    %s\n", s.style.Dim(fmt.Sprintf("… %d more lines", len(lines)-i)))
			return
		}
		safe := term.Lines(l)
		switch {
		case strings.HasPrefix(l, "+++"), strings.HasPrefix(l, "---"):
			safe = s.style.Bold(safe)
		case strings.HasPrefix(l, "+"):
			safe = s.style.Green(safe)
		case strings.HasPrefix(l, "-"):
			safe = s.style.Red(safe)
		case strings.HasPrefix(l, "@@"):
			safe = s.style.Cyan(safe)
		}
		s.printf("    %s\n", safe)
	}
}
