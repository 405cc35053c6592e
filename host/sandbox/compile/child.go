package compile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Verb is the hidden first argument that makes the program a compiler.
const Verb = "__compile"

// Exit codes of the child.
const (
	exitRejected = 3
	exitSetup    = 4
)

// maxMessage bounds what is kept of the child's complaint.
const maxMessage = 2 << 10

// lastWords is what reading the rest of the complaint may take after the child's
// end. It is there in a moment, but where this process waits for a processor.
const lastWords = time.Minute

// spawn runs the child over module; its output goes to dir.
func spawn(ctx context.Context, module []byte, dir string, o Options) error {
	l := o.Limits.withDefaults()
	self := o.Self
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			return fmt.Errorf("%w: %w", ErrChild, err)
		}
	}
	wall, cancel := context.WithTimeout(ctx, l.Wall)
	defer cancel()
	cmd := exec.CommandContext(wall, self, Verb, dir, strconv.FormatInt(l.Memory, 10),
		strconv.FormatInt(int64((l.CPU+time.Second-1)/time.Second), 10), strconv.FormatInt(l.Output, 10))
	cmd.Env = []string{} // not nil, which would mean this process's own
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(module)
	message := &tail{}
	cmd.Stderr = message
	cmd.WaitDelay = lastWords
	cmd.SysProcAttr = attributes()
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wall.Err() != nil:
		return fmt.Errorf("%w: it ran for %v", ErrLimit, l.Wall)
	}
	return explain(err, cmd.ProcessState, message.String(), l)
}

// explain says why the child ended.
func explain(err error, state *os.ProcessState, message string, l Limits) error {
	if state == nil {
		return fmt.Errorf("%w: %w", ErrChild, err)
	}
	switch used := state.UserTime() + state.SystemTime(); {
	case state.ExitCode() == exitRejected:
		return fmt.Errorf("%w: %s", ErrRejected, message)
	case state.ExitCode() == -1 && used >= l.CPU-time.Second:
		return fmt.Errorf("%w: it used %v of processor time", ErrLimit, l.CPU)
	case strings.Contains(message, "file too large"): // EFBIG
		return fmt.Errorf("%w: it gives more than %d MiB of machine code", ErrLimit, l.Output>>20)
	case strings.Contains(message, "out of memory") || strings.Contains(message, "cannot allocate memory"):
		return fmt.Errorf("%w: it needed more than %d MiB of memory", ErrLimit, l.Memory>>20)
	}
	if message != "" {
		message = ": " + message
	}
	return fmt.Errorf("%w: %w%s", ErrChild, err, message)
}

// Child compiles the module on stdin into a directory, and returns the exit
// code. args are what spawn passes after Verb.
func Child(args []string, stdin io.Reader, stderr io.Writer) int {
	fail := func(code int, err error) int {
		fmt.Fprintln(stderr, err)
		return code
	}
	if len(args) != 4 {
		return fail(exitSetup, errors.New("this is an internal command"))
	}
	var n [3]int64
	for i := range n {
		v, err := strconv.ParseInt(args[i+1], 10, 64)
		if err != nil || v <= 0 {
			return fail(exitSetup, fmt.Errorf("bad limit %q", args[i+1]))
		}
		n[i] = v
	}
	debug.SetMemoryLimit(n[0] / 2) // collect harder before the hard limit
	if err := limit(n[0], n[1], n[2]); err != nil {
		return fail(exitSetup, fmt.Errorf("setting limits: %w", err))
	}
	if err := confine(args[0]); err != nil {
		return fail(exitSetup, fmt.Errorf("confining the compiler: %w", err))
	}
	module, err := io.ReadAll(stdin)
	if err != nil {
		return fail(exitSetup, err)
	}
	var no *rejected
	switch err := compileInto(context.Background(), args[0], module); {
	case errors.As(err, &no):
		return fail(exitRejected, no)
	case err != nil:
		return fail(exitSetup, err)
	}
	return 0 // the process ends: nothing is worth closing
}

// tail keeps the first bytes of the child's complaint.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	if n := maxMessage - len(t.b); n > 0 {
		t.b = append(t.b, p[:min(n, len(p))]...)
	}
	return len(p), nil
}

// String is one printable line: names in it were chosen by the module.
func (t *tail) String() string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(t.b)), "\n")
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(line, "?"))
}
