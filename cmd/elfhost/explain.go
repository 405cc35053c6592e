package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/internal/fault"
)

func explainVerb(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "explain [CODE]", Short: "Say what an error code means and what to do",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listCodes(s, asJSON)
			}
			code, ok := fault.Lookup(strings.ToUpper(args[0]))
			if !ok {
				return fault.New("E1001", "`elfhost explain` lists the codes", "there is no error code %q", args[0])
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(code)
			}
			_, err := fmt.Fprintf(s.out, "%s  %s  (exit status %d)\n\n%s\n", code.ID, code.Title, code.Exit, code.Explain)
			return err
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, c := range fault.Codes() {
				ids = append(ids, c.ID+"\t"+c.Title)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func listCodes(s streams, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(s.out).Encode(fault.Codes())
	}
	for _, c := range fault.Codes() {
		if _, err := fmt.Fprintf(s.out, "%s  %s\n", c.ID, c.Title); err != nil {
			return err
		}
	}
	return nil
}
