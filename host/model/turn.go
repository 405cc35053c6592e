package model

import (
	"iter"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Turn gathers the events of one answer. The zero value is ready.
type Turn struct {
	Message Message // the finished blocks
	Usage   Usage
	Stop    StopReason
	Refusal string

	text, thinking strings.Builder // of blocks that are not finished
}

// Add takes the next event.
func (t *Turn) Add(e Event) {
	switch e.Kind {
	case KindText:
		t.text.WriteString(e.Text)
	case KindThinking:
		t.thinking.WriteString(e.Text)
	case KindRefusal:
		t.Refusal += e.Text
	case KindBlock:
		if e.Block.Content != nil {
			t.text.Reset()
		}
		if e.Block.Thinking != nil {
			t.thinking.Reset()
		}
		t.Message.Role = RoleAssistant
		t.Message.Blocks = append(t.Message.Blocks, *e.Block)
	case KindUsage:
		t.Usage = *e.Usage
	case KindStop:
		t.Stop = e.Stop
	case KindRetry:
		*t = Turn{}
	}
}

// Partial is what an answer that ended early leaves: its finished text and
// thinking, and what had come of unfinished ones. Calls and native data are
// dropped, since a provider accepts them only in a whole answer; thinking
// without its native data goes to no provider. ok is false when nothing remains.
func (t *Turn) Partial() (m Message, ok bool) {
	m.Role = RoleAssistant
	for _, b := range t.Message.Blocks {
		if b.Content != nil || b.Thinking != nil && b.Thinking.Text != "" {
			m.Blocks = append(m.Blocks, Block{Content: b.Content, Thinking: b.Thinking})
		}
	}
	if s := t.thinking.String(); strings.TrimSpace(s) != "" {
		m.Blocks = append(m.Blocks, Block{Thinking: &Thinking{Text: s}})
	}
	for _, s := range []string{t.text.String(), t.Refusal} {
		if strings.TrimSpace(s) != "" {
			c := abi.TextBlock(s)
			m.Blocks = append(m.Blocks, Block{Content: &c})
		}
	}
	return m, len(m.Blocks) > 0
}

// Read takes what Model.Stream gives, to its end.
func (t *Turn) Read(answer iter.Seq2[Event, error]) error {
	for e, err := range answer {
		if err != nil {
			return err
		}
		t.Add(e)
	}
	if t.Stop == "" {
		return &Error{Code: ErrTruncated}
	}
	return nil
}
