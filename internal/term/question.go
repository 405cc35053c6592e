package term

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/host"
)

// MaxQuestion is the longest question that is shown at all, in bytes. What is
// longer is refused, because nobody reads it (TUI-03).
const MaxQuestion = 10 << 10

// shownLines of the subject are shown before the middle is folded away.
const shownLines = 12

// Choice is one numbered answer of a question.
type Choice struct {
	Text   string
	Answer host.Answer
	Reason bool // ask for a reason next
	Unfold bool // show what was folded, then ask again
}

// Question is what a person is shown, and the answers to choose from. The
// last-but-one choice is always "no", and it is the default.
type Question struct {
	Head    string
	Rows    [][2]string // label and text; text may have several lines
	Choices []Choice
	Default int // index in Choices
	Folded  bool
	change  bool // the subject's lines have signs
}

// Ask makes the question of a. unfolded shows everything; otherwise a long
// subject is folded to its head and tail, and nothing but unfolding or a
// refusal is offered. ok is false when the question is too long to be asked.
func Ask(a host.Ask, unfolded bool) (q Question, ok bool) {
	if a.Screen != "" {
		return ofScreen(a)
	}
	what, note, signs := subject(a)
	q.change = signs
	if len(what) > MaxQuestion {
		return q, false
	}
	shown, hidden := fold(what, unfolded)
	q.Head = Line(who(a)) + " wants to " + intent(a)
	q.row("what", shown)
	q.row("note", note)
	q.row("why", Lines(a.Why))
	for _, r := range a.Risks {
		q.row("risk", Lines(r))
	}
	q.row("now", Lines(a.Now))
	q.Folded = hidden > 0
	if note != "" { // what could not be shown as it is cannot be agreed to for longer
		a.Rules = nil
	}
	q.choices(a, hidden)
	return q, true
}

// MaxScreen is the longest screen that is shown, in bytes: it has a line for
// each thing that a person agrees to, and is never folded.
const MaxScreen = 24 << 10

// ofScreen is a question about what the host has prepared.
func ofScreen(a host.Ask) (q Question, ok bool) {
	if len(a.Screen) > MaxScreen || len(a.Choices) == 0 {
		return q, false
	}
	q.Head = strings.TrimSuffix(a.Screen, "\n")
	q.row("why", Lines(a.Why))
	for i, c := range a.Choices {
		q.Choices = append(q.Choices, Choice{Text: Line(c), Answer: host.Answer{Allow: true, Scope: host.Once, Choice: i}})
	}
	q.Default = len(q.Choices)
	q.Choices = append(q.Choices, Choice{Text: "no"}, Choice{Text: "no, and tell the model why", Reason: true})
	return q, true
}

func (q *Question) row(label, text string) {
	if text != "" {
		q.Rows = append(q.Rows, [2]string{label, text})
	}
}

func (q *Question) choices(a host.Ask, hidden int) {
	no := []Choice{
		{Text: "no"},
		{Text: "no, and tell the model why", Reason: true},
	}
	if hidden > 0 {
		q.Choices = append([]Choice{{Text: fmt.Sprintf("show the %d bytes that are hidden", hidden), Unfold: true}}, no...)
		q.Default = 1
		return
	}
	q.Choices = []Choice{{Text: "allow once", Answer: host.Answer{Allow: true, Scope: host.Once}}}
	for _, r := range a.Rules {
		text := RuleText(r)
		if !a.Final {
			q.Choices = append(q.Choices,
				Choice{Text: "allow " + text + " until the session ends", Answer: host.Answer{Allow: true, Scope: host.Session, Rule: r}},
				Choice{Text: "allow " + text + " always in this project  (written to grants.toml)", Answer: host.Answer{Allow: true, Scope: host.Project, Rule: r}})
		}
	}
	q.Default = len(q.Choices)
	q.Choices = append(q.Choices, no...)
}

// RuleText is how a rule is shown: exactly what would be remembered.
func RuleText(r host.Rule) string {
	if r.Grant != nil {
		return Line(strings.TrimSpace(string(r.Grant.Cap) + " " + strings.Join(r.Grant.Scope, ", ")))
	}
	return Line(r.Pattern)
}

// Body is the question without its answers and without styles.
func (q Question) Body() string {
	lines := []string{q.Head}
	for _, r := range q.Rows {
		lines = append(lines, "  "+r[0]+"  "+strings.ReplaceAll(r[1], "\n", "\n      "))
	}
	return strings.Join(lines, "\n")
}

// Render writes the question as text. Every byte of it is safe to show.
func (q Question) Render(s Style) string {
	var b strings.Builder
	title, rest, more := strings.Cut(q.Head, "\n")
	b.WriteString(s.Bold(title) + "\n")
	if more {
		b.WriteString(rest + "\n")
	}
	for _, r := range q.Rows {
		for i, line := range strings.Split(r[1], "\n") {
			label := r[0]
			if i > 0 {
				label = ""
			}
			text := line
			switch {
			case r[0] == "risk", q.change && r[0] == "what" && strings.HasPrefix(line, "- "):
				text = s.Red(line)
			case q.change && r[0] == "what" && strings.HasPrefix(line, "+ "):
				text = s.Green(line)
			}
			b.WriteString("  " + s.Dim(fmt.Sprintf("%-6s", label)) + " " + text + "\n")
		}
	}
	for i, c := range q.Choices {
		fmt.Fprintf(&b, "  %d  %s\n", i+1, c.Text)
	}
	fmt.Fprintf(&b, "answer [1-%d, default %d]: ", len(q.Choices), q.Default+1)
	return b.String()
}

func who(a host.Ask) string {
	o := a.Spec.Origin
	switch o.Source {
	case host.Plugin, host.Bundled:
		if o.Name != "" && o.Name != a.Spec.Name {
			return a.Spec.Name + " (plugin " + o.Name + ")"
		}
	case host.MCP:
		return a.Spec.Name + " (MCP server " + o.Name + ")"
	}
	return a.Spec.Name
}

// intents by capability of a use, and by kind of a call.
var intents = map[string]string{
	"fs.read": "read a file", "fs.write": "write a file", "net.http": "use the network", "exec": "run a program",
	"env": "read an environment variable", "secret": "use a secret", "kv": "keep data", "model": "use the model",
	"tool.call": "call a tool", "clock.fine": "read a fine clock",
	string(host.KindRead): "read", string(host.KindSearch): "search", string(host.KindEdit): "change a file",
	string(host.KindExecute): "run a command", string(host.KindFetch): "use the network",
}

func intent(a host.Ask) string {
	key := string(a.Spec.Kind)
	if a.Use != nil {
		key = string(a.Use.Cap)
	}
	if s, ok := intents[key]; ok {
		return s
	}
	return "run"
}

// subject is what the question is about: the use, else the call's arguments.
// A lone string argument named command is shown as it is, an edit as what goes
// and what comes (signs).
func subject(a host.Ask) (what, note string, signs bool) {
	raw := string(a.Call.Args)
	if a.Use != nil {
		raw = strings.TrimSpace(a.Use.Verb + " " + strings.ReplaceAll(a.Use.Target, "\x00", " "))
		if a.Use.N > 0 {
			raw += fmt.Sprintf(" (%d)", a.Use.N)
		}
	} else if text, ok := change(raw); ok && a.Spec.Kind == host.KindEdit {
		raw, signs = text, true
	} else {
		raw = arguments(raw)
	}
	lines := strings.Split(raw, "\n")
	hidden := 0
	for i, l := range lines {
		out, n := Escape(strings.ReplaceAll(l, "\t", "    "))
		lines[i], hidden = out, hidden+n
	}
	if hidden > 0 {
		note = fmt.Sprintf("%d invisible or control characters are shown as <U+…>", hidden)
	}
	return strings.Join(lines, "\n"), note, signs
}

// arguments shows a JSON object as one line a member, in its own order. Further
// lines of a value are set in, so that none passes for a member.
func arguments(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return raw
	}
	var rows []string
	command := ""
	for dec.More() {
		k, err := dec.Token()
		var v json.RawMessage
		if err != nil || dec.Decode(&v) != nil {
			return raw
		}
		var s string
		text := string(v)
		if json.Unmarshal(v, &s) == nil && len(v) > 0 && v[0] == '"' {
			text = s
		}
		if k == "command" {
			command = text
		}
		rows = append(rows, strings.ReplaceAll(fmt.Sprint(k)+": "+text, "\n", "\n  "))
	}
	if len(rows) == 1 && command != "" {
		return command
	}
	return strings.Join(rows, "\n")
}

// fold keeps the head and tail of a long text and says what it hides.
func fold(s string, unfolded bool) (shown string, hidden int) {
	lines := strings.Split(s, "\n")
	if unfolded || len(lines) <= shownLines && len(s) <= 2_000 {
		return s, 0
	}
	if len(lines) > shownLines {
		half := shownLines / 2
		mid := lines[half : len(lines)-half]
		hidden = len(strings.Join(mid, "\n"))
		mark := fmt.Sprintf("… %d bytes in %d lines hidden …", hidden, len(mid))
		keep := append(append(append([]string{}, lines[:half]...), mark), lines[len(lines)-half:]...)
		s = strings.Join(keep, "\n")
	}
	if len(s) > 2_000 {
		head, tail := cutRunes(s, 1_000), cutRunesTail(s, 900)
		n := len(s) - len(head) - len(tail)
		hidden += n
		s = head + fmt.Sprintf("\n… %d bytes hidden …\n", n) + tail
	}
	return s, hidden
}

func cutRunes(s string, n int) string {
	for n > 0 && n < len(s) && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:min(n, len(s))]
}

func cutRunesTail(s string, n int) string {
	i := max(0, len(s)-n)
	for i < len(s) && s[i]&0xc0 == 0x80 {
		i++
	}
	return s[i:]
}
