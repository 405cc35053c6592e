package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func pluginSync(s streams) *cobra.Command {
	var f consent
	var dir string
	var exact bool
	c := &cobra.Command{
		Use: "sync [FILE]", Short: "Make this machine match a lock file",
		Long: `Install exactly the packages that a lock file names, to the byte: by default the
project's .elfhost/elfhost.lock. Bytes that are here already are not fetched, so it
works without a network where they are. What the file says was granted is a wish:
you see it with each package, and agree to all of it once, or to nothing.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			a, err := (&sessionFlags{dir: dir, noInput: true}).session(ctx, s, app.Options{})
			if err != nil {
				return err
			}
			defer a.Close(context.WithoutCancel(ctx))
			file := app.ProjectLock(a.Dir)
			if len(args) == 1 {
				file = args[0]
			}
			plan, err := a.PlanSync(ctx, file)
			if err != nil {
				return err
			}
			defer plan.Close()
			if err := f.sync(ctx, s, plan); err != nil {
				return err
			}
			return extras(ctx, s, a, plan, exact)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.accept, "accept", "", "for scripts: agree to exactly the screen with this digest")
	fl.BoolVar(&f.noInput, "no-input", false, "never ask")
	fl.StringVarP(&dir, "dir", "C", "", "the project's folder")
	fl.BoolVar(&exact, "exact", false, "also remove the packages that the file does not name")
	return c
}

func (f *consent) sync(ctx context.Context, s streams, plan *app.Sync) error {
	if len(plan.Wants) == 0 {
		_, err := fmt.Fprintf(s.out, "all %d packages are as the lock file has them\n", len(plan.Same))
		return err
	}
	if !plan.Quiet() {
		if err := f.agree(ctx, s, plan); err != nil {
			return err
		}
	}
	return plan.Apply(ctx, func(c *app.Candidate) {
		fmt.Fprintf(s.out, "%s installed %s (%s)\n", c.Manifest.Name, term.Line(c.Manifest.Version), c.Pin.Digest.Short())
	}, func(p abi.Progress) {
		if p.Message != "" {
			fmt.Fprintf(s.err, "elfhost: %s\n", term.Line(p.Message))
		}
	})
}

func (f *consent) agree(ctx context.Context, s streams, plan *app.Sync) error {
	text, err := plan.Screen()
	if err != nil {
		return err
	}
	digest, err := plan.Accept()
	if err != nil {
		return err
	}
	switch {
	case f.accept == string(digest):
		return nil
	case f.accept != "" || f.noInput || !term.IsTerminal(s.in):
		fmt.Fprint(s.err, text)
		if f.accept != "" {
			return fault.New("E1327", "the screen above has the digest "+string(digest), "--accept names another screen than that of this lock file")
		}
		return fault.New("E1326", "a script agrees with --accept "+string(digest), "the lock file grants rights, and nobody was there to agree: nothing was installed")
	}
	p := &term.Prompt{In: s.in, Out: s.err, Style: term.StyleOf(s.err, os.Getenv)}
	n, err := p.Choose(ctx, text, []string{"install all, with the grants of the lock file", "no"}, 1)
	if err == nil && n != 0 {
		err = fault.New("E1202", "", "nothing was installed")
	}
	return err
}

// extras are the packages that the file does not name.
func extras(ctx context.Context, s streams, a *app.App, plan *app.Sync, remove bool) error {
	for _, name := range plan.Extra {
		if !remove {
			fmt.Fprintf(s.err, "elfhost: note: %s is installed, and not in the lock file; --exact removes it\n", name)
			continue
		}
		if err := a.RemovePackage(ctx, name); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s is removed\n", name)
	}
	return nil
}
