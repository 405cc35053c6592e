package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/builtins/agents"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/term"
)

func agentVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "agent", Short: "List agent definitions and what is odd about them", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(agentList(s))
	return c
}

func agentList(s streams) *cobra.Command {
	var f sessionFlags
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the agent definitions of this folder",
		Long: `List the agent definitions that count here: those of your own folder (agents/
beside config.toml), then those of the project (.elfhost/agents). Where names are
equal, yours is used. spawn_agent and ` + "`elfhost mcp serve --agent`" + ` take these names.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			all, err := a.Definitions().All(c.Context(), a.Rights())
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(append([]agents.Definition{}, all...))
			}
			return printAgents(s, all)
		},
	}
	c.Flags().StringVarP(&f.dir, "dir", "C", "", "the project's folder")
	c.Flags().StringVar(&f.dialect, "dialect", "", "whose names of tools the definitions have: tinyelf or acp")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printAgents(s streams, all []agents.Definition) error {
	for _, d := range all {
		from := "user"
		if d.Project {
			from = "project"
		}
		if _, err := fmt.Fprintf(s.out, "%-28s %-9s %s\n", term.Line(d.Name), from, short(term.Line(d.Description), 80)); err != nil {
			return err
		}
		if d.Problem != "" {
			fmt.Fprintf(s.out, "    not usable: %s\n", term.Line(d.Problem))
		}
		for _, w := range d.Warnings {
			fmt.Fprintf(s.out, "    %s\n", term.Line(w))
		}
	}
	return nil
}
