// Docgen writes the parts of docs/ that are made from the code: the tools, the
// error codes, the configuration. With -check it writes nothing and fails if
// a file is not what the code would make.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elfhost/elfhost/builtins/outline"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// children are the verbs of helper processes, which a session starts from the
// program that it is part of.
var children = map[string]func([]string) int{
	reach.SandboxVerb: reach.SandboxMain,
	outline.Verb:      func([]string) int { return outline.Child(os.Stdin, os.Stdout, os.Stderr) },
	compile.Verb:      func(args []string) int { return compile.Child(args, os.Stdin, os.Stderr) },
}

func main() {
	if len(os.Args) > 1 {
		if child, ok := children[os.Args[1]]; ok {
			os.Exit(child(os.Args[2:]))
		}
	}
	os.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent") // no real notification for an example
	check := flag.Bool("check", false, "fail if a file would change")
	flag.Parse()
	if err := run(context.Background(), "docs", *check); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// pages are the generated files.
var pages = map[string]func(context.Context) ([]byte, error){
	"tools.md":  tools,
	"errors.md": errorCodes,
	"config.md": configKeys,
}

func run(ctx context.Context, dir string, check bool) error {
	for name, make := range pages {
		want, err := make(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		path := filepath.Join(dir, name)
		have, _ := os.ReadFile(path)
		if bytes.Equal(have, want) {
			continue
		}
		if check {
			return fmt.Errorf("%s is not up to date: run make docs", path)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			return err
		}
	}
	return nil
}
