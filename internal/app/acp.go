package app

import (
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/host/acp"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/archive"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

// Editor is the agent for an editor that speaks the Agent Client Protocol.
type Editor struct {
	// Session is how each session starts; folder, name and person are the
	// client's to say. The dialect is acp where it names none.
	Session Options
	NoInput bool // a question is a denial
	Limits  agent.Limits
}

// Serve speaks with one editor, see acp.Serve.
func (e Editor) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	if e.Session.Dialect == "" {
		e.Session.Dialect = "acp"
	}
	return acp.Serve(ctx, in, out, acp.Options{
		Version: version(), Open: e.open, List: e.list, Show: showACP, Escape: escapeText, Log: e.Session.Log,
	})
}

// seat is one session in an editor.
type seat struct {
	app          *App
	limits       agent.Limits
	conversation *agent.Session
	began        sync.Once
	turns        int

	mu    sync.Mutex
	model Chosen
}

func (e Editor) open(ctx context.Context, s acp.Setup) (*acp.Session, error) {
	o := e.Session
	o.Dir, o.Kept, o.Client, o.Servers = s.Dir, Kept{Resume: s.Resume}, s.Client, s.Servers
	if o.Approver = s.Client; e.NoInput {
		o.Approver = nil
	}
	a, err := Open(ctx, o)
	if err != nil {
		return nil, toldACP(err)
	}
	t := &seat{app: a, limits: e.Limits}
	if err := t.sit(ctx, s.Resume); err != nil {
		return nil, toldACP(errors.Join(err, a.Close(context.WithoutCancel(ctx))))
	}
	return &acp.Session{
		ID: a.Session, Gate: a.Gate, Tools: a.Registry, Tree: a.Tree, Rights: a.Rights(),
		Turn: t.turn, History: t.history, Usage: t.conversation.Usage, Commands: t.commands, Changed: a.OffersChanged,
		Model: t.answering, Models: a.knownModels, SetModel: t.choose, Efforts: efforts(), SetEffort: t.think, Notes: a.TakeNotes, Close: a.Close,
	}, nil
}

// sit chooses the model and opens the conversation.
func (t *seat) sit(ctx context.Context, resume string) error {
	if resume != "" && t.app.Session != resume { // the beginning of a name is for people
		return fault.New("E1505", "", "there is no session %q", resume)
	}
	chosen, err := t.app.Model(ctx, t.app.opt.Model)
	if err != nil {
		return err
	}
	t.model = chosen
	t.conversation, err = t.app.Conversation(ctx, chosen.Name)
	return err
}

func (t *seat) chosen() Chosen {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.model
}

func (t *seat) answering() acp.Model {
	c := t.chosen()
	return acp.Model{Name: c.Name, Window: t.app.Window(c), Effort: string(c.Effort)}
}

func (t *seat) think(word string) error {
	e, err := model.ParseEffort(word)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.model.Effort = e
	return nil
}

func efforts() (out []string) {
	for _, e := range model.Efforts() {
		out = append(out, string(e))
	}
	return out
}

func (t *seat) choose(ctx context.Context, name string) error {
	c, err := t.app.Model(ctx, name)
	if err != nil {
		return toldACP(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Effort = t.model.Effort
	t.model = c
	return nil
}

func (t *seat) history(ctx context.Context) ([]agent.Record, error) {
	all, err := t.app.Sessions.Load(ctx, t.app.Session)
	if err != nil {
		return nil, toldACP(SessionFault(err))
	}
	return all.Records, nil
}

// turn is App.Turn with commands, and with receipts kept.
func (t *seat) turn(ctx context.Context, prompt ...abi.Content) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		t.began.Do(t.app.MCP.Start) // beside the turn, which does not wait for them
		t.turns++
		defer t.app.Gate.Widen()
		fail := func(err error) {
			yield(agent.Event{Kind: agent.KindDone, Stop: agent.StopError}, toldACP(err))
		}
		with, prompt, notes, err := t.expand(ctx, prompt)
		if err != nil {
			fail(err)
			return
		}
		for _, n := range notes {
			if !yield(agent.Event{Kind: agent.KindNote, Text: n}, nil) {
				return
			}
		}
		loop, err := t.app.Loop(ctx, with, t.limits)
		if err != nil {
			fail(err)
			return
		}
		if isCompact(prompt) {
			if err := loop.Shorten(ctx, t.conversation); err != nil {
				fail(err)
				return
			}
			yield(agent.Event{Kind: agent.KindDone, Stop: agent.StopEnd}, nil)
			return
		}
		for e, err := range t.app.Turn(ctx, loop, t.conversation, prompt...) {
			for _, r := range e.Receipts {
				t.app.KeepReceipt(r)
			}
			if !yield(e, toldACP(err)) {
				return
			}
		}
	}
}

// compactCommand is the one command that is not from a file.
const compactCommand = "compact"

func isCompact(prompt []abi.Content) bool {
	return len(prompt) == 1 && strings.TrimSpace(prompt[0].Text) == "/"+compactCommand
}

// expand carries out a command that the prompt begins with. What is no
// command's name is said as it is.
func (t *seat) expand(ctx context.Context, prompt []abi.Content) (with Chosen, out []abi.Content, notes []string, err error) {
	with = t.chosen()
	name, args, ok := commandOf(prompt)
	if !ok || isCompact(prompt) {
		return with, prompt, nil, nil
	}
	x, err := t.app.Command(ctx, "command-"+archive.NewID(), name, args)
	switch {
	case errors.Is(err, control.ErrNoCommand):
		return with, prompt, nil, nil
	case err != nil:
		return with, nil, nil, err
	}
	notes = x.Notes
	if m := x.Command.Model; m != "" {
		if other, err := t.app.Model(ctx, m); err != nil {
			notes = append(notes, "the command asks for the model "+m+", which is not to be had: "+err.Error())
		} else {
			other.Effort = with.Effort
			with = other
		}
	}
	return with, append([]abi.Content{abi.TextBlock(x.Text)}, prompt[1:]...), notes, nil
}

func commandOf(prompt []abi.Content) (name, args string, ok bool) {
	if len(prompt) == 0 || prompt[0].Type != abi.TypeText {
		return "", "", false
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(prompt[0].Text), "/")
	if !ok || strings.HasPrefix(text, "/") {
		return "", "", false
	}
	if i := strings.IndexAny(text, " \n\t"); i >= 0 {
		return text[:i], strings.TrimSpace(text[i:]), true
	}
	return text, "", text != ""
}

func (t *seat) commands(ctx context.Context) []acp.Command {
	out := []acp.Command{{Name: compactCommand, Description: "Shorten the conversation now"}}
	for _, c := range t.app.Commands.List(ctx, t.app.Rights()) {
		if c.Name != compactCommand {
			out = append(out, acp.Command{Name: c.Name, Description: c.Description, Hint: c.Hint})
		}
	}
	return out
}

// knownModels are those that can be named without asking a provider: of the
// configuration, and the default of each vendor with a key.
func (a *App) knownModels() []acp.Model {
	var out []acp.Model
	for name, p := range a.Config.Providers {
		for _, m := range p.Models {
			out = append(out, acp.Model{Name: name + "/" + m})
		}
	}
	for _, v := range vendors() {
		if v.key(a.env) != "" && v.model != "" {
			out = append(out, acp.Model{Name: v.name + "/" + v.model})
		}
	}
	slices.SortFunc(out, func(x, y acp.Model) int { return strings.Compare(x.Name, y.Name) })
	return slices.Compact(out)
}

// list gives the person's sessions; those that other front ends keep apart are not among them.
func (e Editor) list(ctx context.Context, q acp.Query) (out []acp.Listed, next int, err error) {
	env := e.Session.env()
	paths, err := config.FindPaths(env)
	if err != nil {
		return nil, 0, err
	}
	if e.Session.Paths != nil {
		paths = *e.Session.Paths
	}
	ask := archive.Query{Top: true, Limit: q.Limit + 1, Offset: q.Offset}
	if q.Dir != "" {
		if ask.Origin, err = Workspace(q.Dir); err != nil { // sessions outlive their folder
			ask.Origin = filepath.Clean(q.Dir)
		}
	}
	kept := Archive(paths)
	defer func() { err = errors.Join(err, kept.Close(context.WithoutCancel(ctx))) }()
	all, err := kept.List(ctx, ask)
	if err != nil {
		return nil, 0, err
	}
	if len(all) > q.Limit {
		all, next = all[:q.Limit], q.Offset+q.Limit
	}
	for _, s := range all {
		if filepath.IsAbs(s.Origin) {
			out = append(out, acp.Listed{ID: s.ID, Dir: s.Origin, Title: s.Title, Updated: s.Updated})
		}
	}
	return out, next, nil
}
