package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Start measures how long `elfhost tools` takes with all bundled plugins and
// a warm cache, against `elfhost version`: nothing may be compiled or
// instantiated that is not called.
func Start(ctx context.Context, w io.Writer) error {
	dir, err := os.MkdirTemp("", "elf-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "elfhost")
	build := exec.CommandContext(ctx, "go", "build", "-o", bin, "./cmd/elfhost")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building elfhost: %w", err)
	}
	var failed error
	run := func(verb string) func() {
		return func() {
			cmd := exec.CommandContext(ctx, bin, verb)
			cmd.Env = append(os.Environ(), "ELFHOST_HOME="+filepath.Join(dir, "home"))
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil && failed == nil {
				failed = fmt.Errorf("elfhost %s: %w: %s", verb, err, out)
			}
		}
	}
	run("tools")()
	took := Times(21, 1, run("tools"), run("version"))
	if failed != nil {
		return failed
	}
	Figure(w, "start of `tools` to `version`", float64(took[0])/float64(took[1]), 3)
	return nil
}
