package app

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/abi"
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
		l.Compact.Window = 0
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

// Work is Loop.Run, and goes on while sub-agents work in the background: a
// program that is about to end would lose them. Each time some have ended, the
// agent is told and has another turn, within what is left of its limits.
func (a *App) Work(ctx context.Context, l *agent.Loop, s *agent.Session, prompt ...abi.Content) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		loop, before := *l, s.Usage()
		prompt, err := a.begin(ctx, prompt)
		if err != nil {
			yield(agent.Event{Kind: agent.KindDone, Stop: agent.StopError}, err)
			return
		}
		for {
			done, failed, left := once(loop.Run(ctx, s, prompt...), yield)
			if left {
				a.ended(ctx, agent.Event{Stop: agent.StopCancelled})
				return
			}
			if failed != nil || done.Stop != agent.StopEnd || !a.busy(s) && !s.Steered() {
				a.ended(ctx, done)
				yield(done, SessionFault(failed))
				return
			}
			stop := agent.StopCancelled
			if err := a.Runs.Wait(ctx, s); err == nil {
				stop = lessen(&loop.Limits, l.Limits, before, s.Usage())
			}
			if stop != "" {
				done.Stop = stop
				a.ended(ctx, done)
				yield(done, nil)
				return
			}
			prompt = nil
		}
	}
}

// once passes the events of one run on, all but the last.
func once(run iter.Seq2[agent.Event, error], yield func(agent.Event, error) bool) (done agent.Event, failed error, left bool) {
	for e, err := range run {
		if e.Kind == agent.KindDone {
			done, failed = e, err
			continue
		}
		if !yield(e, err) {
			return done, failed, true
		}
	}
	return done, failed, false
}

// busy reports whether sub-agents of the session are at work.
func (a *App) busy(s *agent.Session) bool {
	if a.Runs == nil {
		return false
	}
	for _, st := range a.Runs.List(s) {
		if st.Status == agent.Running {
			return true
		}
	}
	return false
}

// lessen sets what is left of limits, and says which of them is used up.
func lessen(to *agent.Limits, from agent.Limits, before, now agent.Usage) agent.Stop {
	if from.Steps > 0 {
		if to.Steps = from.Steps - (now.Steps - before.Steps); to.Steps <= 0 {
			return agent.StopSteps
		}
	}
	if from.Tokens > 0 {
		if to.Tokens = from.Tokens - (now.Total() - before.Total()); to.Tokens <= 0 {
			return agent.StopTokens
		}
	}
	if from.Cost > 0 {
		if to.Cost = from.Cost - (now.Cost - before.Cost); to.Cost <= 0 {
			return agent.StopCost
		}
	}
	return ""
}
