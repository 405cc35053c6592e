package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/demo"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func demoVerb(s streams) *cobra.Command {
	return &cobra.Command{
		Use: "demo", Short: "See the whole path at work, without a key", Args: noArgs,
		Long: `Run an agent's turn with a scripted model and real tools: a file is read, a page
is fetched by a Wasm plugin from a server on this machine, a private address is
refused, a command is asked about in a terminal of the demo's own, and the audit
log is verified. Nothing of yours is read or changed.`,
		RunE: func(c *cobra.Command, _ []string) error {
			self, err := os.Executable()
			if err != nil {
				return err
			}
			err = demo.Run(c.Context(), demo.Options{Out: s.out, Style: term.StyleOf(s.out, os.Getenv), Receipt: receiptLine, Compiler: self})
			return fault.Wrap("E1503", "`elfhost doctor` checks the machine", err)
		},
	}
}
