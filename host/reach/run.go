package reach

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Runner starts programs for a grant: empty stdin, a clean environment, an own
// session and process group that is killed whole. Its zero value runs without a
// kernel sandbox. Safe for concurrent use.
type Runner struct {
	Sandbox Sandbox
	// Terminal, if set, takes the programs of Run in place of Sandbox. Those of
	// Start, which have no caller that waits, stay here.
	Terminal Terminal
	// Keeper, if set, ends the programs when this process is killed. Without one
	// that happens on Linux to a program, not to its children, and else to none.
	Keeper *Keeper
}

// Program is what to run.
type Program struct {
	Argv []string // Argv[0] is an absolute path, or a name looked up in Env's PATH
	Call string   // the call that runs it, for a Terminal; may be ""
	Dir  string   // absolute host path
	// Env is the whole environment, "K=V"; nil: CleanEnv.
	Env   []string
	Stdin io.Reader // nil: empty
	// Use is what the rights are asked; zero: exec of Argv, NUL-separated.
	Use policy.Use

	Pty     bool          // one stream on a terminal of 80×24 (Unix)
	Timeout time.Duration // 0: none. At its end the group gets SIGTERM, then SIGKILL
	// Grace is how long children that hold its output are waited for after the
	// program's own exit; 0 is 100 ms. Then they are killed: nothing outlives it.
	Grace time.Duration

	Output int    // bytes kept, head and tail; 0 is 100 KiB
	Log    string // host path of a new file for the whole output; "": none
	LogCap int64  // bytes of Log; 0 is 64 MiB. At the cap the program is stopped
	// Stream, if set, sees the output as it comes, in whole runes. It must not block.
	Stream func([]byte)
	// Stdout, if set, takes standard output alone, byte for byte: a protocol.
	// Output, Log and Stream then hold standard error. While a write blocks, so
	// does the program; a write that fails ends the copying. Not with Pty.
	Stdout io.Writer

	// For the sandbox, absolute host paths. Dir and a private /tmp are
	// writable unless ReadOnly, protected names in Dir aside; what is in neither
	// list can be read only if it is part of the system (/usr, /etc/ssl and so on).
	Write, Read []string
	ReadOnly    bool
	Network     bool
	Pids        int // processes at once; 0 is 256 (Linux: counted every few ms)
}

// Exit is how a program ended.
type Exit struct {
	Code      int    // -1 when it was killed by a signal
	Signal    string // "SIGKILL"
	TimedOut  bool
	LogFull   bool   // stopped at LogCap
	TooMany   bool   // stopped at Pids
	Output    []byte // both streams; the head and the tail, joined, when Truncated
	Head      int    // where in Output the cut is when Truncated
	Truncated bool
	Total     int64 // bytes written, kept or not
	Wall      time.Duration
	Sandbox   string // rung in force: "bubblewrap", "namespaces", "landlock", "none", or InTerminal
}

// Signalled reads a status of 128 and more as a signal's where the program ran in
// namespaces of its own: there the first process reports one so. It cannot be told
// from a program that ends with such a status by itself.
func (e Exit) Signalled() Exit {
	if n := e.Code - 128; n > 0 && (e.Sandbox == Bubblewrap || e.Sandbox == Namespaces) && signalName(n) != "" {
		e.Code, e.Signal = -1, signalName(n)
	}
	return e
}

// Run runs a program to its end. A program that fails is an Exit, not an error;
// an error means that it did not start, was denied, or that the context ended
// (then the Exit still holds its output).
func (r *Runner) Run(ctx context.Context, rights policy.Rights, p Program) (Exit, error) {
	if r.Terminal != nil {
		return r.inTerminal(ctx, rights, p)
	}
	j, err := r.Start(ctx, rights, p)
	if err != nil {
		return Exit{}, err
	}
	return j.Wait(ctx)
}

const (
	defaultOutput = 100 << 10
	defaultLogCap = 64 << 20
	defaultGrace  = 100 * time.Millisecond
	defaultPids   = 256
	killAfter     = 2 * time.Second // between SIGTERM and SIGKILL
)

// Start starts a program that goes on after Start's caller has left: ctx
// bounds the start alone. Wait for the job, or Kill it and then Wait.
func (r *Runner) Start(ctx context.Context, rights policy.Rights, p Program) (*Job, error) {
	if err := r.prepare(ctx, rights, &p); err != nil {
		return nil, err
	}
	box := r.Sandbox.Verify(ctx)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if box.Kind == "" && r.Sandbox.Kind != "" { // nothing runs unheld that was to be held
		return nil, fmt.Errorf("the kernel sandbox %s worked a while ago and does not any more, and no other does; a new session finds out what can be done: %w", r.Sandbox.Kind, abi.ErrUnavailable)
	}
	cmd, clean, err := box.command(p)
	if err != nil {
		return nil, fmt.Errorf("preparing the sandbox: %w", err)
	}
	j := &Job{cmd: cmd, sandbox: box.Kind, clean: clean}
	if j.sandbox == "" {
		j.sandbox = "none"
	}
	j.group = group{mark: rand.Text(), held: j.sandbox == Bubblewrap || j.sandbox == Namespaces}
	if !j.group.held {
		j.keeper = r.Keeper
	}
	if err := j.launch(p); err != nil {
		clean()
		return nil, fmt.Errorf("starting %q: %w", p.Argv[0], err)
	}
	return j, nil
}

// lookPath finds a program in the PATH it will run with, never in the current folder.
func lookPath(name string, env []string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	if strings.ContainsAny(name, `/\`) {
		return "", fmt.Errorf("program %q is neither absolute nor a plain name: %w", name, abi.ErrInvalid)
	}
	for _, dir := range filepath.SplitList(lookup(env, "PATH")) {
		if filepath.IsAbs(dir) {
			if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("no program %q in PATH: %w", name, errors.Join(abi.ErrNotFound, exec.ErrNotFound))
}

func lookup(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, _ := strings.Cut(env[i], "="); k == key || runtime.GOOS == "windows" && strings.EqualFold(k, key) {
			return v
		}
	}
	return ""
}

// CleanEnv is the environment of programs: where things are and which language
// they speak, nothing that could be a secret, and no pager or editor to wait for.
func CleanEnv() []string {
	keep := []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}
	if runtime.GOOS == "windows" {
		keep = []string{"Path", "SystemRoot", "SystemDrive", "ComSpec", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "ProgramFiles", "NUMBER_OF_PROCESSORS"}
	}
	var env []string
	for _, k := range keep {
		if v := os.Getenv(k); v != "" {
			env = append(env, k+"="+v)
		}
	}
	if runtime.GOOS != "windows" && os.Getenv("PATH") == "" {
		env = append(env, "PATH=/usr/local/bin:/usr/bin:/bin")
	}
	return append(env, "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "NO_COLOR=1")
}
