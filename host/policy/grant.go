package policy

import (
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

func parseEntries(gs []Grant, deny bool) ([]entry, error) {
	var es []entry
	for _, g := range gs {
		if !g.Cap.Known() {
			return nil, fmt.Errorf("unknown capability %q", g.Cap)
		}
		scopes := g.Scope
		if len(scopes) == 0 {
			switch {
			case g.Cap == abi.ClockFine, deny:
				scopes = []string{""}
			default:
				return nil, fmt.Errorf("%s needs a scope, for example %q", g.Cap, exampleScope(g.Cap))
			}
		}
		for _, text := range scopes {
			s, err := parseScope(g.Cap, text, deny)
			if err != nil {
				return nil, fmt.Errorf("%s scope %q: %w", g.Cap, text, err)
			}
			es = append(es, entry{g.Cap, s, g.Where})
		}
	}
	return es, nil
}

func (e entry) grant() Grant {
	g := Grant{Cap: e.cap, Where: e.where}
	if t := e.scope.text(); t != "" {
		g.Scope = []string{t}
	}
	return g
}

// String is the grant as people read and type it: "capability scope", one
// line a scope. ParseGrant reads it back to an equal grant.
func (g Grant) String() string {
	if len(g.Scope) == 0 {
		return string(g.Cap)
	}
	lines := make([]string, len(g.Scope))
	for i, s := range g.Scope {
		lines[i] = string(g.Cap) + " " + s
	}
	return strings.Join(lines, "\n")
}

// ParseGrant reads the text of a grant and returns it with canonical scopes.
func ParseGrant(text string) (Grant, error) {
	var g Grant
	for line := range strings.Lines(text) {
		c, s, _ := strings.Cut(strings.TrimSpace(line), " ")
		if g.Cap != "" && g.Cap != abi.Capability(c) {
			return Grant{}, fmt.Errorf("one grant is of one capability, not of %q and %q", g.Cap, c)
		}
		g.Cap = abi.Capability(c)
		if s = strings.TrimSpace(s); s != "" {
			g.Scope = append(g.Scope, s)
		}
	}
	es, err := parseEntries([]Grant{g}, false)
	if err != nil {
		return Grant{}, err
	}
	g.Scope = nil
	for _, e := range es {
		g.Scope = append(g.Scope, e.grant().Scope...)
	}
	return g, nil
}
