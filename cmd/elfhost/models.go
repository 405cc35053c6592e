package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func modelsVerb(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "models [PROVIDER]", Short: "List the models that can be reached",
		Long: `Ask every provider that has a key, and the local servers, which models they
have. A star marks the one that answers when --model is not given. Context and
price are those of the provider, else of a table that was published on the date
shown; prices are in US dollars for a million tokens, in and out.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := openQuiet(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			only := ""
			if len(args) == 1 {
				only = args[0]
			}
			rows, err := a.Models(c.Context(), only)
			if err != nil {
				return err
			}
			if err := c.Context().Err(); err != nil {
				return context.Cause(c.Context())
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(rows)
			}
			return printModels(s, a, rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printModels(s streams, a *app.App, rows []app.Reachable) error {
	found, failed := false, false
	for _, r := range rows {
		if r.Error != "" {
			failed = true
			fmt.Fprintf(s.err, "elfhost: note: %s: %s\n", term.Line(r.Provider), term.Line(r.Error))
		}
		for _, m := range r.Models {
			found = true
			mark := " "
			if m.Default {
				mark = "*"
			}
			fmt.Fprintf(s.out, "%s %s%s\n", mark, term.Line(m.Name), modelFacts(m))
		}
	}
	if !found && failed {
		return fault.New("E1103", "the notes above say why: is the key right, the server started, the network there?", "no provider lists its models")
	}
	if !found {
		_, err := a.Model(context.Background(), "")
		if err == nil {
			return fault.New("E1103", "the notes above say why", "no provider lists its models")
		}
		return err
	}
	return nil
}

func modelFacts(m app.ReachableModel) string {
	var parts []string
	if m.Window > 0 {
		parts = append(parts, fmt.Sprintf("%dk context", m.Window/1000))
	}
	if m.In > 0 || m.Out > 0 {
		parts = append(parts, fmt.Sprintf("$%g in, $%g out (%s)", m.In, m.Out, m.Priced))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, ", ")
}
