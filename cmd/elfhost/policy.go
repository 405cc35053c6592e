package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func policyVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "Check policy files, and say which line decides", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(policyCheck(s), policyExplain(s))
	return c
}

// layers are the words of --layer.
var layers = map[string]policy.LayerKind{"system": policy.System, "user": policy.User, "project": policy.Project, "extra": policy.Extra}

func policyCheck(s streams) *cobra.Command {
	var asJSON bool
	var layer, dir string
	c := &cobra.Command{
		Use: "check [FILE]", Short: "Say everything that is wrong with a policy file",
		Long: `Read a policy file as elfhost would, and name line and column of each problem.
What is right but counts for nothing, because only another layer may say it, is
a note. Without FILE, the files that are in force here are checked.`,
		Example: `  elfhost policy check policy.toml
  elfhost policy check .elfhost/policy.toml --layer project`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kind, ok := layers[layer]
			if !ok {
				return fault.New("E1001", "", "--layer is system, user, project or extra, not %q", layer)
			}
			files := map[string]policy.LayerKind{}
			var order []string
			if len(args) == 1 {
				order, files[args[0]] = args, kind
			} else {
				paths, err := config.FindPaths(os.Getenv)
				if err != nil {
					return fault.Wrap("E1002", "", err)
				}
				if dir, err = filepath.Abs(dir); err != nil {
					return err
				}
				for _, f := range config.PolicyFiles(paths, dir) {
					if _, err := os.Stat(f.Path); !errors.Is(err, fs.ErrNotExist) {
						order, files[f.Path] = append(order, f.Path), f.Kind
					}
				}
			}
			return checkPolicies(s, order, files, asJSON)
		},
	}
	c.Flags().StringVar(&layer, "layer", "system", "whose file it is: system, user, project, or extra (ELFHOST_POLICY)")
	c.Flags().StringVarP(&dir, "dir", "C", "", "the project's folder")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// problem is a row of `elfhost policy check --json`.
type problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Problem string `json:"problem"`
}

func checkPolicies(s streams, order []string, files map[string]policy.LayerKind, asJSON bool) error {
	all := []problem{}
	for _, name := range order {
		wrong, notes, err := config.CheckPolicyFile(name, files[name])
		if err != nil {
			return fault.New("E1002", "", "checking %q: %w", name, err)
		}
		for _, e := range wrong {
			all = append(all, problem{e.File, e.Line, e.Column, e.Err.Error()})
		}
		for _, n := range notes {
			fmt.Fprintf(s.err, "elfhost: note: %s\n", term.Line(n))
		}
		if len(wrong) == 0 && !asJSON {
			fmt.Fprintf(s.out, "%s: nothing is wrong\n", term.Line(name))
		}
	}
	if len(order) == 0 && !asJSON {
		fmt.Fprintln(s.out, "there is no policy file: only what a person grants limits anything")
	}
	if asJSON {
		if err := json.NewEncoder(s.out).Encode(all); err != nil {
			return err
		}
	} else {
		for _, p := range all {
			fmt.Fprintf(s.out, "%s: %s\n", term.Line(p.place()), term.Line(p.Problem))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fault.New("E1002", "SECURITY.md lists the keys; `elfhost config explain KEY` says what one means", "%d problem(s)", len(all))
}

func (p problem) place() string {
	out := p.File
	if p.Line > 0 {
		out += fmt.Sprintf(":%d", p.Line)
		if p.Column > 0 {
			out += fmt.Sprintf(":%d", p.Column)
		}
	}
	return out
}
