package term

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Choose shows a text and numbered answers, and returns the index of the one
// that was chosen. Enter, and no answer in time, are def. The text must be safe
// to show: Line and Lines make it so.
func (p *Prompt) Choose(ctx context.Context, text string, answers []string, def int) (int, error) {
	k, done, err := p.begin(ctx)
	if err != nil {
		return def, err
	}
	defer done()
	q := Question{Head: strings.TrimSuffix(text, "\n"), Default: def}
	for _, a := range answers {
		q.Choices = append(q.Choices, Choice{Text: a})
	}
	c, err := p.choose(ctx, k, q, time.Now().Add(or(p.Expire, 10*time.Minute)))
	if err != nil {
		return def, err
	}
	for i, x := range q.Choices {
		if x.Text == c.Text {
			return i, nil
		}
	}
	return def, nil
}

// Ask reads one line of text, which may be empty.
func (p *Prompt) Ask(ctx context.Context, label string) (string, error) {
	k, done, err := p.begin(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return p.line(ctx, k, label, time.Now().Add(or(p.Expire, 10*time.Minute)))
}

// begin takes the terminal for one question.
func (p *Prompt) begin(ctx context.Context) (*keyboard, func(), error) {
	p.mu.Lock()
	if err := ctx.Err(); err != nil {
		p.mu.Unlock()
		return nil, nil, err
	}
	if p.Before != nil {
		p.Before()
	}
	k := &keyboard{f: p.In}
	if err := k.take(); err != nil {
		p.mu.Unlock()
		return nil, nil, fmt.Errorf("reading keys from the terminal: %w", err)
	}
	return k, func() {
		k.giveBack()
		p.mu.Unlock()
	}, nil
}
