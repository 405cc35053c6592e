package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/term"
)

// verb is a command of the conversation itself.
type verb struct {
	name, args, does string
	run              func(c *chat, ctx context.Context, args string) error
}

// verbs in the order of /help. Commands from files come after them: none can
// take one of these names.
func verbs() []verb {
	return []verb{
		{"help", "", "this list", (*chat).help},
		{"mode", "[plan|ask|acceptEdits|auto]", "show or change how much is asked", (*chat).setMode},
		{"model", "[PROVIDER/NAME]", "show the models, or let another one answer", (*chat).setModel},
		{"effort", "[none|low|medium|high|default]", "show or change how much the model thinks", (*chat).setEffort},
		{"tools", "", "the tools of this session", (*chat).tools},
		{"skills", "", "the skills that are at hand", (*chat).skills},
		{"plan", "", "the plan of this session", (*chat).plan},
		{"sessions", "[ID]", "earlier sessions here, or go on with one", (*chat).sessions},
		{"compact", "", "shorten the conversation now", (*chat).compact},
		{"clear", "", "begin a new session; the old one is kept", (*chat).clear},
		{"cost", "", "tokens and dollars so far", (*chat).cost},
		{"exit", "", "leave (Ctrl-D)", func(*chat, context.Context, string) error { return errLeave }},
	}
}

func (c *chat) command(ctx context.Context, name, args string) error {
	if name == "quit" {
		name = "exit"
	}
	for _, v := range verbs() {
		if v.name == name {
			return v.run(c, ctx, args)
		}
	}
	x, err := c.expand(ctx, name, args)
	switch {
	case errors.Is(err, control.ErrNoCommand):
		c.complain(fmt.Errorf("/%s: %w; /help lists the commands", name, err))
		return nil
	case errors.Is(err, term.ErrInterrupt):
		return err
	case err != nil:
		c.complain(err)
		return nil
	}
	with := c.model
	if m := x.Command.Model; m != "" {
		if with, err = c.choose(ctx, c.app, m); err != nil {
			c.screen.printf("%s\n", c.Style.Yellow("the command asks for the model "+term.Line(m)+", which is not to be had: "+term.Line(err.Error())))
			with = c.model
		}
	}
	for _, n := range x.Notes {
		c.screen.printf("%s\n", c.Style.Yellow(term.Line(n)))
	}
	return c.turn(ctx, with, abi.TextBlock(x.Text))
}

// expand fills in a command from a file; its shell lines can be interrupted.
func (c *chat) expand(ctx context.Context, name, args string) (control.Expansion, error) {
	var x control.Expansion
	var err error
	if ierr := c.busy(ctx, "/"+term.Line(name), func(ctx context.Context) {
		x, err = c.app.Command(ctx, fmt.Sprintf("command-%d", c.turns+1), name, args)
	}); ierr != nil {
		return x, ierr
	}
	return x, err
}

// busy does something before, or outside of, a turn that can be interrupted
// and may ask; says is what the status line tells meanwhile.
func (c *chat) busy(ctx context.Context, says string, do func(ctx context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done, ended := make(chan struct{}), make(chan bool, 1)
	go func() { ended <- c.interrupts(cancel, done) }()
	end := c.screen.start()
	c.screen.say(says)
	do(ctx)
	end()
	close(done)
	if <-ended {
		return term.ErrInterrupt
	}
	return nil
}

// row prints a line of a list: what it is about, and as much of what it says as
// fits beside it.
func (c *chat) row(about, says string) {
	width := c.screen.width()
	if width < 40 {
		width = 100
	}
	c.screen.printf("  %s %s\n", about, c.Style.Dim(ansi.Truncate(term.Line(says), max(20, width-4-ansi.StringWidth(about)), "…")))
}

func (c *chat) help(ctx context.Context, _ string) error {
	row := func(name, does string) { c.row(fmt.Sprintf("%-38s", name), does) }
	for _, v := range verbs() {
		row(strings.TrimSpace("/"+v.name+" "+v.args), v.does)
	}
	for _, cmd := range c.app.Commands.List(ctx, c.app.Rights()) {
		row(term.Line(strings.TrimSpace("/"+cmd.Name+" "+cmd.Hint)), "("+cmd.Source+") "+cmd.Description)
	}
	for _, line := range []string{
		"Enter sends; Alt-Enter, Ctrl-J or a backslash before Enter begins a new line.",
		"@FILE brings a file or a picture along, @FILE#10-20 some of its lines; so does a",
		"picture that is dropped on the terminal.",
		"Tab completes commands and files, Ctrl-R looks through what was said before.",
		"What you send while the agent works it reads after its step; a command waits",
		"for the end. Ctrl-C ends a turn, twice leaves.",
	} {
		c.screen.printf("%s\n", c.Style.Dim(c.screen.told(line)))
	}
	return nil
}

func (c *chat) setMode(_ context.Context, args string) error {
	if args != "" {
		if err := c.app.Gate.Switch(host.Mode(args)); err != nil {
			c.complain(err)
			return nil
		}
		c.mode = host.Mode(args)
	}
	c.screen.printf("mode %s\n", c.app.Gate.Current())
	return nil
}

func (c *chat) setModel(ctx context.Context, args string) error {
	if args != "" {
		m, err := c.choose(ctx, c.app, args)
		if err != nil {
			c.complain(err)
			return nil
		}
		c.model, c.Model = m, m.Name
		c.screen.printf("model %s\n", term.Line(m.Name))
		return nil
	}
	c.screen.printf("model %s\n", term.Line(c.model.Name))
	rows, err := c.app.Models(ctx, "")
	if err != nil {
		c.complain(err)
		return nil
	}
	for _, r := range rows {
		for i, m := range r.Models {
			if i == 20 {
				c.screen.printf("  %s\n", c.Style.Dim(fmt.Sprintf("and %d more of %s", len(r.Models)-i, term.Line(r.Provider))))
				break
			}
			c.screen.printf("  %s\n", term.Line(m.Name))
		}
	}
	return nil
}

func (c *chat) setEffort(_ context.Context, args string) error {
	if args != "" {
		e, err := model.ParseEffort(args)
		if err != nil {
			c.complain(err)
			return nil
		}
		c.effort, c.model.Effort = &e, e
	}
	word := string(c.model.Effort)
	if word == "" {
		word = "default: as the model has it"
	}
	c.screen.printf("effort %s\n", word)
	return nil
}

func (c *chat) tools(context.Context, string) error {
	gate := c.app.Registry.Gate()
	for _, t := range c.app.Registry.All() {
		s := t.Spec()
		asks := "asks"
		if mode := gate.Current(); s.Safe() || mode == host.ModeAuto || mode == host.ModeAcceptEdits && s.Kind == host.KindEdit {
			asks = "free"
		}
		if !gate.Offers(s) {
			asks = "off"
		}
		first, _, _ := strings.Cut(s.Description, "\n")
		c.row(fmt.Sprintf("%-26s %-5s", term.Line(s.Name), asks), first)
	}
	return nil
}

func (c *chat) skills(ctx context.Context, _ string) error {
	all, err := c.app.Skills().All(ctx, c.app.Rights())
	if err != nil {
		c.complain(err)
		return nil
	}
	if len(all) == 0 {
		c.screen.printf("%s\n", c.Style.Dim("there are no skills; .elfhost/skills is where this folder's go"))
	}
	for _, s := range all {
		c.row(fmt.Sprintf("%-28s", term.Line(s.Name)), s.Description)
	}
	return nil
}

func (c *chat) plan(context.Context, string) error {
	var list []agent.PlanEntry
	for _, e := range c.app.Plans.Of(c.session.ID) {
		list = append(list, agent.PlanEntry(e))
	}
	showPlan(c.screen, list)
	return nil
}

func (c *chat) sessions(ctx context.Context, args string) error {
	if args != "" {
		return c.change(ctx, app.Kept{Resume: args})
	}
	all, err := c.app.Sessions.List(ctx, archive.Query{Origin: c.app.SessionOrigin(), Top: true, Limit: 20})
	if err != nil {
		c.complain(err)
		return nil
	}
	if len(all) == 0 {
		c.screen.printf("%s\n", c.Style.Dim("there are no sessions of this folder yet"))
	}
	for _, s := range all {
		mark := " "
		if s.ID == c.session.ID {
			mark = "*"
		}
		c.screen.printf("%s %s  %s  %s\n", mark, s.ID, s.Updated.Local().Format("2006-01-02 15:04"), term.Line(clip(s.Title, 60)))
	}
	return nil
}

func (c *chat) compact(ctx context.Context, _ string) error {
	loop, err := c.app.Loop(ctx, c.model, c.Limits)
	if err != nil {
		c.complain(err)
		return nil
	}
	before := len(c.session.Messages())
	if ierr := c.busy(ctx, "shortening the conversation", func(ctx context.Context) { err = loop.Shorten(ctx, c.session) }); ierr != nil {
		return ierr
	}
	if err != nil {
		c.complain(err)
	} else {
		c.screen.printf("%d messages became %d\n", before, len(c.session.Messages()))
	}
	return nil
}

func (c *chat) clear(ctx context.Context, _ string) error {
	return c.change(ctx, app.Kept{Not: c.kept.Not})
}

// change goes over to another session. When it cannot be opened, the one that
// is open stays.
func (c *chat) change(ctx context.Context, to app.Kept) error {
	was, old := c.kept, c.app
	c.kept = to
	if err := c.open(ctx); err != nil { // it has changed nothing else
		c.kept = was
		c.complain(err)
		return nil
	}
	if err := old.Close(ctx); err != nil {
		c.complain(err)
	}
	c.turns = 0
	c.where()
	c.notes()
	if n := len(c.session.Messages()); n > 0 {
		c.screen.printf("%s\n", c.Style.Dim(fmt.Sprintf("going on with %s, %d messages so far", c.session.ID, n)))
		c.lastWords()
	} else {
		c.screen.printf("%s\n", c.Style.Dim("a new session, "+c.session.ID))
	}
	return nil
}

func (c *chat) cost(context.Context, string) error {
	u := c.session.Usage()
	c.screen.printf("%d requests, %d tokens in (%d from the cache), %d out\n", u.Steps, u.Input+u.CacheRead+u.CacheWrite, u.CacheRead, u.Output)
	if w := c.app.Window(c.model); w > 0 {
		c.screen.printf("%d of %d tokens of context in use\n", u.Context, w)
	}
	name := term.Line(c.model.Name)
	switch {
	case c.model.Price == nil && u.Cost == 0:
		c.screen.printf("the price of %s is not known; [prices.%q] in config.toml can name it\n", name, c.model.Name)
	case c.model.Price == nil:
		c.screen.printf("$%.4f, without what %s used: its price is not known\n", u.Cost, name)
	case c.model.Priced == "":
		c.screen.printf("$%.4f; %s costs nothing that we know of\n", u.Cost, name)
	default:
		c.screen.printf("$%.4f, %s at the prices of %s\n", u.Cost, name, c.model.Priced)
	}
	return nil
}
