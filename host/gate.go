package host

import (
	"context"

	"github.com/elfhost/elfhost/host/policy"
)

// Mode is how much a person wants to be asked.
type Mode string

// The modes. A child's mode is never looser than its parent's.
const (
	ModePlan        Mode = "plan"        // the safe set only
	ModeAsk         Mode = "ask"         // the default
	ModeAcceptEdits Mode = "acceptEdits" // edits of files inside the workspace are free
	ModeAuto        Mode = "auto"        // nothing is asked, commands that cannot be judged aside; a policy may forbid it
)

// Gate decides whether a call may go ahead, and asks where nothing decides.
// Undecided is denied. The exported fields are set before its first use; a
// Gate is then safe for concurrent use and must not be copied. The zero value
// allows the safe set only.
type Gate struct {
	Policy *policy.Policy
	Mode   Mode // at the start; see Switch
	// Grants are the rights of builtin tools in this session: its workspace and
	// what the person allowed. The policy is met by Invoke.
	Grants policy.Grants
	// Workspace is the host's folder behind /ws. Commands that leave it are
	// asked about, unless the policy says otherwise.
	Workspace string
	// Granted gives what persons granted to a plugin or a bundled plugin. It is
	// asked at each call, so that a revocation acts at once. Nil: nothing.
	Granted  func(Origin) policy.Grants
	Approver Approver // nil: nobody is there, a question is a denial
	Memory   Memory   // nil: nothing is kept past the session
	// Unconfined says that no kernel sandbox holds the programs which builtin
	// tools run: each command is asked about, whatever the mode and the rules.
	Unconfined bool
	// Terminal names what runs those programs in place of a kernel sandbox, for
	// the question: "the editor's terminal". "": nothing does, none works here.
	Terminal string
	// Before is asked about each call that neither policy nor mode has refused,
	// before anybody else is. Its error refuses the call; the text is the
	// reason. It must be safe for concurrent use. Nil: nothing is asked.
	Before func(ctx context.Context, s Spec, c Call) error
	// Audit keeps every verdict; it must be safe for concurrent use. A call whose
	// verdict cannot be kept is refused. Nil: nothing is kept.
	Audit func(Verdict) error

	state gateState
}

// Memory keeps the answers that outlive a session. It is asked at each call,
// so that a revocation acts at once, and must be safe for concurrent use.
type Memory interface {
	Rules() []Rule
	Remember(ctx context.Context, r Rule) error
}

// Approver asks a person. It answers one question at a time; implementations
// queue. An error, or a cancelled context, is a denial.
type Approver interface {
	Approve(ctx context.Context, a Ask) (Answer, error)
}

// Ask is one question. Its text is made by whoever shows it, from these
// fields alone; the rules it offers are exactly what would be remembered.
type Ask struct {
	Call  Call
	Spec  Spec
	Use   *policy.Use // nil: about the call itself; else about one use inside it
	Why   string      // "asked by the model in step 4"
	Now   string      // what is granted today
	Risks []string    // marks such as "pipes into a shell"
	Rules []Rule      // what Session and Project would remember, narrowest first
	Final bool        // nothing is remembered: offer "once" only
	// Acted says, of a question about a use, that the call may have changed
	// something before it.
	Acted bool
	// Screen, if not empty, is what the question is about, in place of the call's
	// arguments: lines that are safe to show. Choices are then the ways to agree
	// to it, in place of "allow once"; Answer.Choice says which was taken.
	Screen  string
	Choices []string
}

// Scope of an answer.
type Scope string

// How long an answer holds.
const (
	Once    Scope = "once"
	Session Scope = "session"
	Project Scope = "project"
)

// Answer is what a person said.
type Answer struct {
	Allow  bool
	Scope  Scope
	Rule   Rule   // the one that was shown and chosen; ignored for Once
	Reason string // told to the model with a denial
	Choice int    // of Ask.Choices, from 0, when it allows
}

// Rule is a remembered answer: `Bash(git status:*)`, `Write(docs/**)`,
// `mcp__github__*`, or a grant.
type Rule struct {
	Pattern string        // of calls; empty for a grant
	Plugin  string        // whose tool Pattern names, if only that one's; or who gets Grant
	Grant   *policy.Grant // of one plugin, or of one builtin tool by its name
}

// Verdict is one decision of the gate about a call, or about a use inside one,
// for the audit log. Uses of builtin tools are reported where they were asked
// about or refused, those of plugins always.
type Verdict struct {
	Call    Call
	Origin  Origin
	Use     *policy.Use
	Allowed bool
	By      string // "policy", "safe", "mode", "rule", "person", "nobody"; for a use also "grants"
	Rule    string
	Where   string // file:line of a policy rule
	Reason  string
}
