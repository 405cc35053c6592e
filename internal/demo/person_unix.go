//go:build unix

package demo

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/creack/pty"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/term"
)

// person sits at a terminal of the demo's own: it sees what a person would
// see, and types an answer.
type person struct {
	show     *show
	ptm, pts *os.File
	prompt   *term.Prompt
	done     chan struct{}
}

func newPerson(s *show) (*person, error) {
	ptm, pts, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("opening a terminal for the demo: %w", err)
	}
	p := &person{show: s, ptm: ptm, pts: pts, prompt: &term.Prompt{In: pts, Out: pts}, done: make(chan struct{})}
	go p.watch()
	return p, nil
}

// Approve shows the question in the terminal and types "1": allow once. A
// person reads first, and what is typed too early is ignored: on a busy machine
// that may want a second try.
func (p *person) Approve(ctx context.Context, a host.Ask) (host.Answer, error) {
	p.show.line("asked:   in a terminal of the demo's own, as a person would see it")
	ctx, answered := context.WithCancel(ctx)
	defer answered()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(1500 * time.Millisecond):
				_, _ = p.ptm.WriteString("1\r")
			}
		}
	}()
	return p.prompt.Approve(ctx, a)
}

// watch copies the terminal's screen to the demo's output.
func (p *person) watch() {
	defer close(p.done)
	sc := bufio.NewScanner(p.ptm)
	for sc.Scan() {
		if l := strings.TrimRight(sc.Text(), "\r"); strings.TrimSpace(l) != "" {
			p.show.line("  | %s", term.Line(l))
		}
	}
}

func (p *person) close() {
	_ = p.pts.Close()
	_ = p.ptm.Close()
	<-p.done
}
