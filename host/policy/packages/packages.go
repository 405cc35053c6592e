// Package packages answers which packages a machine may install and load. Each
// policy layer has a set of rules about where packages come from, who signed
// them, what they are called and what they ask for. It judges facts that others
// established; it fetches and verifies nothing.
package packages

import (
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// Facts are what is known of one package. Whoever fills them has verified
// them: a key stands here only if its signature holds, a digest only if the
// bytes have it.
type Facts struct {
	Name      string
	Version   string // semantic version
	Publisher string // a claim, unless Key is set
	Key       string // minisign public key that signed it; "" when nobody did
	Pinned    bool   // Key was tied to Publisher before this package came
	Hub       string // where it comes from: the address of a hub, repository or archive; file:///… for a folder
	Digest    string // "sha256:…" of the archive
	Needs     []abi.Need
	// Partial says that what is empty is not known, rather than absent: rules
	// about it are reported as Open.
	Partial bool
}

// Signature is how much a package has to be vouched for.
type Signature int

// The signatures that a layer may ask for.
const (
	Unsigned Signature = iota
	Signed             // by any key
	Pinned             // by a key that this layer names, or that was pinned before
)

// ParseSignature reads the value of packages.signature.
func ParseSignature(text string) (Signature, error) {
	for i, name := range []string{"unsigned", "signed", "pinned"} {
		if text == name {
			return Signature(i), nil
		}
	}
	return 0, fmt.Errorf(`signature is "unsigned", "signed" or "pinned", not %q`, text)
}

// Apart names capabilities that no one package may ask for together.
type Apart struct {
	Caps  []abi.Capability
	Where string // "file:line"
}

// Rules are what one layer says. The zero value limits nothing.
type Rules struct {
	Layer string // "the system policy"
	Rules []Rule
	Least Signature
	Where string // "file:line" of Least
	Apart []Apart
}

// Effect is what one rule says of a package.
type Effect string

// The effects. A package is refused if any rule says Deny.
const (
	Allow Effect = "allow" // a list names it
	Deny  Effect = "deny"
	Open  Effect = "open" // the rule asks for a fact that is not known
)

// Finding is what decided, and where it stands.
type Finding struct {
	Effect Effect `json:"effect"`
	Layer  string `json:"layer"`
	Where  string `json:"where"` // "file:line"
	Why    string `json:"why"`   // one clause
}

// Ruling is what all layers say of a package, refusals first.
type Ruling struct {
	Findings []Finding `json:"findings"`
}

// Denied lists the refusals. Where there is none, the package may be installed.
func (r Ruling) Denied() []Finding { return r.pick(Deny) }

// Open lists what depends on facts that were not given.
func (r Ruling) Open() []Finding { return r.pick(Open) }

func (r Ruling) pick(e Effect) (out []Finding) {
	for _, f := range r.Findings {
		if f.Effect == e {
			out = append(out, f)
		}
	}
	return out
}

// Err is nil, or a *Refusal with the first rule that refuses.
func (r Ruling) Err() error {
	if d := r.Denied(); len(d) > 0 {
		return &Refusal{d[0]}
	}
	return nil
}

// Refusal is a package that policy forbids. No person can allow it.
type Refusal struct{ Finding Finding }

func (r *Refusal) Error() string {
	return fmt.Sprintf("the policy forbids this package (%s, %s): %s", r.Finding.Layer, r.Finding.Where, r.Finding.Why)
}

// Unwrap makes errors.Is(err, abi.ErrDenied) true.
func (r *Refusal) Unwrap() error { return abi.ErrDenied }
