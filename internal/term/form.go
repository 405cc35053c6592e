package term

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elfhost/elfhost/host"
)

// Field is one line of a form.
type Field struct {
	Name     string
	Label    string   // what is asked, cleaned here
	Choices  []string // told beside it
	Default  string   // what Enter means; "": nothing
	Required bool
	// Read makes the value of what was typed. Its error is shown, and the field
	// asked again.
	Read func(text string) (any, error)
}

// maxTries is how often one field is asked.
const maxTries = 5

// Fill asks whether the person wants to answer at all, and then field by field.
// ok is false when the person does not; an error, such as an interrupt, or a
// field that is never answered as it should be, is no answer either.
func (p *Prompt) Fill(ctx context.Context, a host.Ask, fields []Field) (values map[string]any, ok bool, err error) {
	answer, err := p.Approve(ctx, a)
	if err != nil || !answer.Allow {
		return nil, false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &keyboard{f: p.In}
	if err := k.take(); err != nil {
		return nil, false, fmt.Errorf("reading keys from the terminal: %w", err)
	}
	defer k.giveBack()
	values = map[string]any{}
	end := time.Now().Add(or(p.Expire, 10*time.Minute))
	for _, f := range fields {
		v, given, err := p.field(ctx, k, f, end)
		if err != nil {
			return nil, false, err
		}
		if given {
			values[f.Name] = v
		}
	}
	return values, true, nil
}

func (p *Prompt) field(ctx context.Context, k *keyboard, f Field, end time.Time) (v any, given bool, err error) {
	label := Line(f.Label)
	for i, c := range f.Choices {
		label += fmt.Sprintf("\n  %d  %s", i+1, Line(c))
	}
	switch {
	case f.Default != "":
		label += " [Enter: " + Line(f.Default) + "]"
	case !f.Required:
		label += " [Enter: leave it out]"
	}
	for range maxTries {
		text, err := p.line(ctx, k, label+": ", end)
		if err != nil {
			return nil, false, err
		}
		if text == "" {
			text = f.Default
		}
		if text == "" && !f.Required {
			return nil, false, nil
		}
		var v any
		if err = errors.New("it needs an answer"); text != "" {
			v, err = f.Read(text)
		}
		if err == nil {
			return v, true, nil
		}
		p.print(p.Style.Red(Line(err.Error())) + "\n")
		if time.Now().After(end) {
			break
		}
	}
	return nil, false, fmt.Errorf("the field %s was not answered as it should be", Line(f.Name))
}
