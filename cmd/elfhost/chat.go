package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/chat"
	"github.com/elfhost/elfhost/internal/term"
)

type chatFlags struct {
	sessionFlags
	model    string
	effort   string
	kept     app.Kept
	maxSteps int
	maxCost  float64
}

func chatVerb(s streams) *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use: "chat", Short: "Talk with the agent about this folder", Args: noArgs,
		Long: `Talk with the agent at this terminal. /help lists the commands. Enter sends;
Alt-Enter, Ctrl-J or a backslash before Enter begins a new line. Ctrl-C ends the
turn that runs, a second one leaves. ACCESSIBLE and TERM=dumb make it plain text,
without any escape sequence; NO_COLOR takes the colours alone.`,
		Example: `  elfhost chat
  elfhost chat -c --mode acceptEdits`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	f.register(c)
	fl := c.Flags()
	fl.StringVarP(&f.model, "model", "m", "", "provider/name of the model, or a provider's name")
	fl.StringVar(&f.effort, "effort", "", "how much the model thinks: none, low, medium, high, or default for its own")
	fl.IntVar(&f.maxSteps, "max-steps", 0, "requests to the model in one turn at the most")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "US dollars of one turn at the most; the model's price must be known")
	fl.BoolVarP(&f.kept.Continue, "continue", "c", false, "go on with the last session of this folder")
	fl.StringVarP(&f.kept.Resume, "resume", "r", "", "go on with this session; the beginning of its name will do")
	fl.BoolVar(&f.kept.Fork, "fork", false, "with -c or -r: go on with a copy, and leave the session as it is")
	fl.BoolVar(&f.kept.Not, "no-session", false, "write nothing of this session down")
	return c
}

func (f *chatFlags) run(ctx context.Context, s streams) error {
	if err := checkKept(f.kept); err != nil {
		return err
	}
	if err := checkLimits(f.maxSteps, f.maxCost); err != nil {
		return err
	}
	effort, err := effortOf(f.effort)
	if err != nil {
		return err
	}
	style := term.StyleOf(s.out, os.Getenv)
	return chat.Run(ctx, chat.Options{
		In: s.in, Out: s.out, Style: style, Kept: f.kept, Model: f.model,
		Limits: agent.Limits{Steps: f.maxSteps, Cost: f.maxCost},
		Open: func(ctx context.Context, kept app.Kept, mode host.Mode, approver host.Approver) (*app.App, error) {
			flags := f.sessionFlags
			if mode != "" {
				flags.mode = string(mode)
			}
			return flags.session(ctx, s, app.Options{Model: f.model, Effort: effort, Kept: kept, Approver: approver, Follow: true})
		},
	})
}
