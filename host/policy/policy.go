// Package policy answers what may be reached. It decides, it never acts: the
// brokers of host/reach act, after asking here.
//
// A grant is given by a person, under the ceilings of the policy layers.
// Grants only ever narrow: Meet keeps both sides and asks each.
package policy

import (
	"context"
	"net/netip"

	"github.com/elfhost/elfhost/abi"
)

// Use is one act that needs a right.
//
// Target by capability: fs.read and fs.write a cleaned virtual path
// ("/ws/docs/a.md"); net.http a URL ("https://api.github.com/repos"), Verb the
// method; exec the argv, NUL-separated; env a name; secret "name@host"; kv the
// plugin's name, N the bytes held after the act; model N the tokens of the
// call so far, the act included; tool.call a tool's name.
//
// A request is checked twice: with Addr zero before the name is resolved, and
// with the address that is about to be dialed.
type Use struct {
	Cap    abi.Capability
	Verb   string
	Target string
	N      int64
	Addr   netip.Addr
	Name   string // exec: what the program was called by, when the host found it in its PATH
}

// Grant is a capability with the scopes in which a person gave it. An empty
// Scope gives nothing, except for capabilities that have none (clock.fine).
type Grant struct {
	Cap   abi.Capability `json:"cap"`
	Scope []string       `json:"scope,omitempty"`
	Where string         `json:"where,omitempty"` // "file:line" that gives it, if a file does
}

// Rights are what a call may do: grants, and somebody to ask where they do
// not decide. They travel with the call, so that a revocation acts at once.
type Rights struct {
	Grants Grants
	// Decide asks a person about a use that no grant covers and no layer
	// forbids for good. Nil: nobody is there, so it is denied. It returns nil to
	// allow, else the denial.
	Decide func(context.Context, Use) error
	// Note is told of every decision, for the audit log and the receipt. It may
	// be nil and must be safe for concurrent use.
	Note func(u Use, err error)
}

// Check decides one use. The error is a *Denial, or the context's error.
func (r Rights) Check(ctx context.Context, u Use) error {
	err := r.Grants.Check(u)
	if d, ok := err.(*Denial); ok && !d.Final && r.Decide != nil {
		err = r.Decide(ctx, u)
	}
	if r.Note != nil {
		r.Note(u, err)
	}
	return err
}

// Denial is why a use was refused. It matches abi.ErrDenied with errors.Is.
type Denial struct {
	Use   Use
	Layer string // who forbids it: "grants", "user policy", "system policy", …
	Where string // "file:line" of the rule that decided, if a file did
	// Final: an answer to a question cannot allow it. A policy or a manifest
	// forbids it, the use is malformed, or it is a protected name or a special
	// address, for which a person must have written a grant that names it.
	Final bool
	Why   string // one clause: `no grant covers it`, `127.0.0.1 is a loopback address`
	Grant Grant  // the narrowest grant that would allow it; zero when none can
}

// Unwrap makes errors.Is(err, abi.ErrDenied) true.
func (d *Denial) Unwrap() error { return abi.ErrDenied }
