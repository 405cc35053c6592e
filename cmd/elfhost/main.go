// Command elfhost runs agents whose tools are WebAssembly modules in a sandbox.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
)

func main() {
	if child, ok := children[first(os.Args[1:])]; ok {
		os.Exit(child(os.Args[2:]))
	}
	ctx, stop := interruptible()
	code := run(ctx, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, os.Args[1:])
	stop()
	os.Exit(code)
}

// interruptible is a context that ends with the first Ctrl-C; a second one ends
// what does not mind the first.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// streams are what a verb reads and writes: the answer alone goes to out.
type streams struct {
	in       *os.File
	out, err io.Writer
	offline  *bool // --offline, which every verb has; nil: was not read
	keeper   *reach.Keeper
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, s streams, args []string) int {
	s.keeper = &reach.Keeper{}
	defer s.keeper.Close()
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return fault.ExitDone
	}
	var silent *exitStatus
	if errors.As(err, &silent) {
		return silent.code
	}
	report(s.err, err)
	return fault.Exit(err)
}

// exitStatus ends the program without another word: the verb has said it.
type exitStatus struct{ code int }

func (e *exitStatus) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// report prints an error the way every verb does.
func report(w io.Writer, err error) {
	if errors.Is(err, context.Canceled) {
		err = fault.Wrap("E1504", "", err)
	}
	var f *fault.Error
	code, hint := "", ""
	if errors.As(err, &f) {
		code, hint = " ["+f.Code+"]", f.Hint
	}
	fmt.Fprintf(w, "elfhost: error: %s%s\n", term.Lines(strings.TrimSpace(err.Error())), code)
	if hint != "" {
		fmt.Fprintf(w, "elfhost: hint: %s\n", term.Lines(hint))
	}
}
