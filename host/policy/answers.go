package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
)

// ModeAllowed returns nil, or an error that says which file and line forbids
// the mode.
func (p *Policy) ModeAllowed(mode string) error {
	if !slices.Contains(modes, mode) {
		return fmt.Errorf("unknown mode %q (known: %s)", mode, strings.Join(modes, ", "))
	}
	if p == nil {
		return nil
	}
	for i := range p.layers {
		l := &p.layers[i]
		if l.Modes != nil && !slices.Contains(l.Modes, mode) {
			return fmt.Errorf("mode %q is forbidden by %s (%s)", mode, l.Kind, l.where("modes"))
		}
	}
	return nil
}

// RestrictToWorkspace reports whether builtin file and shell tools stay inside
// the workspace, and the file and line that say so; where is "" for the default.
func (p *Policy) RestrictToWorkspace() (on bool, where string) {
	on = true
	if p == nil {
		return on, ""
	}
	for i := range p.layers {
		if r := p.layers[i].RestrictToWorkspace; r != nil {
			if *r {
				return true, p.layers[i].where("restrict_to_workspace")
			}
			on, where = false, p.layers[i].where("restrict_to_workspace")
		}
	}
	return on, where
}

// RequireSandbox reports whether programs may run under a kernel sandbox only.
func (p *Policy) RequireSandbox() (on bool, where string) {
	return p.any("require_sandbox", func(l *Layer) bool { return l.RequireSandbox })
}

// DenyMultilink reports whether files with several hard links are refused (FS-13).
func (p *Policy) DenyMultilink() (on bool, where string) {
	return p.any("deny_multilink", func(l *Layer) bool { return l.DenyMultilink })
}

func (p *Policy) any(key string, is func(*Layer) bool) (bool, string) {
	if p != nil {
		for i := range p.layers {
			if is(&p.layers[i]) {
				return true, p.layers[i].where(key)
			}
		}
	}
	return false, ""
}

// Network is how to reach the outside: the system policy's answer, and Off if
// any layer says so.
func (p *Policy) Network() Network {
	var n Network
	if p == nil {
		return n
	}
	for _, l := range p.layers {
		off := n.Off || l.Network.Off
		if l.Kind == System {
			n = l.Network
		}
		n.Off = off
	}
	return n
}

// ExecTime is the ceiling of one program's run; 0: none.
func (p *Policy) ExecTime() time.Duration {
	var d time.Duration
	if p != nil {
		for _, l := range p.layers {
			d = least(d, l.ExecTime)
		}
	}
	return d
}

// Describe says what the layers allow of a capability at the most, for a
// question's "policy allows" line: "anything", "nothing", or scopes.
func (p *Policy) Describe(c abi.Capability) string { return p.Ceiling().bounds(c) }

func (g Grants) bounds(c abi.Capability) string {
	var parts []string
	for _, l := range g.layers {
		s := l.describe(c)
		if s == "nothing" {
			return s
		}
		if s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	if len(parts) == 0 {
		return "anything"
	}
	return strings.Join(parts, "; and of these ")
}

// describe is "" for a layer that says nothing of c.
func (l *layer) describe(c abi.Capability) string {
	var in, out []string
	for _, e := range l.entries {
		if _, private := e.scope.(*privateScope); e.cap == c && !private {
			in = append(in, e.scope.text())
		}
	}
	for _, e := range l.denies {
		if e.cap != c {
			continue
		}
		if e.scope == scope(allScope{}) {
			return "nothing"
		}
		out = append(out, e.scope.text())
	}
	text := strings.Join(in, ", ")
	switch {
	case len(in) == 0 && !l.open:
		return "nothing"
	case len(in) == 0 && len(out) > 0, text == "" && len(out) > 0:
		text = "anything"
	}
	if len(out) > 0 {
		text += " except " + strings.Join(out, ", ")
	}
	return text
}
