package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/term"
)

// turn lets the agent work on what was said, and shows it.
func (c *chat) turn(ctx context.Context, with app.Chosen, content ...abi.Content) error {
	loop, err := c.app.Loop(ctx, with, c.Limits)
	if err != nil {
		c.complain(err)
		return nil
	}
	c.notes()
	c.turns++
	defer c.app.Gate.Widen() // what a command narrowed ends with its turn
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leave := make(chan bool, 1)
	done := make(chan struct{})
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		leave <- c.interrupts(cancel, done)
	}()
	v := &view{chat: c, text: &markdown{out: c.screen, style: c.Style, width: c.screen.width}}
	c.meanwhile.turn(true)
	end := c.screen.start()
	if term.IsTerminal(c.In) {
		c.keys.Start()
	}
	for e, err := range c.app.Turn(ctx, loop, c.session, content...) {
		v.event(e, err)
	}
	c.rest = c.keys.Stop()
	v.flush()
	c.meanwhile.turn(false)
	c.tell()
	end()
	c.takeUp(v.stop == agent.StopEnd)
	close(done)
	<-watching
	if <-leave {
		return term.ErrInterrupt
	}
	return nil
}

// takeUp goes on with the lines that came too late for the turn. Where it did
// not end by itself they are for the person to look at again.
func (c *chat) takeUp(ended bool) {
	late := c.undelivered()
	if ended {
		c.next = append(c.next, late...)
		return
	}
	c.rest = strings.TrimSpace(strings.Join(append(late, c.rest), "\n"))
	if c.lines != nil && c.rest != "" { // it cannot be put into the next line
		c.screen.printf("%s\n", c.Style.Yellow("not sent: "+term.Lines(c.rest)))
		c.past.add(c.rest)
		c.rest = ""
	}
}

// interrupts ends the turn at the first interrupt and says so; true: a second
// one, or the wish of the system, ends the conversation as well.
func (c *chat) interrupts(cancel func(), done <-chan struct{}) (leave bool) {
	for n := 0; ; n++ {
		select {
		case s := <-c.signals:
			cancel()
			if n > 0 || s != os.Interrupt {
				leave = true
				continue
			}
			c.interrupted = time.Now()
			c.screen.say("ending the turn, Ctrl-C again leaves")
		case <-done:
			return leave
		}
	}
}

// view shows the events of one turn.
type view struct {
	chat *chat
	text *markdown

	running []string // calls under way
	last    string   // the call that was named last
	stop    agent.Stop
}

func (v *view) event(e agent.Event, err error) {
	s := v.chat.screen
	switch e.Kind {
	case agent.KindStep, agent.KindStart, agent.KindFinish, agent.KindDone:
		v.flush()
		v.chat.tell()
	}
	if e.From != "" {
		v.below(e)
		return
	}
	switch e.Kind {
	case agent.KindStep:
		s.say("waiting for " + term.Line(v.chat.model.Name))
	case agent.KindThinking:
		s.say("thinking")
	case agent.KindText, agent.KindRefusal:
		v.text.Write(e.Text)
	case agent.KindWriting:
		s.say("writing a call of " + term.Line(e.Call.Name))
	case agent.KindSearch:
		v.flush()
		s.printf("%s\n", v.style().Cyan("· ")+"web search "+term.Line(e.Text))
	case agent.KindStart:
		v.start(e)
	case agent.KindProgress:
		if e.Progress != nil && e.Progress.Message != "" {
			s.say(term.Line(e.Call.Name + ": " + e.Progress.Message))
		}
	case agent.KindFinish:
		v.finish(e)
	case agent.KindDenied:
		v.denied(e)
	case agent.KindPlan:
		v.flush()
		showPlan(s, e.Plan)
	case agent.KindSteer:
		v.flush()
		v.chat.delivered(e.Text)
		s.printf("%s\n", v.style().Dim("> "+term.Lines(e.Text)))
	case agent.KindRetry:
		v.retry(e)
	case agent.KindNote, agent.KindCompact:
		v.flush()
		s.printf("%s\n", v.style().Yellow(term.Lines(e.Text)))
	case agent.KindDone:
		v.done(e, err)
	}
}

func (v *view) style() term.Style { return v.chat.Style }

// flush ends the text that streams.
func (v *view) flush() {
	v.text.Close()
	v.chat.screen.line()
}

func (v *view) start(e agent.Event) {
	v.flush()
	what := CallLine(e.Call.Name, json.RawMessage(e.Call.Args))
	v.chat.screen.printf("%s%s\n", v.style().Cyan("· "), what)
	v.running, v.last = append(v.running, e.Call.ID), e.Call.ID
	v.chat.screen.say(what)
}

func (v *view) finish(e agent.Event) {
	v.flush()
	beside := ""
	for i, id := range v.running {
		if id == e.Call.ID {
			if i < len(v.running)-1 || v.last != id { // others were named since
				beside = term.Line(e.Call.Name) + ": "
			}
			v.running = slices.Delete(v.running, i, i+1)
			break
		}
	}
	if len(v.running) == 0 {
		v.chat.screen.say("waiting")
	}
	for _, r := range e.Receipts {
		v.chat.app.KeepReceipt(r)
	}
	if e.Result == nil || e.Call.Name == "Plan" && !e.Result.IsError {
		return
	}
	text := strings.TrimSpace(e.Result.Text())
	first, _, _ := strings.Cut(text, "\n")
	if e.Result.IsError {
		v.chat.screen.printf("  %s %s\n", v.style().Red("failed:"), beside+clip(term.Line(first), 200))
		return
	}
	v.chat.screen.printf("  %s\n", v.style().Dim(beside+clip(term.Line(first), 100)+more(text)))
	if at := diff(text); at >= 0 {
		showDiff(v.chat.screen, text[at:])
	}
}

// more says how much of a result is not shown.
func more(text string) string {
	if n := strings.Count(text, "\n"); n > 0 {
		return fmt.Sprintf("  (+%d lines)", n)
	}
	return ""
}

func (v *view) denied(e agent.Event) {
	v.flush()
	d := e.Denied
	text := "denied: " + term.Line(d.Call.Tool)
	if d.Use != nil {
		text += " " + term.Line(string(d.Use.Cap)+" "+strings.ReplaceAll(d.Use.Target, "\x00", " "))
	}
	text += " (" + term.Line(d.Layer) + ": " + term.Line(d.Why) + ")"
	if d.Allow != "" {
		text += "\n  to allow it: " + term.Line(d.Allow)
	}
	v.chat.screen.printf("%s\n", v.style().Yellow(v.chat.screen.told("  "+text)))
}

func (v *view) retry(e agent.Event) {
	v.flush()
	v.chat.screen.printf("%s\n", v.style().Yellow("  "+RetryLine(e.Retry)))
}

// RetryLine says on one safe line why a request is sent again, and when.
func RetryLine(r *model.Again) string {
	text := "the model did not answer; trying again"
	if r == nil {
		return text
	}
	if r.Err != nil {
		text = term.Line(r.Err.Error()) + "; trying again"
	}
	if r.After >= time.Second {
		text += " in " + r.After.Round(time.Second).String()
	}
	return text
}

// below shows of a sub-agent what its parent's watcher wants to know.
func (v *view) below(e agent.Event) {
	name := v.chat.helperName(e.From)
	if e.Run != nil {
		name = first(e.Run.Name, e.Run.Agent, "agent")
	}
	name = term.Line(name)
	switch e.Kind {
	case agent.KindStart:
		v.flush()
		v.chat.screen.printf("  %s %s\n", v.style().Dim("["+name+"]"), CallLine(e.Call.Name, json.RawMessage(e.Call.Args)))
	case agent.KindAgent:
		v.flush()
		if e.Run != nil {
			v.chat.screen.printf("  %s %s\n", v.style().Dim("["+name+"]"), term.Line(string(e.Run.Status)))
		}
	case agent.KindDenied:
		v.denied(e)
	}
}

func (v *view) done(e agent.Event, err error) {
	v.flush()
	v.stop = e.Stop
	s := v.chat.screen
	say := func(text string) { s.printf("%s\n", v.style().Yellow(s.told(text))) }
	switch {
	case err != nil:
		v.chat.complain(err)
	case e.Stop == agent.StopYield:
		s.printf("%s\n", term.Lines(e.Text))
	case e.Stop != agent.StopEnd:
		say(e.Stop.Words() + inChat[e.Stop])
	}
}

// inChat is what can be done about an end here, behind its words.
var inChat = map[agent.Stop]string{
	agent.StopSteps:  `; say "go on" for more`,
	agent.StopRepeat: "; other words may help, or another model: /model",
	agent.StopLength: `; ask for less at once, or say "go on"`,
}

// showPlan prints a plan as a list with words beside its colours.
func showPlan(s *screen, plan []agent.PlanEntry) {
	if len(plan) == 0 {
		s.printf("  %s\n", s.style.Dim("the plan is empty"))
	}
	for _, e := range plan {
		text := term.Line(e.Content)
		if e.Priority == "high" {
			text += " (high)"
		}
		switch e.Status {
		case "completed":
			s.printf("  %s %s\n", s.style.Green("[x]"), s.style.Dim(text))
		case "in_progress":
			s.printf("  %s %s\n", s.style.Yellow("[~]"), s.style.Bold(text))
		default:
			s.printf("  [ ] %s\n", text)
		}
	}
}

// CallLine is a call on one safe line: the tool and what it is about.
func CallLine(tool string, args json.RawMessage) string {
	var m map[string]any
	_ = json.Unmarshal(args, &m)
	for _, k := range []string{"path", "url", "command", "pattern", "query", "prompt", "name", "title"} {
		if s, ok := m[k].(string); ok {
			first, rest, _ := strings.Cut(strings.TrimSpace(s), "\n")
			if rest != "" {
				first += " …"
			}
			return term.Line(tool) + " " + clip(term.Line(first), 90)
		}
	}
	return term.Line(tool)
}

func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}
