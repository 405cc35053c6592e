package app

import (
	"context"
	"iter"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/hooks"
)

// openHooks reads the person's hooks. A project's configuration has none.
func (a *App) openHooks() error {
	h, err := hooks.New(a.Config.Hooks, hooks.Options{
		Gate: a.Gate, Policy: a.Policy, Dir: a.Dir, Session: a.Session, Note: a.note, Keeper: a.opt.Keeper,
		Scrub: func(b []byte) []byte { return a.Secrets.Scrub.Bytes(b) },
	})
	if err != nil {
		return fault.Wrap("E1002", "`elfhost config explain hooks` says what a hook may be", err)
	}
	a.Hooks = h
	if h.Has(hooks.BeforeTool) {
		a.Gate.Before = h.Before
	}
	return nil
}

// registryOptions are those of the session's registry, and of sub-agents'.
func (a *App) registryOptions(g *host.Gate) host.Options {
	o := host.Options{Gate: g, Spill: a.spill, Log: a.opt.Log}
	if a.Hooks.Has(hooks.AfterTool) {
		o.After = a.Hooks.After
	}
	return o
}

// begin tells the hooks of the session, the first time, and of a prompt. It
// returns the prompt with what they add.
func (a *App) begin(ctx context.Context, prompt []abi.Content) ([]abi.Content, error) {
	add := func(words string) {
		if words != "" {
			prompt = append(prompt[:len(prompt):len(prompt)], abi.Content{Type: abi.TypeText, Name: agent.Attached, Text: "[A hook of the person adds: " + words + "]"})
		}
	}
	if !a.began.Swap(true) {
		add(a.Hooks.Start(ctx))
	}
	text := abi.Result{Content: prompt}.Text()
	if text == "" {
		return prompt, nil
	}
	words, err := a.Hooks.Ask(ctx, text)
	if err != nil {
		return nil, fault.New("E1205", "", "a hook refused the prompt: %w", err)
	}
	add(words)
	return prompt, nil
}

// ended tells the hooks that the agent has stopped.
func (a *App) ended(ctx context.Context, done agent.Event) {
	a.Hooks.Stopped(context.WithoutCancel(ctx), string(done.Stop))
}

// Turn is Loop.Run with the person's hooks around it, for front ends that stay:
// sub-agents in the background work on, and the agent is told in a later turn.
func (a *App) Turn(ctx context.Context, l *agent.Loop, s *agent.Session, prompt ...abi.Content) iter.Seq2[agent.Event, error] {
	return a.hooked(ctx, prompt, func(prompt []abi.Content) iter.Seq2[agent.Event, error] { return l.Run(ctx, s, prompt...) },
		func(done agent.Event) { a.nameSession(l, s, done) })
}

// Work is Turn for a program that is about to end: it goes on while sub-agents
// work in the background, see agent.Runs.Work.
func (a *App) Work(ctx context.Context, l *agent.Loop, s *agent.Session, prompt ...abi.Content) iter.Seq2[agent.Event, error] {
	runs := a.Runs
	if runs == nil {
		runs = &agent.Runs{}
	}
	return a.hooked(ctx, prompt, func(prompt []abi.Content) iter.Seq2[agent.Event, error] { return runs.Work(ctx, l, s, prompt...) },
		func(agent.Event) {})
}

// hooked puts the hooks around a run, and after what follows it.
func (a *App) hooked(ctx context.Context, prompt []abi.Content, run func([]abi.Content) iter.Seq2[agent.Event, error], after func(agent.Event)) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		prompt, err := a.begin(ctx, prompt)
		if err != nil {
			yield(agent.Event{Kind: agent.KindDone, Stop: agent.StopError}, err)
			return
		}
		done, failed := agent.Event{Stop: agent.StopCancelled}, error(nil)
		for e, err := range run(prompt) {
			if e.Kind == agent.KindDone {
				done, failed = e, err
			} else if !yield(e, err) {
				break
			}
		}
		a.ended(ctx, done)
		after(done)
		if done.Kind == agent.KindDone {
			yield(done, modelFault(failed))
		}
	}
}
