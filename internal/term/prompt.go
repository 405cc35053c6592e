package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/host"
)

// Prompt asks a person at a terminal. One question stands at a time; others
// wait in line. It implements host.Approver.
type Prompt struct {
	In    *os.File  // a terminal
	Out   io.Writer // usually stderr
	Style Style
	// Quiet is how long no key may come before an answer is read: 425 ms by
	// default, for at most MaxQuiet (1.5 s).
	Quiet, MaxQuiet time.Duration
	Expire          time.Duration // an unanswered question is a no after that; default 10 minutes
	Before          func()        // called before a question is shown, to end a status line; may be nil

	listens func() // in tests: the quiet period is over

	mu sync.Mutex
}

// errLong refuses what nobody could read, in the model's own interest too.
var errLong = errors.New("it is too long to be shown to a person; make the call smaller")

// Approve shows one question and reads its answer. Enter is the default, "no".
func (p *Prompt) Approve(ctx context.Context, a host.Ask) (host.Answer, error) {
	k, done, err := p.begin(ctx)
	if err != nil {
		return host.Answer{}, err
	}
	defer done()
	end := time.Now().Add(or(p.Expire, 10*time.Minute))
	for unfolded := false; ; {
		q, ok := Ask(a, unfolded)
		if !ok {
			p.print(fmt.Sprintf("%s asks about more than %d kB of text, which nobody could read: refused.\n", q.subjectName(a), MaxQuestion>>10))
			return host.Answer{}, errLong
		}
		c, err := p.choose(ctx, k, q, end)
		if err != nil {
			return host.Answer{}, err
		}
		if c.Unfold {
			unfolded = true
			continue
		}
		if c.Reason {
			c.Answer.Reason, err = p.line(ctx, k, "why: ", end)
		}
		return c.Answer, err
	}
}

func (q Question) subjectName(a host.Ask) string { return Line(who(a)) }

// choose reads digits and Enter. Anything else is ignored.
func (p *Prompt) choose(ctx context.Context, k *keyboard, q Question, end time.Time) (Choice, error) {
	p.print("\n" + q.Render(p.Style))
	if err := k.quiet(ctx, or(p.Quiet, 425*time.Millisecond), or(p.MaxQuiet, 1500*time.Millisecond)); err != nil {
		p.print("\n")
		return Choice{}, err
	}
	if p.listens != nil {
		p.listens()
	}
	for typed := ""; ; {
		b, err := k.key(ctx, time.Until(end))
		switch {
		case errors.Is(err, errIdle):
			p.print("\nno answer in time: no\n")
			return q.Choices[q.Default], nil
		case err != nil:
			p.print("\n")
			return Choice{}, err
		case b == '\r' || b == '\n':
			c, ok := q.pick(typed)
			if ok {
				p.print("\n" + c.Text + "\n")
				return c, nil
			}
			p.print("\nanswer [1-" + strconv.Itoa(len(q.Choices)) + "]: ")
			typed = ""
		case b >= '0' && b <= '9' && len(typed) < 2:
			typed += string(b)
			p.print(string(b))
		case (b == 8 || b == 127) && typed != "":
			typed = typed[:len(typed)-1]
			p.print("\b \b")
		}
	}
}

func (q Question) pick(typed string) (Choice, bool) {
	if typed == "" {
		return q.Choices[q.Default], true
	}
	n, err := strconv.Atoi(typed)
	if err != nil || n < 1 || n > len(q.Choices) {
		return Choice{}, false
	}
	return q.Choices[n-1], true
}

// maxReason bounds what a person tells the model with a denial, in bytes.
const maxReason = 500

// line reads one line of text, echoing what is printable.
func (p *Prompt) line(ctx context.Context, k *keyboard, label string, end time.Time) (string, error) {
	p.print(label)
	var buf []byte
	for {
		b, err := k.key(ctx, time.Until(end))
		switch {
		case errors.Is(err, errIdle), err == nil && (b == '\r' || b == '\n'):
			p.print("\n")
			return strings.ToValidUTF8(string(buf), ""), nil
		case err != nil:
			return "", err
		case b == 8 || b == 127:
			if _, n := utf8.DecodeLastRune(buf); n > 0 {
				buf = buf[:len(buf)-n]
				p.print("\b \b")
			}
		case b >= 0x20 && len(buf) < maxReason:
			buf = append(buf, b)
			if b < 0x80 || utf8.FullRune(tail(buf)) {
				p.print(string(tail(buf)))
			}
		}
	}
}

// tail is the last, perhaps unfinished, rune of b.
func tail(b []byte) []byte {
	i := len(b) - 1
	for i > 0 && len(b)-i < utf8.UTFMax && b[i]&0xc0 == 0x80 {
		i--
	}
	return b[i:]
}

// print writes with carriage returns: the terminal is in raw mode.
func (p *Prompt) print(s string) { _, _ = io.WriteString(p.Out, strings.ReplaceAll(s, "\n", "\r\n")) }

func or(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}
