package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/config/manifest"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/pdk/golden"
)

// dev is a project that is built again at each change.
type dev struct {
	s     streams
	dir   string
	paths config.Paths
	self  string
	write bool // proposals go into elf.toml
	last  string
}

func pluginDev(s streams) *cobra.Command {
	d := dev{s: s}
	var once bool
	c := &cobra.Command{
		Use: "dev [DIR]", Short: "Build a plugin at each change, and put it into sessions that run", Args: atMostOne,
		Long: `Watch a plugin's sources. At each change build it, run its cases, say what they
asked for that elf.toml does not, and put the new build into every elfhost chat
and mcp serve that has this folder as --plugin.

What was granted to one build counts for the next while the needs in elf.toml
stay the same; when they change, it is asked again. So while dev runs, whoever
can change the sources acts within what you granted to the plugin.`,
		Example: `  elfhost plugin dev            # in one terminal
  elfhost chat --plugin .       # in another`,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			d.dir = folderArg(args)
			if d.paths, err = config.FindPaths(os.Getenv); err != nil {
				return fault.Wrap("E1002", "", err)
			}
			if d.self, err = os.Executable(); err != nil {
				return err
			}
			if once {
				return d.round(c.Context())
			}
			if _, ok := kit.LanguageOf(d.dir); !ok {
				return fault.New("E1311", "`elfhost plugin new` makes a project", "%q holds no sources of %s", d.dir, strings.Join(kit.Languages(), ", "))
			}
			fmt.Fprintf(s.err, "elfhost: watching %s; Ctrl-C ends it\n", d.dir)
			err = kit.Watch(c.Context(), d.dir, func(ctx context.Context) error {
				err := d.round(ctx)
				if err != nil && ctx.Err() == nil {
					report(s.err, err)
				}
				return nil // and wait for the next change
			})
			if c.Context().Err() != nil {
				return nil // that is how it ends
			}
			return err
		},
	}
	c.Flags().BoolVar(&d.write, "write", false, "add what the cases were seen to need to elf.toml")
	c.Flags().BoolVar(&once, "once", false, "build once, and end")
	return c
}

// round is one build and what follows. Sessions are told of it before there is
// machine code, which is most of the work: they interpret the build so long.
func (d *dev) round(ctx context.Context) error {
	if err := build(ctx, d.s, d.dir); err != nil {
		return err
	}
	pkg, _, err := app.ReadPackage(d.dir)
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	in, err := kit.Inspect(pkg)
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	cases, err := golden.Read(d.dir)
	if err != nil {
		return fault.Wrap("E1312", "`docs/plugin-authors.md` shows what a case holds", err)
	}
	missing := kit.Missing(pkg, in)
	if len(missing) == 0 {
		if err := d.keep(pkg); err != nil {
			return err
		}
		lacks, err := d.cases(ctx, pkg, cases)
		if !lacks {
			return err
		}
	}
	proposed, err := kit.Propose(ctx, pkg, cases, d.self, cacheDir(d.paths))
	if err != nil {
		return fault.Wrap("E1302", "", err)
	}
	if proposed = withMissing(proposed, missing); len(proposed) > 0 {
		return d.propose(proposed)
	}
	return fault.New("E1312", "", "cases of %q failed", d.dir)
}

// keep tells the sessions, once for each build.
func (d *dev) keep(pkg sandbox.Package) error {
	id := pkg.Digest + manifest.NeedsHash(pkg.Manifest.Needs)
	if d.last == id {
		return nil
	}
	again, err := app.KeepBuild(d.paths, d.dir, pkg)
	if err != nil {
		return fault.Wrap("E1501", "`elfhost doctor` checks the folders", err)
	}
	d.last = id
	if again {
		fmt.Fprintln(d.s.err, "elfhost: the needs changed: what was granted is asked again")
	}
	return nil
}

func (d *dev) propose(needs []abi.Need) error {
	if d.write {
		if err := kit.AddNeeds(d.dir, needs); err != nil {
			return fault.Wrap("E1311", "", err)
		}
		fmt.Fprintf(d.s.err, "elfhost: added to %s; say why in each reason:\n", filepath.Join(d.dir, "elf.toml"))
	} else {
		fmt.Fprintf(d.s.err, "elfhost: the plugin uses what %s does not ask for; add this, or run with --write:\n", filepath.Join(d.dir, "elf.toml"))
	}
	_, err := fmt.Fprint(d.s.out, term.Lines(kit.TOML(needs)))
	return err
}

// cases makes the build ready and runs the cases. lacks: some failed, or used what the manifest does not ask
// for, so it is worth finding out what it lacks.
func (d *dev) cases(ctx context.Context, pkg sandbox.Package, cases []golden.Case) (lacks bool, err error) {
	start := time.Now()
	b, err := kit.Open(ctx, pkg, d.self, cacheDir(d.paths))
	if err != nil {
		return false, fault.Wrap("E1302", "", err)
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	if err := b.Plugin.Warm(ctx, nil); err != nil {
		return false, fault.Wrap("E1302", "", err)
	}
	uncovered, err := b.Uncovered()
	if err != nil {
		return false, err
	}
	if failed := runCases(ctx, d.s, b, cases, false); failed > 0 || uncovered() {
		return true, nil
	}
	fmt.Fprintf(d.s.err, "elfhost: %d cases are well, in %v\n", len(cases), time.Since(start).Round(10*time.Millisecond))
	return false, nil
}

// withMissing adds what the module imports and no case used.
func withMissing(needs []abi.Need, missing []abi.Capability) []abi.Need {
	for _, c := range missing {
		seen := false
		for _, n := range needs {
			seen = seen || n.Cap == c
		}
		if !seen {
			needs = append(needs, abi.Need{Cap: c, Scope: []string{}})
		}
	}
	return needs
}

func cacheDir(p config.Paths) string { return filepath.Join(p.Cache, "wasm") }
