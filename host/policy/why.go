package policy

import "github.com/elfhost/elfhost/host/policy/packages"

// Why says what each layer that speaks of a use says of it, refusals first: the
// line that covers it, or the one that forbids it. plugin asks for the plugins
// of others, which the layers may limit further. An empty answer means that no
// layer limits it; it still needs a grant.
func (p *Policy) Why(u Use, plugin bool) []packages.Finding {
	g := p.Ceiling()
	if plugin {
		g = p.PluginCeiling()
	}
	parsed, err := parseUse(u)
	if err != nil {
		return []packages.Finding{{Effect: packages.Deny, Layer: "the host", Why: err.Error()}}
	}
	var denied, allowed []packages.Finding
	for _, l := range g.layers {
		if d := l.check(parsed); d != nil {
			denied = append(denied, packages.Finding{Effect: packages.Deny, Layer: l.name, Where: d.Where, Why: d.Why})
			continue
		}
		for _, e := range l.entries {
			if e.cap == u.Cap && e.scope.covers(parsed, l.kind) {
				allowed = append(allowed, packages.Finding{Effect: packages.Allow, Layer: l.name, Where: e.where, Why: "it is within " + e.grant().String()})
				break
			}
		}
	}
	return append(denied, allowed...)
}
