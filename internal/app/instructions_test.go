package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
)

// instructed runs a script in the workspace and lists what the agent was given.
func instructed(t *testing.T, m *machine, prompt, script string) (paths []string, text string) {
	t.Helper()
	m.write("ws/script.toml", script)
	a := m.open()
	chosen, err := a.Model(t.Context(), "scripted/script.toml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Conversation(t.Context(), chosen.Name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := a.Loop(t.Context(), chosen, agent.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	content, notes := a.Mentioned(t.Context(), chosen, s, prompt)
	if len(notes) > 0 {
		t.Errorf("notes: %q", notes)
	}
	for e, err := range a.Turn(t.Context(), l, s, append(content, abi.TextBlock(prompt))...) {
		if err != nil {
			t.Fatal(e.Kind, err)
		}
	}
	for _, msg := range s.Messages() {
		for _, b := range msg.Blocks {
			if b.Content != nil && b.Content.Name == agent.Noted && b.Content.URI != "" {
				paths = append(paths, b.Content.URI)
				text += b.Content.Text
			}
		}
	}
	return paths, text
}

func files(m *machine) {
	for name, text := range map[string]string{
		"AGENTS.md": "ROOT", "a/AGENTS.md": "OF A", "a/CLAUDE.md": "NOT READ", "a/b/c/CLAUDE.md": "OF C", "a/b/c/x.txt": "x", "a/y.txt": "y",
		"d/z.txt": "z", "d/AGENTS.md": " \n", "node_modules/p/AGENTS.md": "STRANGER", "node_modules/p/i.js": "1", "e/AGENTS.md": strings.Repeat("long ", 1<<18), "e/v": "v",
	} {
		m.write("ws/"+name, text)
	}
}

// The nearest instructions come last, with the first call that works there.
func TestInstructionsOfTheFoldersOnTheWay(t *testing.T) {
	m := newMachine(t)
	files(m)
	got, text := instructed(t, m, "go", `
[[turn]]
[[turn.call]]
tool = "Read"
args = { path = "a/y.txt" }
[[turn]]
[[turn.call]]
tool = "Read"
args = { path = "a/b/c/x.txt" }
[[turn.call]]
tool = "Read"
args = { path = "d/z.txt" }
[[turn.call]]
tool = "Read"
args = { path = "node_modules/p/i.js" }
[[turn.call]]
tool = "Read"
args = { path = "e/v" }
[[turn]]
text = "done"
`)
	if !slices.Equal(got, []string{"a/AGENTS.md", "a/b/c/CLAUDE.md"}) || !strings.Contains(text, "OF A") || !strings.Contains(text, "OF C") {
		t.Errorf("given %q: %s", got, text)
	}
}

// A new file is edited where its folder's instructions hold, too; what a person
// mentions brings them at once.
func TestInstructionsWithEditsAndMentions(t *testing.T) {
	m := newMachine(t)
	files(m)
	const write = `
[[turn]]
[[turn.call]]
tool = "Edit"
args = { path = "a/y.txt", old_string = "y", new_string = "yy" }
[[turn]]
text = "done"
`
	got, _ := instructed(t, m, "look at @a/b/c/x.txt", write)
	if !slices.Equal(got, []string{"a/AGENTS.md", "a/b/c/CLAUDE.md"}) {
		t.Errorf("given %q", got)
	}
	got, _ = instructed(t, m, "look at @a/AGENTS.md", "[[turn]]\ntext = \"done\"\n")
	if len(got) != 0 {
		t.Errorf("given a second time: %q", got)
	}
}

// A policy that keeps a folder shut keeps its instructions back.
func TestInstructionsUnderAPolicy(t *testing.T) {
	m := newMachine(t)
	files(m)
	m.write("home/policy.toml", "[[deny]]\ncap = \"fs.read\"\nscope = [\"/ws/a/*.md\"]\n")
	got, _ := instructed(t, m, "look at @a/b/c/x.txt", "[[turn]]\ntext = \"done\"\n")
	if !slices.Equal(got, []string{"a/b/c/CLAUDE.md"}) {
		t.Errorf("given %q", got)
	}
}
