package reach

import "context"

// Sandbox is the kernel sandbox in force. The zero value is none.
type Sandbox struct {
	Kind string // "bubblewrap", "namespaces", "landlock"; "" is none
	// Tried says for each rung above the one in force why it does not work.
	Tried []Rung
}

// Rung is one way to hold a program, and why it does not work here ("" when it does).
type Rung struct {
	Kind, Why, Fix string
}

// ProbeSandbox finds the strongest rung that works on this machine by running
// a program under it. It takes some 10 ms; the answer holds for the process.
func ProbeSandbox(ctx context.Context) Sandbox { return probe(ctx) }

// SandboxMain is the hidden verb `elfhost __sandbox`: the helper that confines
// itself and then becomes the program. It returns only an exit code for failure.
func SandboxMain(args []string) int { return sandboxMain(args) }

// SandboxVerb is the argument that main recognises for SandboxMain.
const SandboxVerb = "__sandbox"
