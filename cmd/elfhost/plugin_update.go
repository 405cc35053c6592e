package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func pluginUpdate(s streams) *cobra.Command {
	var f consent
	var o app.InstallOptions
	c := &cobra.Command{
		Use: "update [NAME...]", Short: "Update packages; hold those that ask for more",
		Long: `Look for newer versions. One that asks for nothing more, tells the model the same
of its tools and has the same signer takes the place of the old one, with what was
granted. Any other is held: its difference is shown, and a person agrees to it or
the installed version stays.`,
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				all := len(args) == 0
				if all {
					installed, err := a.Installed()
					if err != nil {
						return fault.Wrap("E1323", "", err)
					}
					for _, in := range installed {
						if in.Hold == "" && in.Disabled == "" {
							args = append(args, in.Name)
						}
					}
				}
				if len(args) > 1 && f.accept != "" {
					return fault.New("E1001", "update them one by one", "--accept agrees to one package's screen")
				}
				var failed []error
				for _, name := range args { // one that fails does not stop the others
					failed = append(failed, f.update(c, s, a, name, o))
				}
				return lastOf(s, failed)
			})
		},
	}
	f.register(c)
	c.Flags().BoolVar(&o.Downgrade, "allow-downgrade", false, "take an older version than the installed one")
	return c
}

// lastOf prints all errors but the last, which it returns.
func lastOf(s streams, errs []error) error {
	var out error
	for _, err := range errs {
		if err == nil {
			continue
		}
		if out != nil {
			fmt.Fprintf(s.err, "elfhost: error: %s\n", term.Line(out.Error()))
		}
		out = err
	}
	return out
}

func (f *consent) update(c *cobra.Command, s streams, a *app.App, name string, o app.InstallOptions) error {
	cand, err := a.Update(c.Context(), name, o)
	if err != nil {
		return err
	}
	if cand == nil {
		_, err := fmt.Fprintf(s.out, "%s is up to date\n", name)
		return err
	}
	defer cand.Close()
	if !cand.Change.Grew() && cand.Old.Disabled == "" { // what nobody agreed to yet is asked about
		if err := f.commit(c.Context(), s, cand, cand.Carried()); err != nil {
			return err
		}
		return printTaken(s, cand.Change)
	}
	return f.install(c.Context(), s, cand)
}

// printTaken says what is different about a version that was taken without a
// question.
func printTaken(s streams, c app.Change) error {
	for _, l := range c.Lines() {
		if strings.HasSuffix(l, "as before") {
			continue
		}
		if _, err := fmt.Fprintf(s.out, "    %s\n", term.Line(l)); err != nil {
			return err
		}
	}
	return nil
}

func pluginRollback(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "rollback NAME", Short: "Go back to the version before, with what was granted to it", Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				from, to, err := a.Rollback(c.Context(), args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(s.out, "%s %s → %s\n", args[0], term.Line(from), term.Line(to))
				return err
			})
		},
	}
}

func pluginVerify(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "verify [NAME...]", Short: "Hold installed packages against elfhost.lock, file by file",
		Long: "Hold every byte of the installed packages against elfhost.lock. Files that were edited are listed; nothing is repaired or\noverwritten. To have the package's own file back, move the edited one away and install the package again.",
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				rows, err := a.VerifyPackages(c.Context(), args)
				if err != nil {
					return err
				}
				bad := 0
				for _, v := range rows {
					if !v.OK() {
						bad++
					}
					if !asJSON {
						printVerified(s, v)
					}
				}
				if asJSON {
					err = json.NewEncoder(s.out).Encode(rows)
				}
				if bad > 0 {
					err = errors.Join(fault.New("E1323", "move edited files away, and install the package again", "%d of %d packages are not as they were installed", bad, len(rows)), err)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func printVerified(s streams, v app.Verified) {
	if v.OK() {
		fmt.Fprintf(s.out, "ok       %s %s\n", v.Name, term.Line(v.Version))
		return
	}
	fmt.Fprintf(s.out, "CHANGED  %s %s  %s\n", v.Name, term.Line(v.Version), term.Line(v.Problem))
	for _, e := range v.Edited {
		fmt.Fprintf(s.out, "         %s\n", term.Line(e))
	}
}
