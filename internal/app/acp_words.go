package app

import (
	"context"
	"errors"
	"strings"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/acp"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// toldACP gives an error the words and the kind that an editor shows.
func toldACP(err error) error {
	var f *fault.Error
	var m *model.Error
	var own *acp.Error
	switch {
	case err == nil, errors.As(err, &own), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &m) && m.Code == model.ErrAuth:
		return &acp.Error{Kind: acp.NoModel, Text: err.Error() + "\nIs the key in the environment of the editor the right one?"}
	case !errors.As(err, &f):
		return err
	}
	e := &acp.Error{Text: err.Error() + " [" + f.Code + "]"}
	if f.Hint != "" && !strings.HasPrefix(f.Hint, "-") { // a flag helps nobody in an editor
		e.Text += "\n" + f.Hint
	}
	switch f.Code {
	case "E1101":
		e.Kind = acp.NoModel
	case "E1505":
		e.Kind = acp.NotFound
	case "E1001", "E1004":
		e.Kind = acp.Invalid
	}
	return e
}

// showACP is the question of a terminal, for an editor's four buttons.
func showACP(a host.Ask) (acp.Question, bool) {
	q, ok := term.Ask(a, true)
	if !ok {
		return acp.Question{}, false
	}
	out := acp.Question{Text: q.Body(), No: "no", Never: "no, and do not ask about this again in this session"}
	for _, c := range q.Choices {
		switch {
		case c.Answer.Allow && c.Answer.Scope == host.Once && out.Once.Text == "":
			out.Once = acp.Choice{Text: c.Text, Answer: c.Answer}
		case c.Answer.Allow && c.Answer.Scope == host.Project && out.Rule.Text == "":
			out.Rule = acp.Choice{Text: c.Text, Answer: c.Answer}
		}
	}
	if len(a.Rules) > 0 {
		out.Never = "no, and do not ask about " + term.RuleText(a.Rules[0]) + " again in this session"
	}
	return out, true
}

// escapeText makes text safe to show; code keeps its tabs.
func escapeText(s string) string {
	parts := strings.Split(s, "\t")
	for i, p := range parts {
		parts[i] = term.Lines(p)
	}
	return strings.Join(parts, "\t")
}
