package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/internal/trust"
)

func configVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Say what is configured, and by which line", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configExplain(s))
	return c
}

func configExplain(s streams) *cobra.Command {
	var asJSON bool
	var dir string
	c := &cobra.Command{
		Use: "explain [KEY]", Short: "Show a key's value, and the file and line that set it",
		Long: `Show a key of config.toml or policy.toml, or all keys below one: its value, what
set it, and what it means. Of policy.toml each file that sets it is shown, since
each narrows the others.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			key := ""
			if len(args) == 1 {
				key = args[0]
			}
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			project, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			var trusted func(string) ([]byte, bool)
			if st, found, err := trust.Check(paths, project); err == nil && st == trust.Trusted {
				trusted = found.File
			}
			cfg, err := config.Load(paths, project, trusted)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			rows, err := cfg.Explain(key)
			if err != nil && !config.IsPolicyKey(key) {
				return fault.Wrap("E1001", "`elfhost config explain` lists the keys", err)
			}
			more, err := config.ExplainPolicy(paths, project, key)
			if err != nil {
				return fault.Wrap("E1002", "`elfhost policy check` lists what is wrong", err)
			}
			rows = append(rows, more...)
			notes := cfg.Notes()
			if pol, err := config.LoadPolicy(paths, project); err == nil && len(more) > 0 {
				notes = append(notes, pol.Notes()...)
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(rows)
			}
			for _, n := range notes {
				fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Line(n))
			}
			return printKeys(s, key, rows)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var out []string
			for _, k := range append(config.Keys(), config.PolicyKeys()...) {
				out = append(out, k.Name+"\t"+k.Doc)
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVarP(&dir, "dir", "C", "", "the project's folder")
	return c
}

func printKeys(s streams, key string, rows []config.Explanation) error {
	for _, r := range rows {
		from := r.Layer
		if r.Where != "" {
			from += ", " + r.Where
		}
		if _, err := fmt.Fprintf(s.out, "%s = %s  (%s)\n", term.Line(r.Key), term.Line(r.Value), term.Line(from)); err != nil {
			return err
		}
		if r.Doc != "" {
			fmt.Fprintf(s.out, "    %s\n", r.Doc)
		}
	}
	if len(rows) > 0 {
		return nil
	}
	for _, k := range append(config.Keys(), config.PolicyKeys()...) { // known, and not set anywhere
		if key == k.Name || key != "" && strings.HasPrefix(strings.ReplaceAll(k.Name, "[]", ""), key) {
			fmt.Fprintf(s.out, "%s  (%s, not set)\n    %s\n", k.Name, k.Type, k.Doc)
		}
	}
	return nil
}
