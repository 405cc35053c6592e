package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func toolsVerb(s streams) *cobra.Command {
	var f sessionFlags
	var format string
	var asJSON bool
	c := &cobra.Command{
		Use: "tools [NAME]", Short: "List the tools, or show one",
		Long: "List the tools that an agent has here, who made them, and whether their calls are asked about.\nNothing is compiled or started for it.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.noInput = true
			a, err := f.session(c.Context(), s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			switch {
			case format != "":
				return definitions(s, a.Registry, format)
			case len(args) == 1:
				return showTool(s, a.Registry, args[0], asJSON)
			}
			return listTools(s, a.Registry, asJSON)
		},
	}
	f.register(c)
	c.Flags().StringVar(&format, "format", "", "print definitions as a vendor takes them: "+formats())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func formats() string {
	var out []string
	for _, f := range host.Formats() {
		out = append(out, string(f))
	}
	return strings.Join(out, ", ")
}

func definitions(s streams, r *host.Registry, format string) error {
	defs, err := r.Definitions(host.Format(format))
	if err != nil {
		return fault.New("E1001", "the formats are "+formats(), "--format: %w", err)
	}
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	return enc.Encode(defs)
}

// listed is a row of `elfhost tools --json`.
type listed struct {
	Name        string          `json:"name"`
	Origin      string          `json:"origin"`
	Kind        host.Kind       `json:"kind"`
	Asks        bool            `json:"asks"`
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema,omitempty"`
}

func rowOf(sp host.Spec) listed {
	o := string(sp.Origin.Source)
	if sp.Origin.Name != "" {
		o += " " + sp.Origin.Name
	}
	return listed{sp.Name, o, sp.Kind, !sp.Safe(), sp.Description, sp.Input}
}

func listTools(s streams, r *host.Registry, asJSON bool) error {
	rows := []listed{}
	for _, t := range r.All() {
		rows = append(rows, rowOf(t.Spec()))
	}
	if asJSON {
		return json.NewEncoder(s.out).Encode(rows)
	}
	for _, row := range rows {
		asks := "free"
		if row.Asks {
			asks = "asks"
		}
		if _, err := fmt.Fprintf(s.out, "%-16s %-5s %-22s %s\n", term.Line(row.Name), asks, term.Line(row.Origin), short(term.Line(firstLine(row.Description)), 90)); err != nil {
			return err
		}
	}
	return nil
}

func showTool(s streams, r *host.Registry, name string, asJSON bool) error {
	sp, ok := r.Spec(name)
	if !ok {
		return fault.New("E1301", "`elfhost tools` lists them", "there is no tool %q", name)
	}
	row := rowOf(sp)
	enc := json.NewEncoder(s.out)
	enc.SetIndent("", "  ")
	if asJSON {
		return enc.Encode(row)
	}
	fmt.Fprintf(s.out, "%s (%s, %s)\n\n%s\n\n", term.Line(row.Name), term.Line(row.Origin), row.Kind, term.Lines(row.Description))
	return enc.Encode(row.Input)
}
