package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

// withApp runs f with a session in which nobody is asked.
func withApp(ctx context.Context, s streams, f func(*app.App) error) error {
	a, err := openQuiet(ctx, s)
	if err != nil {
		return err
	}
	defer a.Close(context.WithoutCancel(ctx))
	return f(a)
}

func pluginGrant(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "grant NAME 'CAPABILITY SCOPE'", Short: "Give an installed package a right, on this machine",
		Example: `  elfhost plugin grant fetch 'net.http https://docs.example.com GET'`,
		Args:    exactly(2, "a package and a right"),
		RunE: func(c *cobra.Command, args []string) error {
			g, err := policy.ParseGrant(args[1])
			if err != nil {
				return fault.Wrap("E1001", "a right is CAPABILITY SCOPE, such as 'net.http https://a.example GET'", err)
			}
			return withApp(c.Context(), s, func(a *app.App) error {
				if err := a.GrantPackage(c.Context(), args[0], g); err != nil {
					return err
				}
				_, err := fmt.Fprintf(s.out, "granted to %s: %s\n", args[0], term.Line(g.String()))
				return err
			})
		},
	}
}

func pluginRevoke(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME ['CAPABILITY SCOPE']", Short: "Take rights of an installed package back, at once",
		Long: "Take back one right of an installed package, or all of them, wherever they were given. It acts at once: calls that\nbegan with the right are ended, in other running sessions within a second.",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			var g *policy.Grant
			if len(args) == 2 {
				one, err := policy.ParseGrant(args[1])
				if err != nil {
					return fault.Wrap("E1001", "a right is CAPABILITY SCOPE, such as 'net.http https://a.example GET'", err)
				}
				g = &one
			}
			return withApp(c.Context(), s, func(a *app.App) error {
				gone, err := a.RevokePackage(c.Context(), args[0], g)
				if err != nil {
					return err
				}
				if len(gone) == 0 {
					return fault.New("E1203", "`elfhost plugin info "+args[0]+"` shows what it holds", "%s holds no such right", args[0])
				}
				for _, t := range gone {
					fmt.Fprintf(s.out, "revoked: %s\n", term.Line(t))
				}
				return nil
			})
		},
	}
}

func pluginEnable(s streams) *cobra.Command {
	var f consent
	c := &cobra.Command{
		Use: "enable NAME", Short: "Take a package into use: agree to it, where nobody has yet", Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				cand, err := a.Enable(c.Context(), args[0])
				if err != nil {
					return err
				}
				if cand != nil {
					defer cand.Close()
					return f.install(c.Context(), s, cand)
				}
				_, err = fmt.Fprintf(s.out, "%s is enabled\n", args[0])
				return err
			})
		},
	}
	f.register(c)
	return c
}

func pluginDisable(s streams) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "disable NAME", Short: "Take a package out of use, and keep it and its grants", Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				if err := a.Disable(c.Context(), args[0], reason); err != nil {
					return err
				}
				_, err := fmt.Fprintf(s.out, "%s is disabled; `elfhost plugin enable %s` takes it into use again\n", args[0], args[0])
				return err
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for whoever looks later")
	return c
}

func pluginRemove(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME...", Short: "Remove packages, and what was granted to them", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return withApp(c.Context(), s, func(a *app.App) error {
				for _, name := range args {
					if err := a.RemovePackage(c.Context(), name); err != nil {
						return err
					}
					fmt.Fprintf(s.out, "%s is removed\n", name)
				}
				return nil
			})
		},
	}
}

func pluginPin(s streams) *cobra.Command {
	var reason string
	var off bool
	c := &cobra.Command{
		Use: "pin NAME --reason WHY | pin NAME --off", Short: "Keep a package at its version, and say why", Args: exactly(1, "one package"),
		RunE: func(c *cobra.Command, args []string) error {
			if off == (reason != "") {
				return fault.New("E1001", "--reason says why it is pinned, --off lets it go", "give either --reason or --off")
			}
			return withApp(c.Context(), s, func(a *app.App) error {
				if err := a.HoldPackage(c.Context(), args[0], reason); err != nil {
					return err
				}
				text := "%s stays at its version: %s\n"
				if off {
					text = "%s may be updated%s\n"
				}
				_, err := fmt.Fprintf(s.out, text, args[0], term.Line(reason))
				return err
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why it is not to be updated")
	c.Flags().BoolVar(&off, "off", false, "let it be updated again")
	return c
}
