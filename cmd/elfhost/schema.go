package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
	"github.com/spf13/cobra"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/internal/fault"
)

// schemas are the shapes that programs may rely on, made from the Go types
// that are printed.
var schemas = map[string]struct {
	doc   string
	shape any
}{
	"events":   {"a line of `run --output-format stream-json`, the last one excepted", &streamed{}},
	"result":   {"the object of `run --output-format json`, and the last line of stream-json", &outcome{}},
	"tool":     {"a row of `tools --json`", &listed{}},
	"receipt":  {"a receipt of a sandboxed call", &abi.Receipt{}},
	"call":     {"the object of `call --json`", &abi.Result{}},
	"audit":    {"a line of `audit show --json`", &audit.Record{}},
	"manifest": {"elf.toml, as JSON", &abi.Manifest{}},
}

func schemaVerb(s streams) *cobra.Command {
	names := slices.Sorted(maps.Keys(schemas))
	return &cobra.Command{
		Use: "schema [NAME]", Short: "Print the JSON Schema of what elfhost prints",
		Args: cobra.MaximumNArgs(1), ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				for _, n := range names {
					fmt.Fprintf(s.out, "%-9s %s\n", n, schemas[n].doc)
				}
				return nil
			}
			sc, ok := schemas[args[0]]
			if !ok {
				return fault.New("E1001", "there are: "+strings.Join(names, ", "), "there is no schema %q", args[0])
			}
			r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, AllowAdditionalProperties: true}
			out := r.Reflect(sc.shape)
			out.Title = "elfhost " + args[0]
			out.Description = sc.doc
			enc := json.NewEncoder(s.out)
			enc.SetIndent("", "  ")
			return enc.Encode(out)
		},
	}
}
