// Command tools prints the figures of `make bench-tools`, or of the parts that
// its arguments name: read, edit, outline, shell, search.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/bench"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == reach.SandboxVerb {
		os.Exit(reach.SandboxMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == outline.Verb {
		os.Exit(outline.Child(os.Stdin, os.Stdout, os.Stderr))
	}
	if err := bench.Tools(context.Background(), os.Stdout, os.Args[1:]...); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}
