package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/schema"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

type runFlags struct {
	sessionFlags
	model, effort, format, schema string
	maxSteps                      int
	maxCost                       float64
	receipts                      bool
	kept                          app.Kept
	images                        []string
}

func runVerb(s streams) *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run PROMPT...", Short: "Ask the agent about this folder",
		Long: `Ask the agent. The answer alone goes to standard output; what happens on the
way goes to standard error. Standard input, if it is not a terminal, is given
to the agent as extra context. A file that the prompt names as @FILE, or
@FILE#10-20 for some of its lines, goes along, read as the Read tool reads.

Exit status: 0 done, 1 failed, 2 wrong usage or configuration, 3 a needed right
was denied, 4 step limit or budget, 75 try again later, 130 interrupted.`,
		Example: `  elfhost run "why does the build fail?"
  git diff | elfhost run "review this change" --mode plan
  elfhost run "what is wrong on this page?" --image shot.png
  elfhost run "tidy the imports" --mode acceptEdits --output-format json`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, strings.Join(args, " ")) },
	}
	f.flags(c)
	return c
}

func (f *runFlags) flags(c *cobra.Command) {
	f.register(c)
	fl := c.Flags()
	fl.StringVarP(&f.model, "model", "m", "", "provider/name of the model, or a provider's name")
	fl.StringVar(&f.effort, "effort", "", "how much the model thinks: none, low, medium, high, or default for its own")
	fl.StringVar(&f.format, "output-format", "text", "text, json (one object) or stream-json (a line an event; see elfhost schema events)")
	fl.StringArrayVar(&f.images, "image", nil, "show the model this picture (PNG, JPEG, GIF, WebP); may be given several times")
	fl.StringVar(&f.schema, "json-schema", "", "the final answer must fit the JSON Schema in this file")
	fl.IntVar(&f.maxSteps, "max-steps", 0, "requests to the model at the most")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "US dollars at the most; the model's price must be known")
	fl.BoolVarP(&f.kept.Continue, "continue", "c", false, "go on with the last session of this folder")
	fl.StringVarP(&f.kept.Resume, "resume", "r", "", "go on with this session; the beginning of its name will do")
	fl.BoolVar(&f.kept.Fork, "fork", false, "with -c or -r: go on with a copy, and leave the session as it is")
	fl.BoolVar(&f.kept.Not, "no-session", false, "write nothing of this session down")
	fl.BoolVar(&f.receipts, "receipts", false, "show the receipts of sandboxed calls")
}

// effortOf reads --effort; nil: it was not given.
func effortOf(word string) (*model.Effort, error) {
	if word == "" {
		return nil, nil
	}
	e, err := model.ParseEffort(word)
	if err != nil {
		return nil, fault.New("E1001", "", "--effort: %w", err)
	}
	return &e, nil
}

// checkLimits checks what flags say about them. What is no number would be
// no limit.
func checkLimits(steps int, cost float64) error {
	if steps < 0 || cost < 0 || math.IsNaN(cost) {
		return fault.New("E1001", "leave it out for the configured value", "--max-steps and --max-cost are numbers that are not negative")
	}
	return nil
}

func (f *runFlags) run(ctx context.Context, s streams, prompt string) error {
	r, err := f.renderer(s)
	if err != nil {
		return err
	}
	if err := checkKept(f.kept); err != nil {
		return err
	}
	if err := checkLimits(f.maxSteps, f.maxCost); err != nil {
		return err
	}
	effort, err := effortOf(f.effort)
	if err != nil {
		return err
	}
	content, err := promptOf(s, prompt, f.kept.Continue || f.kept.Resume != "" || len(f.images) > 0)
	if err != nil {
		return err
	}
	shape, err := readSchema(f.schema)
	if err != nil {
		return err
	}
	var w watch
	a, err := f.session(ctx, s, app.Options{Model: f.model, Effort: effort, Kept: f.kept})
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	a.MCP.Start() // beside the first turn, which does not wait for them
	chosen, err := a.Model(ctx, f.model)
	if err != nil {
		return err
	}
	conversation, err := a.Conversation(ctx, chosen.Name)
	if err != nil {
		return err
	}
	files, err := f.attach(ctx, s, a, chosen, conversation, prompt)
	if err != nil {
		return err
	}
	content = append(content, files...)
	o, err := f.loop(ctx, a, chosen, shape, conversation, content, r, &w)
	for try := 1; err == nil && o.Stop == agent.StopEnd; try++ {
		misfit := fits(shape, o.Text)
		if misfit == nil {
			break
		}
		if try == fitTries {
			err = fault.New("E1104", "a simpler schema, or another model, may help", "the answer does not fit --json-schema after %d tries: %w", try, misfit)
			break
		}
		again := fmt.Sprintf("Your answer does not fit the JSON Schema that it must follow: %v\nAnswer again, with the JSON alone.", misfit)
		told := o.Notes
		o, err = f.loop(ctx, a, chosen, shape, conversation, []abi.Content{abi.TextBlock(again)}, r, &w)
		o.Notes = append(told, o.Notes...)
	}
	if perr := r.done(o); perr != nil {
		return perr
	}
	return f.verdict(o, err, &w)
}

// attach reads the files that --image and the prompt's @ name.
func (f *runFlags) attach(ctx context.Context, s streams, a *app.App, m app.Chosen, c *agent.Session, prompt string) ([]abi.Content, error) {
	out, notes := a.Mentioned(ctx, m, c, prompt)
	for _, n := range notes {
		fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Lines(n))
	}
	for _, name := range f.images {
		if abs, err := filepath.Abs(name); f.dir != "" && err == nil { // a shell completes names from where it is
			name = abs
		}
		c, err := a.Image(ctx, m, name)
		if err != nil {
			return nil, err
		}
		out = append(out, c...)
	}
	return out, nil
}

// loop runs the agent to its end.
func (f *runFlags) loop(ctx context.Context, a *app.App, m app.Chosen, shape json.RawMessage, conversation *agent.Session, content []abi.Content, r renderer, w *watch) (outcome, error) {
	o := outcome{V: eventVersion, Type: "result", Session: a.Session, Model: m.Name, Denials: []denial{}}
	l, err := a.Loop(ctx, m, agent.Limits{Steps: f.maxSteps, Cost: f.maxCost})
	if err != nil {
		return o, err
	}
	o.Notes = a.TakeNotes()
	for _, n := range o.Notes {
		r.event(agent.Event{Kind: agent.KindNote, Text: n})
	}
	l.Schema = shape
	var step strings.Builder
	var failed error
	for e, err := range a.Work(ctx, l, conversation, content...) {
		r.event(e)
		if e.From != "" { // a sub-agent's: its words are not the answer
			continue
		}
		switch e.Kind {
		case agent.KindStep, agent.KindRetry, agent.KindStart:
			step.Reset()
		case agent.KindText, agent.KindRefusal:
			step.WriteString(e.Text)
		case agent.KindDenied:
			w.add(*e.Denied)
		case agent.KindFinish:
			o.Receipts = append(o.Receipts, e.Receipts...)
			for _, rc := range e.Receipts {
				a.KeepReceipt(rc)
			}
		case agent.KindUsage:
			o.Usage = e.Usage
		case agent.KindDone:
			o.Stop, o.Text = e.Stop, step.String()
			if e.Stop == agent.StopYield && e.Text != "" {
				o.Text = e.Text
			}
			failed = err
		}
	}
	o.Denials = w.denials()
	if failed != nil {
		o.Error = failed.Error()
	}
	return o, failed
}

// verdict turns how the run ended into an error with the right exit status.
func (f *runFlags) verdict(o outcome, err error, w *watch) error {
	hint := ""
	switch o.Stop {
	case agent.StopCancelled:
		return fault.New("E1504", "", "%s", o.Stop.Words())
	case agent.StopSteps:
		return fault.New("E1401", "--max-steps allows more", "%s", o.Stop.Words())
	case agent.StopCost, agent.StopTokens:
		return fault.New("E1402", "--max-cost allows more", "%s", o.Stop.Words())
	case agent.StopRepeat:
		hint = "what it did is kept: `elfhost run -c` with other words goes on, or choose another model"
	case agent.StopLength:
		hint = "ask for less at once, or let it go on with `elfhost run -c`"
	}
	switch {
	case err != nil:
		return err
	case o.Stop != agent.StopEnd && o.Stop != agent.StopYield:
		return fault.New("E1103", hint, "%s", o.Stop.Words())
	}
	if err := w.blocked(); err != nil {
		return err
	}
	return nil
}

func (f *runFlags) renderer(s streams) (renderer, error) {
	switch f.format {
	case "text":
		return &textRenderer{out: s.out, err: s.err, style: term.StyleOf(s.err, os.Getenv), receipts: f.receipts, tty: term.IsTerminal(fileOf(s.out))}, nil
	case "json", "stream-json":
		return &jsonRenderer{out: s.out, stream: f.format == "stream-json"}, nil
	}
	return nil, fault.New("E1001", "", "--output-format is text, json or stream-json, not %q", f.format)
}

// fitTries bounds how often a model may answer until its answer fits.
const fitTries = 3

// fits checks a final answer against --json-schema; without one all fits.
func fits(raw json.RawMessage, text string) error {
	if raw == nil {
		return nil
	}
	sc, err := schema.Compile(raw)
	if err != nil {
		return fmt.Errorf("the schema itself: %w", err)
	}
	return sc.Validate(json.RawMessage(strings.TrimSpace(text)))
}

// checkKept refuses flags that contradict each other.
func checkKept(k app.Kept) error {
	earlier := k.Continue || k.Resume != ""
	switch {
	case k.Continue && k.Resume != "":
		return fault.New("E1001", "", "--continue and --resume are two ways to name one session: give one of them")
	case k.Fork && !earlier:
		return fault.New("E1001", "", "--fork needs --continue or --resume: it copies a session")
	case k.Not && earlier:
		return fault.New("E1001", "", "--no-session writes nothing down, and cannot go on with a session")
	}
	return nil
}

// promptOf joins the words of the command line and what comes on standard
// input. Only a session that goes on needs neither.
func promptOf(s streams, prompt string, goesOn bool) ([]abi.Content, error) {
	var out []abi.Content
	if s.in != nil && !term.IsTerminal(s.in) {
		b, err := io.ReadAll(io.LimitReader(s.in, maxStdin+1))
		switch {
		case err != nil:
			return nil, fault.New("E1001", "", "reading standard input: %w", err)
		case len(b) > maxStdin:
			return nil, fault.New("E1001", "put it into a file and name the file", "standard input is over %d bytes", maxStdin)
		case strings.TrimSpace(string(b)) != "":
			out = append(out, abi.TextBlock(fmt.Sprintf("From standard input:\n%s", b)))
		}
	}
	if strings.TrimSpace(prompt) != "" {
		out = append(out, abi.TextBlock(prompt))
	}
	if len(out) == 0 && !goesOn {
		return nil, fault.New("E1001", `for example: elfhost run "why does the test fail?"`, "there is no prompt")
	}
	return out, nil
}

func readSchema(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.New("E1001", "", "--json-schema: %w", err)
	}
	if _, err := schema.Compile(b); err != nil {
		return nil, fault.New("E1001", "", "--json-schema: %q: %w", path, err)
	}
	return b, nil
}
