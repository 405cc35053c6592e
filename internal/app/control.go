package app

import (
	"context"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/builtins/control"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/term"
)

func controlTools(_ context.Context, a *App) ([]host.Tool, error) {
	a.Plans = &control.Plans{}
	n := &control.Notifier{Desktop: control.Desktop, Escape: term.Line}
	if a.opt.Terminal != nil {
		n.Terminal, n.Plain = a.opt.Terminal, !term.StyleOf(a.opt.Terminal, a.env).Moves
	}
	return append(control.Tools(control.Options{Plans: a.Plans, Planned: a.planned, Notifier: n}), agents.Yield()), nil
}

// commandTools offers the commands of the user's folder, and of the project's
// once the person trusts it.
func commandTools(_ context.Context, a *App) ([]host.Tool, error) {
	a.Commands = &control.Commands{Tree: a.Tree, Registry: a.registryOf, Narrow: a.narrow, Others: a.serverPrompts}
	if own, ok := a.userCommands(); ok {
		a.Commands.Folders = append(a.Commands.Folders, own)
	}
	a.Commands.Folders = append(a.Commands.Folders, control.Folder{
		Source: "project", Tree: a.Tree, Dir: policy.Workspace + "/" + config.ProjectDir + "/commands", Trusted: a.trustedContent,
	})
	return []host.Tool{a.Commands.Tool()}, nil
}

const commandsMount = "/commands"

// userCommands is the user's own folder, be it made later, under a root of its own.
func (a *App) userCommands() (control.Folder, bool) {
	tree, err := reach.NewTree(reach.Mount{Name: commandsMount, Dir: filepath.Join(a.Paths.Config, "commands"), ReadOnly: true, Late: true})
	if err != nil {
		a.note("your commands are left out: %v", err)
		return control.Folder{}, false
	}
	a.closing(tree.Close)
	read, err := policy.New("commands", policy.Grant{Cap: abi.FSRead, Scope: []string{commandsMount, commandsMount + "/**"}})
	if err != nil {
		a.note("your commands are left out: %v", err)
		return control.Folder{}, false
	}
	return control.Folder{Source: "user", Tree: tree, Dir: commandsMount, Rights: &policy.Rights{Grants: read}}, true
}

// registryOf is the registry of the run that ctx belongs to; the session's own
// outside of one.
func (a *App) registryOf(ctx context.Context) *host.Registry {
	if r := agent.Tools(ctx); r != nil {
		return r
	}
	return a.Registry
}

func (a *App) narrow(ctx context.Context, patterns []policy.Pattern) {
	a.registryOf(ctx).Gate().Narrow(patterns...)
}

// Command expands a command that the person typed, and narrows the session's
// gate to what it may use; Gate.Widen ends that.
func (a *App) Command(ctx context.Context, id, name, args string) (control.Expansion, error) {
	x, err := a.Commands.Expand(ctx, host.Call{ID: id, Tool: "slash_command", Caller: host.Caller{Session: a.Session}, Rights: a.Rights()}, name, args)
	if err != nil {
		return x, err
	}
	if allowed, narrowed := x.Command.Allowed(); narrowed {
		a.Gate.Narrow(allowed...)
	}
	return x, nil
}
