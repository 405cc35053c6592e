package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/app"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/kit"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/pdk/golden"
)

func pluginNew(s streams) *cobra.Command {
	var lang, example string
	c := &cobra.Command{
		Use: "new NAME", Short: "Make a plugin that builds, tests and runs, without a network",
		Long: "Make a folder NAME with a plugin in it. Its last part is the plugin's name. The kit that it is built with lies in it,\nso nothing is fetched. --example save begins with HTTP and files rather than a greeting.",
		Example: `  elfhost plugin new my-tool
  elfhost plugin new my-tool --lang js --example save`,
		Args: exactly(1, "one name"),
		RunE: func(_ *cobra.Command, args []string) error {
			files, err := kit.New(args[0], lang, example)
			if err != nil {
				return fault.Wrap("E1001", "`elfhost plugin new my-tool` makes one in a new folder", fmt.Errorf("making %q: %w", args[0], err))
			}
			for _, f := range files {
				fmt.Fprintln(s.out, filepath.Join(args[0], f))
			}
			fmt.Fprintf(s.err, "elfhost: next: cd %s && elfhost plugin test\n", args[0])
			return nil
		},
	}
	c.Flags().StringVar(&lang, "lang", "go", strings.Join(kit.Languages(), ", "))
	c.Flags().StringVar(&example, "example", "hello", "what to begin with: "+strings.Join(kit.Examples(), ", "))
	return c
}

// folderArg is the folder that an author's verb works on.
func folderArg(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func atMostOne(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return exactly(1, "one folder")(c, args)
	}
	return nil
}

func pluginBuild(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "build [DIR]", Short: "Compile a plugin's sources to plugin.wasm", Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error { return build(c.Context(), s, folderArg(args)) },
	}
}

func build(ctx context.Context, s streams, dir string) error {
	start := time.Now()
	out, err := kit.Build(ctx, dir, s.err)
	var missing *kit.MissingToolchain
	if errors.As(err, &missing) {
		return fault.New("E1311", missing.Install, "building %q: %s is not there; looked in %s", dir, missing.Program, missing.Looked)
	}
	if err != nil {
		return fault.Wrap("E1311", "", fmt.Errorf("building %q: %w", dir, err))
	}
	st, err := os.Stat(out)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "elfhost: built %s, %s, in %v\n", out, bytesText(st.Size()), time.Since(start).Round(10*time.Millisecond))
	return nil
}

// author is a project that was built and loaded.
type author struct {
	*kit.Bench
	pkg   sandbox.Package
	in    sandbox.Inspection
	cases []golden.Case
}

func openAuthor(ctx context.Context, s streams, dir string) (*author, error) {
	if err := build(ctx, s, dir); err != nil {
		return nil, err
	}
	var a author
	var err error
	wrap := func(err error) error { return fault.Wrap("E1302", "", fmt.Errorf("plugin %q: %w", dir, err)) }
	if a.pkg, _, err = app.ReadPackage(dir); err != nil {
		return nil, wrap(err)
	}
	if a.cases, err = golden.Read(dir); err != nil {
		return nil, fault.Wrap("E1312", "`docs/plugin-authors.md` shows what a case holds", err)
	}
	if a.in, err = kit.Inspect(a.pkg); err != nil {
		return nil, wrap(err)
	}
	if err := asksForAll(dir, a.pkg, a.in); err != nil {
		return nil, err
	}
	paths, err := config.FindPaths(os.Getenv)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if a.Bench, err = kit.Open(ctx, a.pkg, self, cacheDir(paths)); err != nil {
		return nil, wrap(err)
	}
	return &a, nil
}

// asksForAll refuses a module that imports what its manifest does not ask for:
// no host would load it.
func asksForAll(dir string, pkg sandbox.Package, in sandbox.Inspection) error {
	missing := kit.Missing(pkg, in)
	if len(missing) == 0 {
		return nil
	}
	return fault.New("E1305", "`elfhost plugin dev` says what its cases need; add to "+filepath.Join(dir, "elf.toml")+" a [[needs]] with cap, scope and reason for each",
		"the module of %q imports %s, which its elf.toml does not ask for", dir, join(missing))
}

// runCases prints how the cases went, or only those that failed, and counts
// these. What a case that failed has logged is shown with it.
func runCases(ctx context.Context, s streams, b *kit.Bench, cases []golden.Case, all bool) (failed int) {
	var logged []string
	b.Log = func(x sandbox.LogLine) { logged = append(logged, logText(x)) }
	for _, c := range cases {
		logged = nil
		if err := b.Run(ctx, c); err != nil {
			failed++
			fmt.Fprintf(s.out, "FAIL  %s: %s\n", term.Line(c.Name), term.Line(err.Error()))
			for _, l := range logged {
				fmt.Fprintf(s.out, "      %s\n", l)
			}
		} else if all {
			fmt.Fprintf(s.out, "ok    %s\n", term.Line(c.Name))
		}
	}
	return failed
}

// logText is a line of a module's log, for people.
func logText(x sandbox.LogLine) string { return "log " + x.Level + ": " + term.Line(x.Text) }

func pluginTest(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "test [DIR]", Short: "Run a plugin's tests natively, and its cases in the sandbox", Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) (err error) {
			ctx, dir := c.Context(), folderArg(args)
			if err := kit.TestNative(ctx, dir, s.err); err != nil {
				return fault.Wrap("E1312", "", fmt.Errorf("the tests of %q: %w", dir, err))
			}
			a, err := openAuthor(ctx, s, dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, a.Close(context.WithoutCancel(ctx))) }()
			failed := runCases(ctx, s, a.Bench, a.cases, true)
			if failed > 0 {
				return fault.New("E1312", "", "%d of %d cases of %q failed", failed, len(a.cases), dir)
			}
			return nil
		},
	}
}

func pluginCheck(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "check [DIR]", Short: "Hold a plugin against what hosts and people will", Args: atMostOne,
		Long: "Check that a plugin asks for no more than it can use, that its schemas are valid, and that each of its cases answers as it\nshould, answers the same when it is replayed, and ends when it is cancelled.",
		RunE: func(c *cobra.Command, args []string) (err error) {
			ctx := c.Context()
			a, err := openAuthor(ctx, s, folderArg(args))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, a.Close(context.WithoutCancel(ctx))) }()
			found := kit.Check(ctx, a.Bench, a.in, a.cases)
			failed := 0
			for _, f := range found {
				if !f.OK {
					failed++
				}
				if asJSON {
					continue
				}
				mark := "ok   "
				if !f.OK {
					mark = "FAIL "
				}
				fmt.Fprintf(s.out, "%s %s\n", mark, term.Line(f.What))
				if f.Why != "" {
					fmt.Fprintf(s.out, "      %s\n", term.Line(f.Why))
				}
			}
			if asJSON {
				if err := json.NewEncoder(s.out).Encode(found); err != nil {
					return err
				}
			}
			if failed > 0 {
				return fault.New("E1312", "", "%d of %d checks failed", failed, len(found))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func pluginBench(s streams) *cobra.Command {
	var n int
	c := &cobra.Command{
		Use: "bench [DIR]", Short: "Measure a plugin's calls: time, fuel, memory", Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) (err error) {
			ctx := c.Context()
			if n < 1 {
				return fault.New("E1001", "", "-n is one call at least")
			}
			a, err := openAuthor(ctx, s, folderArg(args))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, a.Close(context.WithoutCancel(ctx))) }()
			if err := a.Plugin.Warm(ctx, nil); err != nil {
				return fault.Wrap("E1503", "", err)
			}
			fmt.Fprintf(s.out, "%-24s %10s %10s %12s %10s\n", "case", "median", "p95", "fuel", "memory")
			for _, x := range a.cases {
				if x.Recording != nil {
					continue
				}
				if err := benchCase(ctx, s, a, x, n); err != nil {
					return fault.Wrap("E1312", "", fmt.Errorf("the case %q: %w", x.Name, err))
				}
			}
			return nil
		},
	}
	c.Flags().IntVarP(&n, "count", "n", 100, "calls of each case")
	return c
}

func benchCase(ctx context.Context, s streams, a *author, x golden.Case, n int) error {
	times := make([]time.Duration, n)
	var last abi.Receipt
	for i := range times {
		start := time.Now()
		_, r, err := a.Call(ctx, x)
		if err != nil {
			return err
		}
		times[i], last = time.Since(start), r
	}
	slices.Sort(times)
	_, err := fmt.Fprintf(s.out, "%-24s %10v %10v %12d %10s\n", term.Line(x.Name), times[n/2].Round(time.Microsecond),
		times[n*95/100].Round(time.Microsecond), last.Fuel, bytesText(last.Memory))
	return err
}
