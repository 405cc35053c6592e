package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/chat"
	"github.com/elfhost/elfhost/internal/term"
)

// eventVersion is the version of the streamed events and of the final JSON
// object. It grows when a field changes its meaning or goes away.
const eventVersion = 1

// renderer shows a run as it happens. done is called once, last.
type renderer interface {
	event(agent.Event)
	done(outcome) error
}

// outcome is how a run ended; it is also the JSON of `--output-format json`.
type outcome struct {
	V        int           `json:"v"`
	Type     string        `json:"type"` // "result"
	Session  string        `json:"session,omitempty"`
	Model    string        `json:"model"`
	Stop     agent.Stop    `json:"stop"`
	Text     string        `json:"text"`
	Usage    *agent.Usage  `json:"usage,omitempty"`
	Denials  []denial      `json:"denials"`
	Notes    []string      `json:"notes,omitempty"` // for the person, from before the first step
	Receipts []abi.Receipt `json:"receipts,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// denial is one right that was needed and not given.
type denial struct {
	Tool   string `json:"tool"`
	Cap    string `json:"cap,omitempty"`
	Target string `json:"target,omitempty"`
	Layer  string `json:"layer"`
	Where  string `json:"where,omitempty"`
	Why    string `json:"why"`
	Allow  string `json:"allow,omitempty"` // the narrowest command that would allow it
}

func denialOf(d host.Denied) denial {
	out := denial{Tool: d.Call.Tool, Layer: d.Layer, Where: d.Where, Why: d.Why, Allow: d.Allow}
	if d.Use != nil {
		out.Cap, out.Target = string(d.Use.Cap), strings.TrimSpace(d.Use.Verb+" "+d.Use.Target)
	}
	return out
}

// textRenderer writes the answer to out and everything else to err.
type textRenderer struct {
	out, err io.Writer
	style    term.Style
	receipts bool
	tty      bool            // out is a terminal
	said     strings.Builder // text of the step so far
}

func (r *textRenderer) event(e agent.Event) {
	if e.From != "" && (e.Kind == agent.KindText || e.Kind == agent.KindStep) {
		return // what a sub-agent says comes as the result of its call
	}
	switch e.Kind {
	case agent.KindStep:
		r.flushSaid()
	case agent.KindText, agent.KindRefusal:
		r.said.WriteString(e.Text)
	case agent.KindStart:
		r.flushSaid()
		fmt.Fprintf(r.err, "%s %s\n", r.style.Cyan("·"), callLine(e.Call.Name, json.RawMessage(e.Call.Args)))
	case agent.KindFinish:
		fmt.Fprintf(r.err, "  %s\n", r.finished(e))
		if r.receipts {
			for _, rc := range e.Receipts {
				fmt.Fprintf(r.err, "  %s\n", r.style.Dim(receiptLine(rc)))
			}
		}
	case agent.KindProgress:
		if e.Progress != nil && e.Progress.Message != "" {
			fmt.Fprintf(r.err, "  %s\n", r.style.Dim(term.Line(e.Progress.Message)))
		}
	case agent.KindRetry:
		r.said.Reset()
		fmt.Fprintf(r.err, "%s\n", r.style.Yellow("  "+chat.RetryLine(e.Retry)))
	case agent.KindNote, agent.KindCompact:
		fmt.Fprintf(r.err, "%s\n", r.style.Yellow("  "+term.Lines(e.Text)))
	}
}

// flushSaid shows what the model said before its calls.
func (r *textRenderer) flushSaid() {
	if s := strings.TrimSpace(r.said.String()); s != "" {
		fmt.Fprintf(r.err, "%s\n", r.style.Dim(term.Lines(s)))
	}
	r.said.Reset()
}

func (r *textRenderer) finished(e agent.Event) string {
	if e.Result == nil {
		return "done"
	}
	text := firstLine(e.Result.Text())
	if e.Result.IsError {
		return r.style.Red("failed") + "  " + term.Line(text)
	}
	return r.style.Green("ok") + "  " + size(*e.Result)
}

func (r *textRenderer) done(o outcome) error {
	for _, d := range o.Denials {
		fmt.Fprintf(r.err, "%s\n", r.style.Yellow(denialLine(d)))
	}
	if s := strings.TrimSpace(o.Text); s != "" {
		if r.tty {
			s = term.Lines(s)
		}
		if _, err := fmt.Fprintln(r.out, s); err != nil {
			return err
		}
	}
	return nil
}

// jsonRenderer prints one object at the end, or with stream each event as a line too.
type jsonRenderer struct {
	out    io.Writer
	stream bool
	broken error // of the first write that failed
}

type streamed struct {
	V    int    `json:"v"`
	Type string `json:"type"` // "event"
	agent.Event
}

func (r *jsonRenderer) event(e agent.Event) {
	if r.stream && r.broken == nil {
		r.broken = json.NewEncoder(r.out).Encode(streamed{eventVersion, "event", e})
	}
}

func (r *jsonRenderer) done(o outcome) error {
	if r.broken != nil {
		return r.broken
	}
	return json.NewEncoder(r.out).Encode(o)
}

// callLine is a call on one line: the tool and what it is about.
func callLine(tool string, args json.RawMessage) string {
	var m map[string]any
	_ = json.Unmarshal(args, &m)
	for _, k := range []string{"path", "url", "command", "pattern", "query", "prompt", "name"} {
		if s, ok := m[k].(string); ok {
			return term.Line(tool) + " " + short(term.Line(firstLine(s)), 90)
		}
	}
	return term.Line(tool)
}

func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

func firstLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i]
	}
	return s
}

func size(r abi.Result) string {
	text := r.Text()
	n := strings.Count(text, "\n") + 1
	if len(r.Content) == 1 && r.Content[0].Type == abi.TypeText {
		return fmt.Sprintf("%d lines, %s", n, bytesText(int64(len(text))))
	}
	return fmt.Sprintf("%d blocks", len(r.Content))
}

func bytesText(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// receiptLine is a receipt on one line.
func receiptLine(r abi.Receipt) string {
	parts := []string{fmt.Sprintf("receipt %s: %s", r.Tool, r.Wall.Round(100*time.Microsecond))}
	if r.Fuel > 0 {
		parts = append(parts, fmt.Sprintf("fuel %d", r.Fuel))
	}
	parts = append(parts, bytesText(r.Memory)+" memory")
	n := 0
	for _, c := range r.HostCalls {
		n += c
	}
	parts = append(parts, fmt.Sprintf("%d host calls", n))
	for _, h := range r.Hosts {
		parts = append(parts, term.Line(h))
	}
	for _, f := range r.Files {
		parts = append(parts, term.Line(f))
	}
	if r.BytesIn > 0 {
		parts = append(parts, bytesText(r.BytesIn)+" in")
	}
	if r.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", r.Tokens))
	}
	for _, d := range r.Denied {
		parts = append(parts, "denied "+term.Line(d))
	}
	for _, l := range r.Limits {
		parts = append(parts, "limit "+term.Line(l))
	}
	return strings.Join(parts, ", ")
}

func denialLine(d denial) string {
	what := d.Tool
	if d.Cap != "" {
		what += " " + d.Cap + " " + short(d.Target, 120)
	}
	s := fmt.Sprintf("denied: %s (%s: %s)", term.Line(what), term.Line(d.Layer), term.Line(d.Why))
	if d.Where != "" {
		s += " at " + term.Line(d.Where)
	}
	if d.Allow != "" {
		s += "\n  to allow it: " + term.Line(d.Allow)
	}
	return s
}
