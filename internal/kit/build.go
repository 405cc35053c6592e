package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Module is the file that Build makes.
const Module = "plugin.wasm"

// ErrNoToolchain is the error of a build whose compiler is not there.
var ErrNoToolchain = errors.New("the compiler is not installed")

// Build compiles the project in dir to plugin.wasm there. What the compiler
// says goes to log.
func Build(ctx context.Context, dir string, log io.Writer) (string, error) {
	out := filepath.Join(dir, Module)
	if !exists(filepath.Join(dir, "go.mod")) && !hasGo(dir) {
		if exists(out) {
			return out, nil // built by the author's own means
		}
		return "", fmt.Errorf("%q holds no Go sources, and no %s that something else built", dir, Module)
	}
	// Written beside and renamed: a build that fails leaves the last one.
	tmp := out + ".new"
	defer os.Remove(tmp)
	abs, err := filepath.Abs(tmp)
	if err != nil {
		return "", err
	}
	if err := goTool(ctx, dir, log, []string{"GOOS=wasip1", "GOARCH=wasm"},
		"build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", abs, "."); err != nil {
		return "", err
	}
	return out, os.Rename(tmp, out)
}

// TestNative runs the project's own tests.
func TestNative(ctx context.Context, dir string, log io.Writer) error {
	if !hasGo(dir) {
		return nil
	}
	return goTool(ctx, dir, log, nil, "test", "-count=1", ".")
}

func goTool(ctx context.Context, dir string, log io.Writer, env []string, args ...string) error {
	gobin, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf("go is not on PATH (%s): %w; https://go.dev/dl has it, 1.24 or newer", os.Getenv("PATH"), ErrNoToolchain)
	}
	cmd := exec.CommandContext(ctx, gobin, args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"), env...)
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err = cmd.Run()
	if _, werr := log.Write(text.Bytes()); err == nil {
		err = werr
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go %s: %w", args[0], err)
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func hasGo(dir string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	return err == nil && len(names) > 0
}
