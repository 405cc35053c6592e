package main

import (
	"fmt"
	"os"

	"github.com/elfhost/elfhost/builtins/outline"
)

// outlineChild is the process that parses source files for file_outline. It
// ends with its standard input.
func outlineChild(args []string) int {
	if len(args) != 0 {
		fmt.Fprintln(os.Stderr, "elfhost: error: "+outline.Verb+" is started by elfhost itself")
		return 2
	}
	return outline.Child(os.Stdin, os.Stdout, os.Stderr)
}
