package archive

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// WriteMarkdown writes the session for people: who said what, each call with
// its result, what was approved.
func (t *Transcript) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n\n", first(oneLine(t.Info.Title), t.Info.ID))
	fmt.Fprintf(b, "- session: `%s`\n", t.Info.ID)
	for _, p := range [][2]string{{"of", t.Info.Origin}, {"started by", t.Info.Parent}, {"agent", t.Info.Agent}, {"model", t.Info.Model}} {
		if p[1] != "" {
			fmt.Fprintf(b, "- %s: %s\n", p[0], code(p[1]))
		}
	}
	fmt.Fprintf(b, "- from %s to %s\n", stamp(t.Info.Created), stamp(t.Info.Updated))
	t.write(b, t.turns())
	t.draft(b, "cut off")
	return b.Flush()
}

// WriteTail writes the last n messages, results of calls clipped: what a model
// is told of another session.
func (t *Transcript) WriteTail(w io.Writer, n int) error {
	b := bufio.NewWriter(w)
	turns := t.turns()
	if over := len(turns) - n; over > 0 {
		fmt.Fprintf(b, "(%d earlier messages are left out.)\n", over)
		turns = turns[over:]
	}
	short := &Transcript{Info: t.Info, Notes: t.Notes}
	for _, k := range turns {
		for id, r := range k.results {
			res := *r.Result
			res.Result = abi.Result{Content: []abi.Content{abi.TextBlock(clip(blocks(res.Content), tailResult))}, IsError: res.IsError}
			r.Result = &res
			k.results[id] = r
		}
	}
	short.write(b, turns)
	t.draft(b, "not finished")
	return b.Flush()
}

// draft writes what has no record yet; why says so in its heading.
func (t *Transcript) draft(b *bufio.Writer, why string) {
	if t.Draft == nil {
		return
	}
	fmt.Fprintf(b, "\n## Agent, %s\n", why)
	for _, block := range t.Draft.Blocks {
		writeBlock(b, nil, block, nil)
	}
}

// tailResult is what WriteTail shows of a result, in bytes.
const tailResult = 2 << 10

func (t *Transcript) write(b *bufio.Writer, turns []*turn) {
	notes := t.notes()
	for _, k := range turns {
		if m := k.message(); m != nil {
			fmt.Fprintf(b, "\n## %s\n", heading(k))
			for _, block := range m.Blocks {
				writeBlock(b, k, block, notes)
			}
		}
		for _, st := range k.runs {
			fmt.Fprintf(b, "\n### Agent %s: %s\n\n- session: %s\n", code(first(st.Name, st.Agent, st.ID)), st.Status, code(st.Session))
			if st.Error != "" {
				fmt.Fprintf(b, "- %s\n", oneLine(st.Error))
			}
		}
	}
}

func heading(k *turn) string {
	at := " · " + stamp(k.at.Time)
	switch {
	case k.at.Kind == agent.RecordCompact:
		return "Minutes of what came before" + at
	case k.at.Own:
		return "Host" + at
	case k.at.Message.Role == model.RoleUser:
		return "Person" + at
	case k.at.Model != "":
		return "Agent (" + oneLine(k.at.Model) + ")" + at
	}
	return "Agent" + at
}

func writeBlock(b *bufio.Writer, k *turn, block model.Block, notes map[string][]store.Note) {
	switch {
	case block.Content != nil:
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(blocks([]abi.Content{*block.Content})))
	case block.Thinking != nil && strings.TrimSpace(block.Thinking.Text) != "":
		fmt.Fprint(b, "\n")
		for line := range strings.Lines(strings.TrimSpace(block.Thinking.Text)) {
			fmt.Fprintf(b, "> %s\n", strings.TrimSuffix(line, "\n"))
		}
	case block.Call != nil && k != nil:
		writeCall(b, k, *block.Call, notes[block.Call.ID])
	}
}

func writeCall(b *bufio.Writer, k *turn, c model.Call, notes []store.Note) {
	fmt.Fprintf(b, "\n### Call of %s\n\n%s", code(c.Name), fenced("json", c.Args))
	for _, n := range notes {
		var d Approval
		if n.Kind != noteApproval || json.Unmarshal(n.Body, &d) != nil {
			continue
		}
		word := "denied"
		if d.Allowed {
			word = "allowed"
		}
		what := strings.TrimSpace(strings.Join([]string{d.Cap, d.Verb, d.Target}, " "))
		fmt.Fprintf(b, "\n- %s by %s", word, oneLine(d.By))
		for _, s := range []string{what, d.Rule, d.Where, d.Reason} {
			if s != "" {
				fmt.Fprintf(b, ", %s", code(s))
			}
		}
		fmt.Fprint(b, "\n")
	}
	r, ok := k.results[c.ID]
	if !ok {
		fmt.Fprint(b, "\nNo result.\n")
		return
	}
	fmt.Fprintf(b, "\nResult (%s):\n\n%s", first(string(r.Outcome), "done"), fenced("", blocks(r.Result.Content)))
	for _, rc := range r.Receipts {
		fmt.Fprintf(b, "\n- receipt: %s, fuel %d, %s", code(rc.Plugin+" "+rc.Tool), rc.Fuel, rc.Wall.Round(time.Microsecond))
		for _, s := range append(append([]string{}, rc.Hosts...), rc.Files...) {
			fmt.Fprintf(b, ", %s", code(s))
		}
		fmt.Fprint(b, "\n")
	}
}

// blocks is content as text; what is no text is named.
func blocks(content []abi.Content) string {
	var parts []string
	for _, c := range content {
		switch c.Type {
		case abi.TypeText:
			parts = append(parts, c.Text)
		case abi.TypeResource:
			if c.Resource != nil {
				parts = append(parts, first(c.Resource.Text, fmt.Sprintf("[resource %s]", c.Resource.URI)))
			}
		default:
			parts = append(parts, fmt.Sprintf("[%s %s, %d bytes]", c.Type, first(c.URI, c.MIMEType), len(c.Data)))
		}
	}
	return strings.Join(parts, "\n")
}

// fenced is a block of code whose fence no line in it can end.
func fenced(lang, s string) string {
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	s = strings.TrimSuffix(s, "\n")
	return fence + lang + "\n" + s + "\n" + fence + "\n"
}

// code is a text on one line in backquotes.
func code(s string) string {
	s = oneLine(s)
	ticks := "`"
	for strings.Contains(s, ticks) {
		ticks += "`"
	}
	if ticks == "`" {
		return "`" + s + "`"
	}
	return ticks + " " + s + " " + ticks
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// clip cuts a text at a rune.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + fmt.Sprintf("\n(%d bytes more)", len(s)-most)
}
