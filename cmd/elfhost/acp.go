package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

type acpFlags struct {
	sessionFlags
	model        string
	effort       string
	maxSteps     int
	maxCost      float64
	ownTerminals bool
	verbose      bool
}

func acpVerb(s streams) *cobra.Command {
	var f acpFlags
	c := &cobra.Command{
		Use: "acp", Short: "Be the agent of an editor (Agent Client Protocol)", Args: noArgs,
		Long: `Speak the Agent Client Protocol over standard streams: the editor starts this
and shows the conversation, its calls, diffs and plan. Questions go to the
person in the editor. Files are read and written through the editor where it
offers that, so that unsaved text counts, and commands run in its terminals.
The editor chooses the folder; ` + "`elfhost acp config CLIENT`" + ` prints what it needs.`,
		Example: `  elfhost acp config zed
  elfhost acp --mode acceptEdits --model anthropic`,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	fl := c.Flags()
	fl.StringVar(&f.mode, "mode", "", "plan, ask, acceptEdits or auto; the editor can change it")
	fl.StringVar(&f.dialect, "dialect", "acp", "names and parameters of tools: acp or tinyelf")
	fl.StringVarP(&f.model, "model", "m", "", "provider/name of the model, or a provider's name; the editor can change it")
	fl.StringVar(&f.effort, "effort", "", "how much the model thinks: none, low, medium, high, or default for its own; the editor can change it")
	fl.StringSliceVar(&f.tools, "tools", nil, "offer these tools only")
	fl.StringArrayVar(&f.allow, "allow", nil, "allow a rule or a plugin's grant in these sessions: 'Shell(git status:*)'")
	fl.StringArrayVar(&f.plugins, "plugin", nil, "load the plugin in this folder (elf.toml, plugin.wasm)")
	fl.BoolVar(&f.noInput, "no-input", false, "never ask: a question is a denial")
	fl.IntVar(&f.maxSteps, "max-steps", 0, "requests to the model in one turn at the most")
	fl.Float64Var(&f.maxCost, "max-cost", 0, "US dollars of one turn at the most; the model's price must be known")
	fl.BoolVar(&f.ownTerminals, "own-terminals", false, "run commands in the kernel sandbox of elfhost, not in the editor's terminals")
	fl.BoolVar(&f.verbose, "verbose", false, "log to standard error what goes wrong with the protocol")
	c.AddCommand(acpConfigVerb(s))
	return c
}

func (f *acpFlags) run(ctx context.Context, s streams) error {
	if f.dialect != "tinyelf" && f.dialect != "acp" {
		return fault.New("E1001", "", "--dialect is tinyelf or acp, not %q", f.dialect)
	}
	if err := checkLimits(f.maxSteps, f.maxCost); err != nil {
		return err
	}
	effort, err := effortOf(f.effort)
	if err != nil {
		return err
	}
	if term.IsTerminal(s.in) {
		fmt.Fprintln(s.err, "elfhost: an editor starts this and speaks with it: `elfhost acp config CLIENT` prints what it needs. Ctrl-C leaves.")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	// An editor that dies takes both streams with it. Writing to the one must
	// not end this process before it has ended what it started.
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	defer signal.Stop(pipe)
	e := app.Editor{
		Session: app.Options{
			Mode: host.Mode(f.mode), Dialect: f.dialect, Model: f.model, Effort: effort, Tools: f.tools, Plugins: f.plugins, Allow: f.allow,
			OwnTerminals: f.ownTerminals, Compiler: self, Keeper: s.keeper,
		},
		NoInput: f.noInput, Limits: agent.Limits{Steps: f.maxSteps, Cost: f.maxCost},
	}
	if f.verbose {
		e.Session.Log = slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	err = e.Serve(ctx, s.in, s.out)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending the editor's sessions: %w", err)
	}
	return nil
}
