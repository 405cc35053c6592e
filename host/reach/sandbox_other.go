//go:build !linux

package reach

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

func try(context.Context, string) (Sandbox, string, string) {
	return Sandbox{}, "there is no kernel sandbox for " + runtime.GOOS + " in this build", ""
}

// sandboxFacts is "": there is nothing to be tried that takes time.
func sandboxFacts() string { return "" }

func (s Sandbox) command(p Program) (*exec.Cmd, func(), error) { return plain(p) }

func sandboxMain([]string) int {
	fmt.Fprintln(os.Stderr, "elfhost: error: the sandbox helper works on Linux only")
	return 1
}
