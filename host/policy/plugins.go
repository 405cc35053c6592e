package policy

import (
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy/packages"
)

// compilePlugins makes the layer of PerPlugin: a capability that it names
// without a scope is denied, one that it does not name is not limited.
func (l *Layer) compilePlugins(name string) (layer, error) {
	c := layer{name: name, kind: kindCeiling, open: true}
	for _, g := range l.PerPlugin {
		if g.Where == "" {
			g.Where = l.File
		}
		out, deny := &c.entries, len(g.Scope) == 0
		if deny {
			out = &c.denies
		}
		es, err := parseEntries([]Grant{g}, deny)
		if err != nil {
			return c, fmt.Errorf("%s: %w", g.Where, err)
		}
		*out = append(*out, es...)
	}
	return c, nil
}

// PluginCeiling is what a plugin of others may hold at most: Ceiling, met with
// what the layers say of plugins alone.
func (p *Policy) PluginCeiling() Grants {
	if p == nil || len(p.layers) == 0 {
		return Unlimited()
	}
	return p.ceiling.Meet(p.plugins)
}

// Package says whether a package may be installed and loaded, and which file
// and line decided.
func (p *Policy) Package(f packages.Facts) packages.Ruling {
	if p == nil {
		return packages.Ruling{}
	}
	f.Hub = canonicalPlace(f.Hub)
	all := make([]packages.Rules, len(p.layers))
	for i := range p.layers {
		all[i] = p.layers[i].Packages
	}
	return packages.Judge(all, f)
}

// canonicalPlace writes the host of an address as the HTTP broker would reach
// it, so that no rule is dodged by another spelling. What is no address stays.
func canonicalPlace(hub string) string {
	rest, oci := strings.CutPrefix(hub, "oci://")
	if oci {
		hub = "https://" + rest
	}
	if u, err := CheckURL(hub); err == nil {
		hub = u.String()
	}
	if oci {
		hub = "oci://" + strings.TrimPrefix(hub, "https://")
	}
	return hub
}

// DescribePlugin is Describe for plugins of others.
func (p *Policy) DescribePlugin(c abi.Capability) string { return p.PluginCeiling().bounds(c) }
