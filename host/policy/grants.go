package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Grants is a conjunction of layers; in each, any one grant may allow a use.
// The zero value allows nothing. Grants are immutable and safe for concurrent use.
type Grants struct {
	layers []layer
}

// kind says what a layer stands for, and so how it is asked.
type kind int

const (
	kindGrant   kind = iota // given by a person: names protected files and special addresses itself
	kindNeed                // asked for by a manifest: bounds what a person can give
	kindCeiling             // a policy file: an unnamed capability is not limited
)

// layer is one side of a Meet.
type layer struct {
	name    string
	kind    kind
	open    bool   // capabilities without an entry are not limited
	closed  string // "file:line" that says so, where it is not open
	entries []entry
	denies  []entry
}

// entry is one parsed scope.
type entry struct {
	cap   abi.Capability
	scope scope
	where string
}

// New makes one layer of what a person gave. Scopes are validated; an error
// names the scope. The layer's name stands in denials ("grants", "session").
func New(name string, gs ...Grant) (Grants, error) {
	l := layer{name: name, kind: kindGrant}
	var err error
	if l.entries, err = parseEntries(gs, false); err != nil {
		return Grants{}, err
	}
	return Grants{[]layer{l}}, nil
}

// FromNeeds makes the layer of what a manifest asks for. It gives nothing by
// itself, Meet it with what a person gave: its denials are final, because a
// person cannot be asked for what the manifest does not name.
func FromNeeds(needs []abi.Need) (Grants, error) {
	gs := make([]Grant, len(needs))
	for i, n := range needs {
		gs[i] = Grant{Cap: n.Cap, Scope: n.Scope}
		for _, s := range n.Scope {
			if (n.Cap == abi.FSRead || n.Cap == abi.FSWrite) && everywhere(s) {
				return Grants{}, fmt.Errorf("%s %q asks for every folder there is; a manifest names one, such as %s/**", n.Cap, s, Workspace)
			}
		}
	}
	es, err := parseEntries(gs, false)
	if err != nil {
		return Grants{}, err
	}
	return Grants{[]layer{{name: "the manifest", kind: kindNeed, entries: es}}}, nil
}

// Nothing reports whether these are the needs of a manifest that has none:
// whatever they are met with, every use is denied for good.
func (g Grants) Nothing() bool {
	return slices.ContainsFunc(g.layers, func(l layer) bool { return l.kind == kindNeed && !l.open && len(l.entries) == 0 })
}

// everywhere reports whether a path's first part names no folder: whatever a
// person mounts later would be asked for as well (FS-20).
func everywhere(scope string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(scope, "/"), "/")
	return first == "" || strings.ContainsAny(first, "*?[{")
}

// Unlimited is the layer that is absent: it limits nothing. By itself it still
// reaches no protected name and no special address.
func Unlimited() Grants {
	return Grants{[]layer{{name: "no limit", kind: kindCeiling, open: true}}}
}

// Meet returns what both allow. It keeps both sides and asks each, so it can
// only narrow.
func (g Grants) Meet(o Grants) Grants {
	if len(g.layers) == 0 || len(o.layers) == 0 {
		return Grants{}
	}
	return Grants{append(slices.Clip(g.layers), o.layers...)}
}

// Check decides one use. The error is a *Denial; a final one wins over one
// that a person could lift.
func (g Grants) Check(u Use) error {
	p, err := parseUse(u)
	if err != nil {
		return &Denial{Use: u, Layer: "the host", Final: true, Why: err.Error()}
	}
	if len(g.layers) == 0 {
		return p.denial("grants", "nothing is granted")
	}
	var first *Denial
	named := false
	for _, l := range g.layers {
		d := l.check(p)
		if d != nil && (first == nil || d.Final && !first.Final || d.Grant.Cap == "" && first.Grant.Cap != "") {
			first = d
		}
		named = named || d == nil && l.kind == kindGrant
	}
	if first == nil && !named && p.sensitive() != "" {
		first = p.denial("grants", p.sensitive())
	}
	if first != nil {
		return first
	}
	return nil
}

func (l *layer) check(p *use) *Denial {
	for _, e := range l.denies {
		if e.cap == p.Cap && e.scope.touches(p) {
			return &Denial{Use: p.Use, Layer: l.name, Where: e.where, Final: true, Why: "a rule denies it"}
		}
	}
	limited, where := !l.open, ""
	var covered, named bool
	for _, e := range l.entries {
		if e.cap != p.Cap {
			continue
		}
		limited = true
		if where == "" {
			where = e.where
		}
		covered = covered || e.scope.covers(p, l.kind)
		named = named || e.scope.names(p)
	}
	if !limited || covered && (named || p.sensitive() == "" || !l.mustName(p)) {
		return nil
	}
	d := p.denial(l.name, "no grant covers it")
	switch l.kind {
	case kindNeed:
		d.Why = "the manifest does not ask for it"
	case kindCeiling:
		d.Why, d.Where = "it is outside what the policy allows", where
		if where == "" {
			d.Why, d.Where = "no [[allow]] names "+string(p.Cap)+", and the default is deny", l.closed
		}
	case kindGrant:
		if s := p.sensitive(); s != "" {
			d.Why = s
		}
		return d
	}
	d.Final, d.Grant = true, Grant{}
	return d
}

// mustName reports whether this layer has to name a sensitive target itself.
// A ceiling such as "/ws/**" bounds protected files without naming them; a
// special address must be named by policies too (NET-04). What a manifest asks
// for is settled by the person's grant.
func (l *layer) mustName(p *use) bool {
	return l.kind == kindGrant || l.kind == kindCeiling && p.Cap == abi.NetHTTP
}

// Allows reports whether every layer has a grant of c, whatever its scope:
// whether it is worth mounting /ws at all.
func (g Grants) Allows(c abi.Capability) bool {
	for _, l := range g.layers {
		if slices.ContainsFunc(l.denies, func(e entry) bool { return e.cap == c && e.scope == scope(allScope{}) }) {
			return false
		}
		if !slices.ContainsFunc(l.entries, func(e entry) bool { return e.cap == c }) && !l.open {
			return false
		}
	}
	return len(g.layers) > 0
}

// Below reports whether something at or below the folder dir may be reached
// with c (fs.read or fs.write): whether the folder is to be seen on the way there.
func (g Grants) Below(c abi.Capability, dir string) bool {
	for _, l := range g.layers {
		limited, ok := !l.open, false
		for _, e := range l.entries {
			if f, is := e.scope.(*pathScope); is && e.cap == c {
				limited = true
				ok = ok || f.below(dir)
			}
		}
		if limited && !ok {
			return false
		}
	}
	return len(g.layers) > 0
}

// List returns what persons gave, one grant a scope, in canonical text. What
// manifests ask for and policies bound is not in it.
func (g Grants) List() []Grant {
	var out []Grant
	for _, l := range g.layers {
		if l.kind != kindGrant {
			continue
		}
		for _, e := range l.entries {
			if _, private := e.scope.(*privateScope); !private {
				out = append(out, e.grant())
			}
		}
	}
	return out
}

// Describe is List for a question's "granted" line: the scopes of c, or "none".
func (g Grants) Describe(c abi.Capability) string {
	var out []string
	for _, e := range g.List() {
		if e.Cap == c {
			out = append(out, strings.Join(append([]string{}, e.Scope...), ", "))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(slices.Compact(out), ", ")
}
