package reach

import (
	"context"
	"io"
	"time"

	"github.com/elfhost/elfhost/host/policy"
)

// Runner starts programs for a grant: empty stdin, a clean environment, an own
// process group that is killed whole. Its zero value runs without a kernel
// sandbox. Safe for concurrent use.
type Runner struct {
	Sandbox Sandbox
}

// Program is what to run.
type Program struct {
	Argv []string // Argv[0] is an absolute path, or a name looked up in Env's PATH
	Dir  string   // absolute host path
	// Env is the whole environment, "K=V"; nil: a clean default (PATH, HOME,
	// LANG, TERM=dumb and so on, never the host's secrets).
	Env   []string
	Stdin io.Reader // nil: empty
	// Use is what the rights are asked; zero: exec of Argv, NUL-separated.
	Use policy.Use

	Pty     bool          // one stream on a terminal of 80×24 (not on Windows)
	Timeout time.Duration // 0: none. At its end the group gets SIGTERM, then SIGKILL
	Grace   time.Duration // after the program's own exit, wait this long for children that hold its output; 0 is 100 ms

	Output int    // bytes kept, head and tail; 0 is 100 KiB
	Log    string // host path of a file for the whole output; "": none
	LogCap int64  // bytes of Log; 0 is 64 MiB. At the cap the program is stopped
	// Stream, if set, sees the output as it comes, in whole runes. It must not block.
	Stream func([]byte)

	// For the sandbox, absolute host paths. Dir and a private /tmp are always
	// writable unless ReadOnly; what is in neither list can be read only if it
	// is part of the system (/usr, /etc/ssl and so on).
	Write, Read []string
	ReadOnly    bool
	Network     bool
	Pids        int   // 0 is 256
	Memory      int64 // bytes of address space per process; 0: none
}

// Exit is how a program ended.
type Exit struct {
	Code      int    // -1 when it was killed by a signal
	Signal    string // "SIGKILL"
	TimedOut  bool
	LogFull   bool   // stopped at LogCap
	Output    []byte // valid runes where the program wrote such; head and tail when Truncated
	Truncated bool
	Total     int64 // bytes written, kept or not
	Wall      time.Duration
	Sandbox   string // rung in force: "bubblewrap", "namespaces", "landlock", "none"
}

// Run runs a program to its end. A program that fails is an Exit, not an error;
// an error means it did not start, was denied, or the context ended (then the
// Exit still holds its output).
func (r *Runner) Run(ctx context.Context, rights policy.Rights, p Program) (Exit, error) {
	j, err := r.Start(ctx, rights, p)
	if err != nil {
		return Exit{}, err
	}
	return j.Wait(ctx)
}

// Start starts a program that goes on after Start's caller has left: ctx
// bounds the start alone. Wait for the job, or Kill it and then Wait.
func (r *Runner) Start(ctx context.Context, rights policy.Rights, p Program) (*Job, error) {
	return r.start(ctx, rights, p)
}
