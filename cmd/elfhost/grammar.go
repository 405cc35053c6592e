package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/npm"
	"github.com/elfhost/elfhost/internal/term"
)

func grammarVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "grammar", Short: "Add languages to file_outline", Args: noArgs,
		Long: `Grammar packs are tree-sitter grammars as WebAssembly modules. They run in the
sandbox, and win over a parser of the binary for the same language.`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(grammarAdd(s), grammarList(s), grammarRemove(s))
	return c
}

func openGrammars() (*outline.Packs, error) {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return nil, fault.Wrap("E1002", "", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return app.Grammars(paths, self), nil
}

func grammarAdd(s streams) *cobra.Command {
	var exts []string
	c := &cobra.Command{
		Use: "add FILE|npm:PACKAGE[@VERSION][#LANGUAGE]", Short: "Install a grammar pack",
		Args: exactly(1, "one file or npm package"),
		Example: `  elfhost grammar add npm:@repomix/tree-sitter-wasms@0.1.17#rust
  elfhost grammar add ./tree-sitter-nim.wasm --ext .nim`,
		RunE: func(c *cobra.Command, args []string) error {
			module, source, err := grammarModule(c.Context(), args[0], *s.offline)
			if err != nil {
				return err
			}
			p, err := openGrammars()
			if err != nil {
				return err
			}
			defer p.Close()
			g, err := p.Add(c.Context(), module, source, exts)
			switch {
			case c.Context().Err() != nil:
				return context.Cause(c.Context())
			case errors.Is(err, outline.ErrExtensions):
				return fault.Wrap("E1001", "name the files with --ext, as in --ext .nim", err)
			case errors.Is(err, outline.ErrNoCore):
				return fault.Wrap("E1503", "`make grammars` needs clang and wasi-libc", err)
			case err != nil:
				return fault.Wrap("E1309", "build it with `tree-sitter build --wasm`, or take one from npm", fmt.Errorf("adding %q: %w", args[0], err))
			}
			fmt.Fprintf(s.out, "%s is ready: file_outline reads %s\n", term.Line(g.Language), term.Line(strings.Join(g.Extensions, " ")))
			fmt.Fprintf(s.out, "sha256 %s\n", g.Digest)
			return nil
		},
	}
	c.Flags().StringSliceVar(&exts, "ext", nil, "the extensions of the language's files, instead of the usual ones")
	return c
}

// grammarModule reads a file, or takes one out of an npm package.
func grammarModule(ctx context.Context, arg string, offline bool) (module []byte, source string, err error) {
	spec, ok, err := npm.Parse(arg)
	if err != nil {
		return nil, "", fault.Wrap("E1001", "", err)
	}
	if !ok {
		module, err = readModule(arg)
		if source, _ = filepath.Abs(arg); source == "" {
			source = arg
		}
		return module, source, err
	}
	if err := mayFetch(offline); err != nil {
		return nil, "", err
	}
	_, module, err = npm.Fetch(ctx, spec)
	switch {
	case ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case errors.Is(err, npm.ErrMissing):
		return nil, "", fault.Wrap("E1309", "install Node.js, or give the .wasm file itself", err)
	case err != nil:
		return nil, "", fault.Wrap("E1309", "", err)
	}
	return module, spec.String(), nil
}

// mayFetch refuses what another program would fetch, where no network may be used.
func mayFetch(offline bool) error {
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return fault.Wrap("E1002", "", err)
	}
	p, err := config.LoadPolicy(paths, "")
	if err != nil {
		return fault.Wrap("E1002", "", err)
	}
	c, err := config.Load(paths, "", nil)
	if err != nil {
		return fault.Wrap("E1002", "", err)
	}
	if offline || c.Offline || p.Network().Off {
		return fault.New("E1605", "give the .wasm file itself", "an npm package cannot be fetched")
	}
	return nil
}

func grammarList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "list", Short: "List the grammar packs", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := openGrammars()
			if err != nil {
				return err
			}
			list := p.List()
			if asJSON {
				if list == nil {
					list = []outline.Grammar{}
				}
				return json.NewEncoder(s.out).Encode(list)
			}
			if len(list) == 0 {
				fmt.Fprintln(s.out, "No grammar packs. `elfhost grammar add npm:PACKAGE` installs one.")
			}
			for _, g := range list {
				fmt.Fprintf(s.out, "%-12s %s  (%s, %s)\n", term.Line(g.ID), term.Line(g.Language), term.Line(strings.Join(g.Extensions, " ")), term.Line(g.Source))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func grammarRemove(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "remove LANGUAGE", Short: "Uninstall a grammar pack", Args: exactly(1, "one language"),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := openGrammars()
			if err != nil {
				return err
			}
			err = p.Remove(args[0])
			if errors.Is(err, outline.ErrNoPack) {
				return fault.Wrap("E1304", "`elfhost grammar list` shows them; those of the binary stay", err)
			}
			if err != nil {
				return fault.Wrap("E1501", "", err)
			}
			fmt.Fprintf(s.out, "%s is removed\n", term.Line(args[0]))
			return nil
		},
	}
}
