package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/granted"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func grantVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "grant", Short: "Give, list and take back rights", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(grantAdd(s), grantList(s), grantRevoke(s))
	return c
}

// place says which grants.toml is meant.
type place struct {
	dir  string
	user bool
}

func (p *place) register(c *cobra.Command) {
	c.Flags().StringVarP(&p.dir, "dir", "C", "", "the project's folder")
	c.Flags().BoolVar(&p.user, "user", false, "everywhere, not in this project alone")
}

func (p *place) file(paths config.Paths, dir string) (file, layer string) {
	if p.user {
		return paths.UserGrants(), "user"
	}
	return paths.ProjectGrants(dir), "project"
}

func (p *place) open(ctx context.Context, s streams) (*app.App, error) {
	f := sessionFlags{dir: p.dir, noInput: true}
	return f.session(ctx, s, app.Options{})
}

// ruleOf reads `RULE`, `PLUGIN TOOL` or `PLUGIN CAPABILITY SCOPE…`.
func ruleOf(args []string) (host.Rule, error) {
	r, err := app.ParseAllow(strings.Join(args, " "))
	return r, fault.Wrap("E1001", "write a rule such as 'Bash(git status:*)', or PLUGIN 'net.http https://docs.example.com GET'", err)
}

func grantAdd(s streams) *cobra.Command {
	var p place
	c := &cobra.Command{
		Use: "add RULE | add PLUGIN 'CAPABILITY SCOPE'", Short: "Allow calls by a rule, or give a plugin a capability",
		Example: `  elfhost grant add 'Bash(git status:*)'
  elfhost grant add webfetch 'net.http http://127.0.0.1:8000 GET'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, err := ruleOf(args)
			if err != nil {
				return err
			}
			a, err := p.open(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			if name, _, _ := strings.Cut(r.Pattern, "("); name != "" && !strings.Contains(name, "*") && !a.Registry.Has(name) {
				fmt.Fprintf(s.err, "elfhost: note: this session has no tool %s; the rule waits for one\n", term.Line(name))
			}
			file, layer := p.file(a.Paths, a.Dir)
			if err := a.Remember(file, layer, r); err != nil {
				return fault.Wrap("E1501", "", err)
			}
			a.KeepGrant("added for the " + layer + ": " + r.String())
			_, err = fmt.Fprintf(s.out, "granted for the %s: %s\n", layer, term.Line(r.String()))
			return err
		},
	}
	p.register(c)
	return c
}

func grantRevoke(s streams) *cobra.Command {
	var p place
	c := &cobra.Command{
		Use: "revoke RULE | revoke PLUGIN ['CAPABILITY SCOPE']", Short: "Take back a rule, or a plugin's grants",
		Example: `  elfhost grant revoke 'Bash(git status:*)'
  elfhost grant revoke webfetch 'net.http public GET,HEAD'
  elfhost grant revoke webfetch`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := p.open(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			var r host.Rule
			if _, plugin := a.PluginKey(args[0]); plugin && len(args) == 1 {
				r = host.Rule{Plugin: args[0]}
			} else if r, err = ruleOf(args); err != nil {
				return err
			}
			file, layer := p.file(a.Paths, a.Dir)
			gone, err := a.Revoke(file, layer, r)
			if err != nil {
				return fault.Wrap("E1501", "", err)
			}
			if len(gone) == 0 {
				return fault.New("E1208", "`elfhost grant list` shows what there is; --user looks in the user's grants", "nothing to revoke for the %s", layer)
			}
			for _, g := range gone {
				a.KeepGrant("revoked for the " + layer + ": " + g)
				fmt.Fprintf(s.out, "revoked for the %s: %s\n", layer, term.Line(g))
			}
			return nil
		},
	}
	p.register(c)
	return c
}

// held is a row of `elfhost grant list`.
type held struct {
	Plugin string `json:"plugin,omitempty"`
	Grant  string `json:"grant,omitempty"`
	Rule   string `json:"rule,omitempty"`
	From   string `json:"from"`
}

func grantList(s streams) *cobra.Command {
	var p place
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "Show what is granted, to whom, and where it is written", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := p.open(c.Context(), s)
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(c.Context()))
			rows := []held{}
			for _, g := range a.Holdings() {
				rows = append(rows, held{Plugin: g.Plugin, Grant: g.Grant.String(), From: g.Grant.Where})
			}
			for _, file := range []string{a.Paths.ProjectGrants(a.Dir), a.Paths.UserGrants()} {
				have, err := granted.Read(file, "")
				if err != nil {
					return fault.Wrap("E1002", "", err)
				}
				for _, g := range have.Grants { // of builtin tools: plugins' are among the holdings
					if g.Digest == "" {
						rows = append(rows, held{Plugin: g.Name, Grant: g.Grant().String(), From: g.Where})
					}
				}
				for _, r := range have.Rules {
					rows = append(rows, held{Rule: r.String(), From: r.Where})
				}
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(rows)
			}
			for _, r := range rows {
				what := r.Rule
				if r.Plugin != "" {
					what = r.Plugin + ": " + r.Grant
				}
				fmt.Fprintf(s.out, "%-60s  %s\n", term.Line(what), term.Line(r.From))
			}
			return nil
		},
	}
	p.register(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
