package reach

import (
	"context"
	"os"
	"os/exec"
)

// Sandbox is the kernel sandbox in force. The zero value is none.
type Sandbox struct {
	Kind string // "bubblewrap", "namespaces", "landlock"; "" is none
	// Tried holds the rungs above the one in force, and why each does not work.
	Tried []rung

	bwrap  string // path of the program
	system []bind // as it was when the rung was tried

	recalled *recalled // nil: it was tried by this process
}

// rung is one way to hold a program.
type rung struct {
	Kind string
	Why  string // why it does not work here
	Fix  string // what would make it work; "" when nothing is known
}

// The rungs, strongest first.
const (
	Bubblewrap = "bubblewrap"
	Namespaces = "namespaces"
	Landlock   = "landlock"
)

// ProbeSandbox finds the strongest rung that works on this machine by running
// a program under it: some 10 ms. The answer holds for the life of the process.
func ProbeSandbox(ctx context.Context) Sandbox {
	var s Sandbox
	for _, kind := range []string{Bubblewrap, Namespaces, Landlock} {
		found, why, fix := try(ctx, kind)
		if why == "" {
			s.Kind, s.bwrap, s.system = found.Kind, found.bwrap, found.system
			return s
		}
		s.Tried = append(s.Tried, rung{kind, why, fix})
	}
	return s
}

// SandboxVerb is the argument by which main recognises SandboxMain. A Keeper
// needs a main that does, too.
const SandboxVerb = "__sandbox"

// SandboxMain is the hidden verb `elfhost __sandbox`: the helper that confines
// itself and then becomes the program. args is what follows the verb. It
// returns an exit code. It is the process of a Keeper as well.
func SandboxMain(args []string) int {
	if len(args) == 1 && args[0] == keeperKind {
		return keeperMain()
	}
	return sandboxMain(args)
}

// plain is a command without a kernel sandbox.
func plain(p Program) (*exec.Cmd, func(), error) {
	cmd := exec.Command(p.Argv[0])
	cmd.Args, cmd.Dir, cmd.Env = p.Argv, p.Dir, p.Env
	return cmd, func() {}, nil
}

// self is this program, which is its own helper.
func self() (string, error) { return os.Executable() }
