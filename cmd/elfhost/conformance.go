package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/conformance"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func conformanceVerb(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "conformance", Short: "Hold a host against the contract elf/1", Args: noArgs,
		Long: "The contract with modules (docs/abi.md) as a suite: modules, calls and what must come of them, hostile ones among them.\nAny host can be held against it that speaks a protocol of a line a request.",
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(conformanceRun(s), conformanceExport(s), conformanceServe(s))
	return c
}

func conformanceRun(s streams) *cobra.Command {
	var command, folder string
	var asJSON bool
	c := &cobra.Command{
		Use: "run [TEXT...]", Short: "Run the suite, or the cases whose names contain a text",
		Example: `  elfhost conformance run
  elfhost conformance run --host './my-host --elf' kv`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			suite, err := conformance.Default()
			if folder != "" {
				suite, err = conformance.Read(os.DirFS(folder))
			}
			if err != nil {
				return fault.Wrap("E1001", "`elfhost conformance export DIR` writes a suite", fmt.Errorf("reading the suite: %w", err))
			}
			words := strings.Fields(command)
			if len(words) == 0 {
				self, err := os.Executable()
				if err != nil {
					return err
				}
				words = []string{self, "conformance", "serve"}
			}
			p := &conformance.Process{Command: words, Stderr: s.err}
			defer func() { err = errors.Join(err, p.Close()) }()
			return runSuite(c.Context(), s, suite, p, args, asJSON)
		},
	}
	c.Flags().StringVar(&command, "host", "", "the program that is the host; elfhost itself without it")
	c.Flags().StringVar(&folder, "suite", "", "a folder with another suite")
	c.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each case")
	return c
}

func runSuite(ctx context.Context, s streams, suite *conformance.Suite, h conformance.Host, only []string, asJSON bool) error {
	ran, failed, skipped := 0, 0, 0
	err := suite.Run(ctx, h, only, func(o conformance.Outcome) {
		mark := "ok   "
		switch {
		case o.Skipped != "":
			skipped++
			mark = "skip "
		case !o.OK:
			failed++
			mark = "FAIL "
		}
		ran++
		if asJSON {
			_ = json.NewEncoder(s.out).Encode(o)
			return
		}
		fmt.Fprintf(s.out, "%s %s (section %s)\n", mark, term.Line(o.Name), o.Section)
		for _, text := range []string{o.Why, o.Skipped} {
			if text != "" {
				fmt.Fprintf(s.out, "      %s\n", term.Line(text))
			}
		}
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fault.Wrap("E1313", "", err)
	case ran == 0:
		return fault.New("E1001", "", "no case of the suite has such a name")
	case failed > 0:
		return fault.New("E1313", "", "%d of %d cases failed", failed, ran)
	}
	fmt.Fprintf(s.err, "elfhost: %d cases are well, %d left out\n", ran-skipped, skipped)
	return nil
}

func conformanceExport(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "export DIR", Short: "Write the suite to a folder: modules, sources, expectations", Args: exactly(1, "one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := conformance.Export(args[0]); err != nil {
				return fault.Wrap("E1001", "", fmt.Errorf("exporting the suite: %w", err))
			}
			fmt.Fprintln(s.out, args[0])
			return nil
		},
	}
}

func conformanceServe(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Be the host of a suite, over standard streams", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			own := &conformance.Own{Compiler: self, Cache: cacheDir(paths)}
			defer func() { err = errors.Join(err, own.Close(context.WithoutCancel(c.Context()))) }()
			return conformance.Serve(c.Context(), own, s.in, s.out)
		},
	}
}
