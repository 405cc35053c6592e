// Command sandbox prints the figures of `make bench-sandbox`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	var err error
	switch verb {
	case compile.Verb:
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	case bench.MCPVerb:
		err = bench.ServeMCP()
	case bench.OnceVerb:
		err = bench.Once(os.Stdin, os.Stdout)
	default:
		err = bench.Sandbox(context.Background(), os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
}
