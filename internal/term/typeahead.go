package term

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"
)

// Typeahead reads what a person writes while something else has the screen.
// It writes nothing by itself: what is being written is told to Show, each
// line that was sent to Sent; both are called from one goroutine. Where a
// terminal cannot do this, it reads nothing.
type Typeahead struct {
	In   *os.File  // a terminal
	Out  io.Writer // the same one
	Show func(text string)
	Sent func(text string)
	// Lines reads whole lines, which the terminal shows by itself, where it must
	// not be sent escapes; nil: keys are read.
	Lines *LineReader

	mu      sync.Mutex
	text    *line
	restore func()
	stop    func() // of the reading; nil while it pauses
}

// Start begins to read, with the text that was left. Stop it.
func (t *Typeahead) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = &line{e: &Editor{Out: io.Discard}}
	if t.Lines != nil {
		t.restore = func() {}
		t.read()
		return
	}
	restore, err := unbuffer(t.In)
	if err != nil {
		return
	}
	t.restore = restore
	_, _ = io.WriteString(t.Out, pasteOn)
	t.read()
}

// Stop gives the terminal back, and what was written and not sent.
func (t *Typeahead) Stop() (rest string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.restore == nil {
		return ""
	}
	t.halt()
	if t.Lines == nil {
		_, _ = io.WriteString(t.Out, pasteOff)
	}
	t.restore()
	t.restore = nil
	return string(t.text.text)
}

// Pause leaves the keys to somebody else until the function that it returns
// is called.
func (t *Typeahead) Pause() (resume func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.halt()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.restore != nil {
			t.read()
		}
	}
}

// halt ends the reading, with the lock held.
func (t *Typeahead) halt() {
	if t.stop != nil {
		t.stop()
		t.stop = nil
	}
}

// read begins the reading, with the lock held.
func (t *Typeahead) read() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.stop = func() {
		cancel()
		<-done
	}
	go func() {
		defer close(done)
		if t.Lines != nil {
			t.lines(ctx)
		} else {
			t.keys(ctx)
		}
	}()
}

func (t *Typeahead) lines(ctx context.Context) {
	for {
		text, err := t.Lines.Read(ctx)
		if err != nil {
			return
		}
		if text = strings.TrimSpace(text); text != "" {
			t.Sent(text)
		}
	}
}

func (t *Typeahead) keys(ctx context.Context) {
	k := &keyboard{f: t.In}
	for {
		key, pasted, err := k.read(ctx)
		if err != nil {
			return // the terminal is gone, or somebody else's for now
		}
		sent := false
		if key == keyPaste {
			t.text.insert([]rune(pasted)...)
		} else {
			sent, _ = t.text.press(key) // Ctrl-D on an empty line means nothing here
		}
		if sent {
			text := strings.TrimSpace(string(t.text.text))
			t.text.text, t.text.pos = nil, 0
			if text != "" {
				t.Sent(text)
			}
		}
		t.Show(string(t.text.text))
	}
}
