package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/internal/config"
	"github.com/elfhost/elfhost/internal/fault"
)

func pluginCache(s streams) *cobra.Command {
	c := &cobra.Command{
		Use: "cache", Short: "What was compiled for this machine", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(pluginCachePrune(s))
	return c
}

func pluginCachePrune(s streams) *cobra.Command {
	var older time.Duration
	var keep int64
	c := &cobra.Command{
		Use: "prune", Short: "Remove machine code that nobody used for a while", Args: noArgs,
		Long: "Remove the machine code of modules that was not used for --older, and then the longest unused until --keep MiB\nare left. A plugin whose code is gone is compiled again at its next call, or by `elfhost plugin warm`.",
		RunE: func(c *cobra.Command, _ []string) error {
			paths, err := config.FindPaths(os.Getenv)
			if err != nil {
				return fault.Wrap("E1002", "", err)
			}
			if keep > 0 {
				keep <<= 20
			}
			if older < 0 {
				return fault.New("E1001", "for example --older 720h", "--older is not negative")
			}
			p, err := sandbox.Prune(filepath.Join(paths.Cache, "wasm"), older, keep)
			if err != nil {
				return fault.Wrap("E1501", "", err)
			}
			fmt.Fprintf(s.out, "removed the code of %d module(s), %s; %d left, %s\n",
				p.Removed, bytesText(p.RemovedBytes), p.Kept, bytesText(p.KeptBytes))
			return nil
		},
	}
	c.Flags().DurationVar(&older, "older", 30*24*time.Hour, "code that was not used for this long")
	c.Flags().Int64Var(&keep, "keep", -1, "MiB to keep at the most; -1: no bound")
	return c
}
