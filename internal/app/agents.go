package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/builtins/files"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/config"
)

// agentMount is where the person's agent definitions lie for those who read them.
const agentMount = "/agents"

func (a *App) agentMounts() []reach.Mount {
	return []reach.Mount{{Name: agentMount, Dir: filepath.Join(a.Paths.Config, "agents"), ReadOnly: true, Hidden: true, Late: true}}
}

// Definitions is where agent definitions are found: the person's own first.
func (a *App) Definitions() *agents.Shelf {
	return &agents.Shelf{
		Tree: a.Tree.Reveal(), ACP: a.acp(), Trusted: a.trustedContent,
		Folders: []agents.Folder{
			{Dir: agentMount},
			{Dir: policy.Workspace + "/" + config.ProjectDir + "/agents", Project: true},
		},
	}
}

func agentTools(ctx context.Context, a *App) ([]host.Tool, error) {
	a.Runs = &agent.Runs{Open: a.openChild}
	defs := a.Definitions()
	known, err := defs.All(ctx, a.Rights())
	if err != nil {
		return nil, err
	}
	return []host.Tool{agents.Spawner(agents.Options{Runs: a.Runs, Definitions: defs.All, Known: known, ACP: a.acp()})}, nil
}

func agentQueries(_ context.Context, a *App) ([]host.Tool, error) {
	return agents.Queries(agents.Options{Runs: a.Runs}), nil
}

// openChild makes the loop of a sub-agent: its own file and shell tools, so
// that it neither leads the parent's working folder astray nor reads in its
// name, and the parent's for all else. agent.Runs narrows it.
func (a *App) openChild(ctx context.Context, parent *agent.Loop, s agent.Spawn) (*agent.Loop, error) {
	l := *parent
	l.Limits.Steps, l.Brought = 0, nil
	if s.Model != "" {
		m, err := a.Model(ctx, s.Model)
		if err != nil {
			return nil, err
		}
		if err := within(l.Limits, m); err != nil {
			return nil, err
		}
		l.Compact.Window, l.Compact.Ask = 0, a.window(m)
		if provider, _ := splitModel(m.Name); a.isLocal(provider) {
			l.Compact.Window = localWindow
		}
		l.Model, l.Info, l.Price, l.Format, l.Search = m.Model, m.Info, m.Price, m.Format, a.nativeSearch(m)
	}
	logs, err := os.MkdirTemp(a.SessionDir(), "agent-")
	if err != nil {
		return nil, fmt.Errorf("making the folder of a sub-agent: %w", err)
	}
	sh, err := a.newShell(logs)
	if err != nil {
		return nil, err
	}
	o := a.registryOptions(parent.Tools.Gate())
	o.Inherit = parent.Tools
	own := host.New(o)
	tools := append(files.Tools(files.Options{Tree: a.Tree, ACP: a.acp()}), sh.Tools()...)
	if err := own.Add(tools...); err != nil {
		return nil, errors.Join(err, sh.Close())
	}
	end, err := a.direct(ctx, s.Agent, own)
	if err != nil {
		return nil, errors.Join(err, sh.Close())
	}
	l.Tools = own
	if end != nil {
		l.Brought = func(spec host.Spec) bool { return spec.Origin.Source == host.MCP && !parent.Tools.Has(spec.Name) }
	}
	l.Release = func() {
		if end != nil {
			end()
		}
		if err := sh.Close(); err != nil {
			a.note("ending the commands of a sub-agent: %v", err)
		}
		_ = os.Remove(logs) // where nothing was written
	}
	return &l, nil
}
