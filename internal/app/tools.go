package app

import (
	"context"

	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/builtins/search"
	"github.com/elfhost/elfhost/builtins/shell"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/reach"
)

// step is one part of the registration. Its tools are added together.
type step struct {
	name  string
	tools func(context.Context, *App) ([]host.Tool, error)
}

// steps are the registration steps of the tools' specification, in its order.
// To add a native tool, add it to its step; a new step goes where the
// specification has it.
var steps = []step{
	{"FileSystem", fileTools},
	{"Shell", shellTools},
	{"WebSearch", bundledStep("websearch")},
	{"WebFetch", bundledStep("webfetch")},
	{"ImageAnalysis", bundledStep("imageanalysis")},
	{"Skills", skillTools},
	{"SkillHub", hubStep},
	{"Sub-Agent", agentTools},
	{"Sub-Agent Query", agentQueries},
	{"Slash Command", commandTools},
	{"MCP", mcpTools},
	{"Session", sessionTools},
	{"Control", controlTools},
	{"Plugins", folderPlugins},
	{"Packages", installedTools},
}

func fileTools(_ context.Context, a *App) ([]host.Tool, error) {
	state := a.opt.Files
	if state == nil {
		a.seen = &seen{app: a}
		state = a.seen
	}
	tools := files.Tools(files.Options{Tree: a.Tree, ACP: a.acp(), State: state})
	tools = append(tools, search.Tools(search.Options{Tree: a.Tree, GlobalIgnore: a.globalIgnore()})...)
	return append(tools, outlineTools(a)...), nil
}

// acp reports whether the session speaks Fello's names and parameters.
func (a *App) acp() bool { return a.opt.Dialect == "acp" }

func shellTools(_ context.Context, a *App) ([]host.Tool, error) {
	a.Runner.Sandbox = <-a.kernel
	a.Gate.Unconfined = a.Runner.Sandbox.Kind == ""
	if a.terminal() != nil {
		a.Gate.Unconfined, a.Gate.Terminal = true, "a terminal of "+a.opt.Client.Name()
	}
	sh, err := a.newShell(a.SessionDir())
	if err != nil {
		return nil, err
	}
	a.closing(sh.Close)
	return sh.Tools(), nil
}

// terminal is the editor's, where commands may run in it: it knows nothing of
// our kernel sandbox, and a policy that requires one keeps them here.
func (a *App) terminal() reach.Terminal {
	must, _ := a.Policy.RequireSandbox()
	if must || a.opt.Client == nil || a.opt.OwnTerminals || !a.opt.Client.HasTerminals() {
		return nil
	}
	return a.opt.Client
}

// newShell makes the shell of the main agent, or of a sub-agent, which has a
// working folder and jobs of its own.
func (a *App) newShell(logs string) (*shell.Shell, error) {
	must, _ := a.Policy.RequireSandbox()
	var read []string
	for _, m := range a.ownSkills() {
		read = append(read, m.Dir) // for the scripts in them
	}
	return shell.New(shell.Options{
		Tree: a.Tree, Runner: &reach.Runner{Sandbox: a.Runner.Sandbox, Terminal: a.terminal(), Keeper: a.opt.Keeper}, ACP: a.acp(), Logs: logs,
		Timeout: a.Config.ExecTimeout.Duration, Ceiling: a.Policy.ExecTime(), Sandboxed: must,
		Read: read,
	})
}

func bundledStep(name string) func(context.Context, *App) ([]host.Tool, error) {
	return func(ctx context.Context, a *App) ([]host.Tool, error) { return a.bundled(ctx, name) }
}
