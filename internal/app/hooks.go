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
		Gate: a.Gate, Policy: a.Policy, Dir: a.Dir, Session: a.Session, Note: a.note,
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
	return func(yield func(agent.Event, error) bool) {
		prompt, err := a.begin(ctx, prompt)
		if err != nil {
			yield(agent.Event{Kind: agent.KindDone, Stop: agent.StopError}, err)
			return
		}
		done, failed, left := once(l.Run(ctx, s, prompt...), yield)
		if left {
			done.Stop = agent.StopCancelled
		}
		a.ended(ctx, done)
		a.nameSession(l, s, done)
		if !left {
			yield(done, failed)
		}
	}
}
