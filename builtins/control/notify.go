package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/internal/tool"
	"github.com/elfhost/elfhost/host"
)

// Notifier reaches the person where they are: on the desktop, else at the
// terminal. It is safe for concurrent use. The zero value reaches nobody.
type Notifier struct {
	// Desktop shows a notification. Nil, or an error: the terminal is tried.
	Desktop func(ctx context.Context, title, body string) error
	// Terminal is where the bell is rung; nil: there is none.
	Terminal io.Writer
	// Plain writes no escape sequence to the terminal: the bell alone.
	Plain bool
	// Escape makes a text safe to show; nil: what cannot be printed is left out.
	Escape func(string) string

	mu   sync.Mutex
	sent []time.Time // of the last minute
}

// maxNotified is how many notifications of one minute are shown: a model that
// goes in circles must not fill somebody's desktop.
const maxNotified = 6

// desktopTime is how long a desktop may take to answer.
const desktopTime = 3 * time.Second

var errTooMany = fmt.Errorf("%d notifications were shown within the last minute", maxNotified)

// Send shows a notification and says where. Whatever the text is, it cannot
// pose as another program's: elfhost's name stands before the title.
func (n *Notifier) Send(ctx context.Context, title, body string) (where string, err error) {
	if !n.admit(time.Now()) {
		return "", errTooMany
	}
	title, body = "elfhost: "+n.line(title), n.line(body)
	var failed error
	if n.Desktop != nil {
		if failed = n.desktop(ctx, title, body); failed == nil {
			return "on the desktop", nil
		}
	}
	if n.Terminal == nil {
		err := errors.New("there is neither a desktop that takes notifications nor a terminal")
		if failed != nil {
			err = fmt.Errorf("%w (%w)", err, failed)
		}
		return "", err
	}
	bell := "\a"
	if !n.Plain {
		// OSC 9 is what iTerm2, Windows Terminal, kitty, WezTerm and others show;
		// terminals that do not know it print nothing. The bell ends the sequence.
		bell = "\x1b]9;" + strings.TrimSuffix(title+" — "+body, " — ") + "\a" + bell
	}
	if _, err := io.WriteString(n.Terminal, bell); err != nil {
		return "", err
	}
	return "at the terminal", nil
}

// desktop waits no longer than desktopTime: a service that hangs, and the
// programs that libraries start in its place, must not hold up a turn.
func (n *Notifier) desktop(ctx context.Context, title, body string) error {
	ctx, cancel := context.WithTimeout(ctx, desktopTime)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("the desktop's library failed: %v", p)
			}
		}()
		done <- n.Desktop(ctx, title, body)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.New("the desktop does not answer")
	}
}

func (n *Notifier) admit(now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.sent) > 0 && now.Sub(n.sent[0]) > time.Minute {
		n.sent = n.sent[1:]
	}
	if len(n.sent) >= maxNotified {
		return false
	}
	n.sent = append(n.sent, now)
	return true
}

// line makes one safe line of a text.
func (n *Notifier) line(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if n.Escape != nil {
		return n.Escape(s)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
}

type notifyArgs struct {
	Title string `json:"title"`
	Body  string `json:"body"`
}

// notify never fails the turn: that nobody was reached is an answer.
func (r *room) notify(ctx context.Context, c host.Call) (abi.Result, error) {
	a, err := tool.Args[notifyArgs](c)
	if err != nil {
		return abi.Result{}, err
	}
	where, err := r.Notifier.Send(ctx, a.Title, a.Body)
	if err != nil {
		return abi.Textf("Nobody was notified: %v. Go on without it.", err), nil
	}
	return abi.Textf("The notification was shown %s.", where), nil
}

func notifySpec() host.Spec {
	s := tool.Spec(texts, "Notify", host.KindOther)
	s.Title = "Notify"
	s.Parallel = true
	return s
}
