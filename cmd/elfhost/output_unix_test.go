//go:build unix

package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestOutputIsWrittenWholeAndReplacesNoDevice(t *testing.T) {
	dir := t.TempDir()
	text := func(s string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
	}
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := writeOutput(file, 0o600, text("first")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink("file", link), syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := writeOutput(link, 0o600, text("second")); err != nil {
		t.Fatal(err)
	}
	st, err := os.Lstat(link)
	if b, _ := os.ReadFile(file); err != nil || st.Mode().Type() != os.ModeSymlink || string(b) != "second" {
		t.Errorf("through a link: %v, %q, %v", st.Mode(), b, err)
	}

	broken := func(w io.Writer) error { _ = text("half")(w); return errors.New("broken") }
	if err := writeOutput(file, 0o600, broken); err == nil {
		t.Error("an error was lost")
	}
	if b, _ := os.ReadFile(file); string(b) != "second" {
		t.Errorf("half a file: %q", b)
	}

	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(pipe)
		got <- string(b)
	}()
	if err := writeOutput(pipe, 0o600, text("third")); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(pipe); err != nil || st.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("the pipe is gone: %v", err)
	}
	if s := <-got; s != "third" {
		t.Errorf("the pipe got %q", s)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".elfhost-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
