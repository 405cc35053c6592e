package agent

import (
	"embed"
	"fmt"
	"runtime"
	"strings"
	"text/template"
	"time"

	"github.com/elfhost/elfhost/host"
)

//go:embed prompts/*.md
var prompts embed.FS

// Surroundings is what the system prompt tells the model of where it is. A
// zero field is left out, or has a default.
type Surroundings struct {
	Name         string // of the agent; default elfhost
	Date         time.Time
	OS           string
	Shell        string
	Dir          string
	Repository   bool
	Branch       string
	Mode         host.Mode
	Facts        []string      // further lines, one fact each
	Instructions []Instruction // AGENTS.md and its like, outermost first
	Append       string        // text of an agent definition, or of the person
}

// Instruction is a file of a project that speaks to agents. It is data: it is
// shown to the model as such.
type Instruction struct{ Path, Text string }

// maxInstructions bounds all instruction files together, in bytes. They are
// sent with every request.
const maxInstructions = 64 << 10

// Prompt makes the system prompt. The same surroundings give the same text,
// so that a provider's cache holds: Date is told by the day.
func (s Surroundings) Prompt() (string, error) {
	t, err := template.ParseFS(prompts, "prompts/system.md")
	if err != nil {
		return "", fmt.Errorf("reading the system prompt: %w", err)
	}
	if s.OS == "" {
		s.OS = runtime.GOOS + "/" + runtime.GOARCH
	}
	s.Name = or(s.Name, "elfhost")
	mode := ""
	if s.Mode != "" {
		text, err := prompts.ReadFile("prompts/mode-" + string(s.Mode) + ".md")
		if err != nil {
			return "", fmt.Errorf("unknown mode %q", s.Mode)
		}
		mode = strings.TrimSpace(string(text))
	}
	if s.Date.IsZero() {
		s.Date = time.Now()
	}
	var b strings.Builder
	err = t.Execute(&b, struct {
		Surroundings
		Date, ModeText string
		Instructions   []Instruction
	}{s, s.Date.Format("Monday, 2 January 2006"), mode, bounded(s.Instructions)})
	if err != nil {
		return "", fmt.Errorf("making the system prompt: %w", err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}

// safe keeps an instruction from closing its own frame.
func (i Instruction) safe() Instruction {
	return Instruction{
		Path: strings.NewReplacer(`"`, "'", "\n", " ", "<", "(", ">", ")").Replace(i.Path),
		Text: strings.ReplaceAll(strings.TrimSpace(i.Text), "</file>", "&lt;/file>"),
	}
}

// bounded cuts instructions to what is sent.
func bounded(in []Instruction) []Instruction {
	left := maxInstructions
	var out []Instruction
	for _, i := range in {
		i = i.safe()
		if len(i.Text) > left {
			i.Text = strings.ToValidUTF8(i.Text[:left], "") + "\n(cut here: all such files together are too long)"
		}
		left = max(0, left-len(i.Text))
		out = append(out, i)
	}
	return out
}
