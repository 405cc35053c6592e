//go:build !unix

package demo

import (
	"context"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/term"
)

// person answers without a terminal: this platform has no pty for the demo.
type person struct{ show *show }

func newPerson(s *show) (*person, error) { return &person{s}, nil }

// Approve shows the question and allows it once.
func (p *person) Approve(_ context.Context, a host.Ask) (host.Answer, error) {
	if q, ok := term.Ask(a, true); ok {
		p.show.line("asked, and answered 1 by the demo (no pty on this platform):\n%s", q.Render(term.Style{}))
	}
	return host.Answer{Allow: true, Scope: host.Once}, nil
}

func (p *person) close() {}
