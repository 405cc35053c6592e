package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Noted names the blocks of a conversation that hold the instruction file of a
// folder, whose path is their URI.
const Noted = "instructions"

// Instructed are the paths of the files whose text the conversation holds, by
// Instruct. What a compaction has taken away is not among them.
func (s *Session) Instructed() map[string]bool {
	paths, _ := s.noted()
	return paths
}

func (s *Session) noted() (paths map[string]bool, size int) {
	paths = map[string]bool{}
	for _, m := range s.Messages() {
		if m.Role != model.RoleUser {
			continue
		}
		for _, b := range m.Blocks {
			if c := b.Content; c != nil && c.Name == Noted {
				size += len(c.Text)
				if c.URI != "" {
					paths[c.URI] = true
				}
			}
		}
	}
	return paths, size
}

// leastNote is what a file must have room for, in bytes: less tells nothing.
const leastNote = 512

// Instruct makes of the instruction files of folders, outermost first, what the
// model is told of them: those that the conversation does not hold yet. All of
// them together stay a small part of the window, in tokens, 0: not known; of
// what has no room, the nearest first, the model is told the name.
func (s *Session) Instruct(window int64, files []Instruction) []abi.Content {
	known, size := s.noted()
	left := min(maxInstructions, int(or(window, assumedWindow))*bytesPerToken/8) - size
	var out []abi.Content
	for _, f := range slices.Backward(files) {
		if known[f.Path] || left < -maxInstructions/8 { // even names are too many
			continue
		}
		known[f.Path] = true
		safe := f.safe()
		switch {
		case left < leastNote:
			safe.Text = "(not shown: all such files together are too long. Read it where it matters.)"
		case len(safe.Text) > left:
			safe.Text = strings.ToValidUTF8(safe.Text[:left], "") + "\n(cut here: all such files together are too long)"
		}
		c := abi.Content{Type: abi.TypeText, Name: Noted, URI: f.Path, Text: fmt.Sprintf("\n<file path=\"%s\">\n%s\n</file>\n", safe.Path, safe.Text)}
		left -= len(c.Text)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil
	}
	head, _ := prompts.ReadFile("prompts/folder.md") // built in
	out = append(out, abi.Content{Type: abi.TypeText, Name: Noted, Text: string(head)})
	slices.Reverse(out)
	return out
}

// learn tells the model what lies beside the files that its calls were about.
func (r *run) learn(ctx context.Context, calls []model.Call, results []model.CallResult) error {
	if r.loop.Learn == nil {
		return nil
	}
	var well []model.Call
	for i, c := range calls {
		if !results[i].IsError {
			well = append(well, c)
		}
	}
	if len(well) == 0 {
		return nil
	}
	content := r.loop.Learn(ctx, r.session, well)
	if len(content) == 0 {
		return nil
	}
	m := model.User(content...)
	settled, cancel := settling(ctx)
	defer cancel()
	if err := r.session.commit(settled, Record{Kind: RecordMessage, Step: r.step, Message: &m, Own: true}); err != nil {
		return err
	}
	for _, c := range content {
		if c.URI != "" {
			r.emit(Event{Kind: KindNote, Text: "The agent was given " + c.URI + "."})
		}
	}
	return nil
}

// aside reports a message that belongs to the step before it: the loop's own
// words, and what it adds to results.
func aside(m model.Message) bool {
	return m.Role == model.RoleUser && !slices.ContainsFunc(m.Blocks, func(b model.Block) bool {
		return b.Content == nil || b.Content.Name != own && b.Content.Name != Noted
	})
}
