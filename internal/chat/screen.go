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
	if !s.style.Color {
		return func() {}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-tick.C:
				s.tick(n)
			case <-stop:
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-done
		s.say("")
	}
}

// tick draws the status line anew. Text that streams is not disturbed: the
// line appears only below a text that ended, or that has paused.
func (s *screen) tick(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status == "" || s.held || s.middle {
		return
	}
	text := frames[n%len(frames)] + " " + s.status
	if d := time.Since(s.since); d >= time.Second {
		text += " " + d.Truncate(time.Second).String()
	}
	if s.style.Width > 4 {
		text = ansi.Truncate(text, s.style.Width-1, "…")
	}
	_, _ = io.WriteString(s.out, "\r\x1b[K"+s.style.Dim(text))
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
