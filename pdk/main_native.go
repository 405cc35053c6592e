//go:build !wasip1

package pdk

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// Main is the body of a plugin's main function. In a guest there is nothing to
// do: the host calls the exports. Natively, -describe prints the Description
// of the registered tools, which is kept beside the wasm.
func Main() {
	asked := flag.Bool("describe", false, "print the tools as JSON")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "This is a plugin of elfhost: build it with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared.")
		flag.PrintDefaults()
	}
	flag.Parse()
	if !*asked || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(describe()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
