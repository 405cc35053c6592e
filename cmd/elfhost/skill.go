package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/builtins/skills"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func skillVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "skill", Short: "List skills and what is odd about them", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(skillList(s), skillShow(s))
	return c
}

func skillList(s streams) *cobra.Command {
	var f sessionFlags
	var all, asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the skills that an agent is told of here",
		Long: `List the skills that an agent is told of here: those of your own folders (skills/
beside config.toml, ~/.claude/skills, ~/.agents/skills), and those of the project
(.elfhost/skills, .claude/skills, .agents/skills). Where names are equal, yours
is used. Lines that begin with ! deserve a look before the skill is used.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := findSkills(c.Context(), s, &f)
			if err != nil {
				return err
			}
			rows := []skills.Skill{}
			for _, k := range found {
				if all || k.Usable() {
					rows = append(rows, k)
				}
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(rows)
			}
			return printSkills(s, rows, len(found)-len(rows))
		},
	}
	c.Flags().StringVarP(&f.dir, "dir", "C", "", "the project's folder")
	c.Flags().BoolVar(&all, "all", false, "also those that cannot be used, are hidden by another of the same name, or are for people alone")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func findSkills(ctx context.Context, s streams, f *sessionFlags) ([]skills.Skill, error) {
	f.noInput = true
	a, err := f.session(ctx, s, app.Options{})
	if err != nil {
		return nil, err
	}
	defer a.Close(context.WithoutCancel(ctx))
	return a.Skills().All(ctx, a.Rights())
}

func printSkills(s streams, rows []skills.Skill, left int) error {
	for _, k := range rows {
		note := ""
		switch {
		case k.Problem != "":
			note = "not usable: " + k.Problem
		case k.Shadowed:
			note = "not used: another of this name comes first"
		case k.Manual:
			note = "for people alone"
		}
		if _, err := fmt.Fprintf(s.out, "%-28s %-9s %s\n", term.Line(k.Name), k.Source, short(term.Line(k.Description), 80)); err != nil {
			return err
		}
		if note != "" {
			fmt.Fprintf(s.out, "    %s\n", term.Line(note))
		}
		for _, w := range k.Warnings {
			fmt.Fprintf(s.out, "    %s\n", term.Line(w))
		}
		for _, w := range k.Flags {
			fmt.Fprintf(s.out, "  ! %s\n", term.Line(w))
		}
	}
	if left > 0 {
		fmt.Fprintf(s.err, "elfhost: note: %d more are not usable or not used; --all shows them\n", left)
	}
	if len(rows)+left == 0 {
		fmt.Fprintln(s.err, "elfhost: note: there are no skills here; `elfhost skill list --help` says where they are looked for")
	}
	return nil
}

func skillShow(s streams) *cobra.Command {
	var f sessionFlags
	c := &cobra.Command{
		Use: "show NAME", Short: "Show what is known of one skill",
		Args: exactly(1, "one NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			found, err := findSkills(c.Context(), s, &f)
			if err != nil {
				return err
			}
			var hits []skills.Skill
			for _, k := range found {
				if strings.EqualFold(k.Name, args[0]) {
					hits = append(hits, k)
				}
			}
			if len(hits) == 0 {
				return fault.New("E1308", "`elfhost skill list --all` shows them", "there is no skill %q here", args[0])
			}
			for _, k := range hits {
				fmt.Fprintf(s.out, "%s (%s)\n%s\n\nfile     %s\n", term.Line(k.Name), k.Source, term.Line(k.Description), term.Line(k.File))
				for _, row := range [][2]string{{"licence", k.License}, {"needs", k.Needs}, {"tools", toolsOf(k)}, {"problem", k.Problem}} {
					if row[1] != "" {
						fmt.Fprintf(s.out, "%-8s %s\n", row[0], term.Line(row[1]))
					}
				}
				for _, w := range k.Warnings {
					fmt.Fprintf(s.out, "odd      %s\n", term.Line(w))
				}
				for _, w := range k.Flags {
					fmt.Fprintf(s.out, "look at  %s\n", term.Line(w))
				}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&f.dir, "dir", "C", "", "the project's folder")
	return c
}

func toolsOf(k skills.Skill) string {
	switch {
	case !k.Narrows:
		return ""
	case len(k.Tools) == 0:
		return "none"
	}
	return strings.Join(k.Tools, ", ") + " (it asks for no others; this allows nothing)"
}
