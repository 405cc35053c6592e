// Package chat is `elfhost chat`: a conversation at a terminal, line by line.
// Nothing that was printed is ever changed; only the status line below it
// moves. Where a terminal wants no escape sequences, or is none, the same
// conversation is plain text.
package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// Options say where the conversation takes place.
type Options struct {
	In    *os.File // a terminal, or lines of text
	Out   io.Writer
	Style term.Style
	// Open opens a session; approver is nil where nobody can be asked. It is
	// called again for each further session.
	Open   func(ctx context.Context, kept app.Kept, mode host.Mode, approver host.Approver) (*app.App, error)
	Kept   app.Kept // which session to begin with
	Model  string
	Limits agent.Limits
}

// chat is a conversation that goes on.
type chat struct {
	Options
	screen  *screen
	lines   *term.LineReader // where In is no terminal, or must not be sent escapes
	past    *history
	signals chan os.Signal

	app     *app.App
	model   app.Chosen
	effort  *model.Effort // that the person chose; carried into further sessions
	session *agent.Session
	kept    app.Kept
	mode    host.Mode // that the person chose; carried into further sessions
	turns   int

	interrupted time.Time // when a turn was ended last

	desk      desk
	asking    sync.Mutex   // held for each question: one stands at a time
	prompt    *term.Prompt // one for all questions; nil: nobody can be asked
	keys      *term.Typeahead
	meanwhile meanwhile
	rest      string   // what was written and not sent: the next line begins with it
	next      []string // what was sent during a turn, and comes after it
}

// errLeave ends the conversation.
var errLeave = errors.New("leave")

// Run talks until the person leaves. Interrupts are its own matter: one ends
// the turn that runs, a second one the conversation.
func Run(ctx context.Context, o Options) error {
	c := &chat{Options: o, screen: &screen{out: o.Out, style: o.Style}, kept: o.Kept, signals: make(chan os.Signal, 4)}
	signal.Notify(c.signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(c.signals)
	if !term.IsTerminal(o.In) || !o.Style.Moves {
		c.lines = &term.LineReader{In: o.In}
	}
	if term.IsTerminal(o.In) {
		c.prompt = &term.Prompt{In: o.In, Out: o.Out, Style: o.Style}
	}
	c.keys = c.typeahead()
	// The caller's context ends at the first interrupt, which here ends a turn only.
	ctx = context.WithoutCancel(ctx)
	if err := c.open(ctx); err != nil {
		return err
	}
	defer func() { c.close(ctx) }()
	c.past = openHistory(filepath.Join(c.app.Paths.State, "history"))
	c.welcome()
	for {
		text, err := c.following(ctx)
		if err == nil && strings.TrimSpace(text) != "" {
			err = c.input(ctx, text)
		}
		switch {
		case errors.Is(err, errLeave), errors.Is(err, io.EOF):
			c.farewell()
			return nil
		case errors.Is(err, term.ErrInterrupt):
			c.farewell()
			return fault.New("E1504", "", "interrupted")
		case err != nil:
			return err
		}
	}
}

// open begins, or goes on with, the session that c.kept names.
func (c *chat) open(ctx context.Context) error {
	a, err := c.Open(ctx, c.kept, c.mode, c.approver())
	if err != nil {
		return err
	}
	chosen, err := c.choose(ctx, a, c.Model)
	if err != nil {
		return errors.Join(err, a.Close(ctx))
	}
	session, err := a.Conversation(ctx, chosen.Name)
	if err != nil {
		return errors.Join(err, a.Close(ctx))
	}
	if a.Runs != nil {
		a.Runs.Watch = c.watch
	}
	c.app, c.model, c.session = a, chosen, session
	return nil
}

// choose finds a model, which thinks as much as the person has said.
func (c *chat) choose(ctx context.Context, a *app.App, name string) (app.Chosen, error) {
	m, err := a.Model(ctx, name)
	if err == nil && c.effort != nil {
		m.Effort = *c.effort
	}
	return m, err
}

func (c *chat) close(ctx context.Context) {
	if c.app != nil {
		if err := c.app.Close(ctx); err != nil {
			c.complain(err)
		}
	}
}

func (c *chat) approver() host.Approver {
	if c.prompt == nil {
		return nil
	}
	return asker{c}
}

// asker puts questions between the lines of the conversation. Ctrl-C at a
// question is a no, and ends the turn.
type asker struct{ chat *chat }

func (a asker) Approve(ctx context.Context, q host.Ask) (host.Answer, error) {
	a.chat.asking.Lock()
	defer a.chat.asking.Unlock()
	defer a.chat.desk.question()()
	defer a.chat.keys.Pause()()
	a.chat.screen.hold(true)
	defer a.chat.screen.hold(false)
	answer, err := a.chat.prompt.Approve(ctx, q)
	if errors.Is(err, term.ErrInterrupt) {
		select {
		case a.chat.signals <- os.Interrupt:
		default:
		}
	}
	return answer, err
}

func (c *chat) welcome() {
	s := c.Style
	c.screen.printf("%s  %s\n", s.Bold("elfhost chat"), s.Dim("/help lists commands, Ctrl-C ends a turn, Ctrl-D leaves"))
	c.where()
	c.notes()
	if n := len(c.session.Messages()); n > 0 {
		c.screen.printf("%s\n", s.Dim(fmt.Sprintf("going on with %s, %d messages so far", c.session.ID, n)))
		c.lastWords()
	}
}

// where says who answers, how much is asked, and in which folder.
func (c *chat) where() {
	effort := ""
	if c.model.Effort != model.EffortDefault {
		effort = ", effort " + string(c.model.Effort)
	}
	c.screen.printf("%s\n", c.Style.Dim(fmt.Sprintf("model %s%s, mode %s, in %s", term.Line(c.model.Name), effort, c.app.Gate.Current(), term.Line(c.app.Dir))))
}

// lastWords repeats where an earlier session stopped.
func (c *chat) lastWords() {
	messages := c.session.Messages()
	for i := len(messages) - 1; i >= 0; i-- {
		if text := strings.TrimSpace(messages[i].Text()); text != "" && messages[i].Role == "assistant" {
			m := &markdown{out: c.screen, style: c.Style, width: c.screen.width}
			m.Write(text)
			m.Close()
			return
		}
	}
}

func (c *chat) notes() {
	for _, n := range c.app.TakeNotes() {
		c.screen.printf("%s\n", c.Style.Yellow(c.screen.told("note: "+term.Lines(n))))
	}
}

func (c *chat) farewell() {
	c.notes()
	if c.turns > 0 && !c.kept.Not {
		c.screen.printf("%s\n", c.Style.Dim("to go on: elfhost chat -r "+c.session.ID))
	}
}

func (c *chat) complain(err error) {
	c.screen.line()
	var f *fault.Error
	text := "error: " + term.Lines(strings.TrimSpace(err.Error()))
	if errors.As(err, &f) {
		text += " [" + f.Code + "]"
		if f.Hint != "" {
			text += "\nhint: " + term.Lines(f.Hint)
		}
	}
	c.screen.printf("%s\n", c.Style.Red(c.screen.told(text)))
}

// again is how soon after the end of a turn a second Ctrl-C is meant for the
// conversation: it was typed while the turn ended.
const again = 2 * time.Second

// following is what the person says next: what was sent during the last turn,
// else what is written now.
func (c *chat) following(ctx context.Context) (string, error) {
	if len(c.next) == 0 {
		text, err := c.ask(ctx)
		if err == nil {
			c.past.add(text)
		}
		return text, err
	}
	text := c.next[0]
	c.next = c.next[1:]
	c.screen.printf("%s%s\n", c.Style.Cyan("> "), term.Lines(text))
	return text, nil
}

// ask reads what the person says next. Ctrl-C clears what was written; on an
// empty line it warns once, then leaves.
func (c *chat) ask(ctx context.Context) (string, error) {
	c.screen.line()
	for warned := time.Since(c.interrupted) < again; ; {
		c.tell()
		text, err := c.write(ctx)
		if errors.Is(err, errAside) {
			c.rest = text
			continue
		}
		if !errors.Is(err, term.ErrInterrupt) || !term.IsTerminal(c.In) {
			return text, err
		}
		if strings.TrimSpace(text) == "" {
			if warned {
				return "", err
			}
			c.screen.printf("%s\n", c.Style.Dim("Ctrl-C again leaves"))
			warned = true
			continue
		}
		c.past.add(text) // not lost: one key up brings it back
		warned = false
	}
}

// write reads one text, with the means that the terminal has.
func (c *chat) write(ctx context.Context) (string, error) {
	if c.lines != nil {
		return c.plainText(ctx)
	}
	e := &term.Editor{In: c.In, Out: c.Out, Style: c.Style, Prompt: "> ", History: c.past.all, Text: c.rest, Complete: c.complete}
	c.rest = ""
	return c.desk.write(ctx, e.Read)
}

// plainText reads a text without any escape sequence; a backslash at the end of
// a line goes on with the next one.
func (c *chat) plainText(ctx context.Context) (string, error) {
	tty, mark := term.IsTerminal(c.In), "> "
	all := c.rest // of lines that went on, when a question came between
	c.rest = ""
	for {
		if all != "" {
			mark = "  "
		}
		if tty {
			c.screen.printf("%s", mark)
		}
		line, err := c.desk.write(ctx, c.plainLine)
		c.screen.mu.Lock()
		c.screen.middle = tty && err != nil // Enter has ended the line otherwise
		c.screen.mu.Unlock()
		c.screen.line()
		switch {
		case errors.Is(err, io.EOF) && all != "":
			return all, nil
		case err != nil:
			return all, err
		}
		rest, more := strings.CutSuffix(line, "\\")
		if !more {
			return all + line, nil
		}
		all += rest + "\n"
	}
}

// plainLine reads a line, and ends at an interrupt. Where it comes through a
// pipe its reading may outlast that: the conversation then ends.
func (c *chat) plainLine(ctx context.Context) (string, error) {
	type read struct {
		text string
		err  error
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	got := make(chan read, 1)
	go func() {
		text, err := c.lines.Read(ctx)
		got <- read{text, err}
	}()
	select {
	case r := <-got:
		return r.text, r.err
	case <-c.signals:
	}
	cancel(term.ErrInterrupt)
	if term.IsTerminal(c.In) {
		<-got
	}
	return "", term.ErrInterrupt
}

// input carries out what was said: a command, or a turn of the agent.
func (c *chat) input(ctx context.Context, text string) error {
	if isCommand(text) {
		name, args, _ := strings.Cut(text[1:], " ")
		if name, rest, ok := strings.Cut(name, "\n"); ok {
			return c.command(ctx, name, rest+" "+args)
		}
		return c.command(ctx, name, strings.TrimSpace(args))
	}
	return c.say(ctx, strings.TrimSpace(text))
}

// say is a turn on what the person said, with the files that they name.
func (c *chat) say(ctx context.Context, text string) error {
	var content []abi.Content
	stopped := false
	if err := c.busy(ctx, "reading", func(ctx context.Context) {
		content = c.bring(ctx, text)
		stopped = ctx.Err() != nil
	}); err != nil {
		return err
	}
	if stopped { // not sent: for the person to look at again
		c.rest = text
		c.takeUp(false)
		return nil
	}
	return c.turn(ctx, c.model, content...)
}

// bring is what the person said with what it brings along. They see what was
// not read, and which pictures are sent.
func (c *chat) bring(ctx context.Context, text string) []abi.Content {
	files, notes := c.app.Mentioned(ctx, c.model, c.session, text)
	for _, n := range notes {
		c.screen.printf("%s\n", c.Style.Yellow(c.screen.told("note: "+term.Line(n))))
	}
	for _, f := range files {
		if f.Type == abi.TypeImage {
			c.screen.printf("%s\n", c.Style.Dim(fmt.Sprintf("with a picture, %s, %d kB", term.Line(f.MIMEType), (len(f.Data)+999)/1000)))
		}
	}
	return append([]abi.Content{abi.TextBlock(text)}, files...)
}
