package kit_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/elfhost/elfhost/internal/kit"
)

// Two builds of one folder, as of `plugin dev` and `plugin build`, do not take
// each other's file away.
func TestTwoBuildsAtOnce(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the compiler of this test is a shell script")
	}
	bin, dir := t.TempDir(), t.TempDir()
	compiler := "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\necho module >\"$2\"\nmkdir \"$0.$$\"\nuntil [ \"$(ls -d \"$0\".* | wc -l)\" -ge 2 ]; do sleep 0.01; done\n"
	if err := errors.Join(os.WriteFile(filepath.Join(bin, "go"), []byte(compiler), 0o700),
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n"), 0o600), os.WriteFile(filepath.Join(dir, "main.go"), []byte("package main\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	done := make(chan error)
	for range 2 {
		go func() { _, err := kit.Build(t.Context(), dir, io.Discard); done <- err }()
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, kit.Module+"*"))
	if err != nil || len(left) != 1 {
		t.Errorf("left: %q, %v", left, err)
	}
}
