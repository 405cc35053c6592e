package policy

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/elfhost/elfhost/abi"
)

// ParsePrivate reads a block of private addresses, such as "10.0.0.0/8". The
// addresses of this machine, of its links and of clouds' metadata are in none.
func ParsePrivate(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p.Masked() != p || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is not a block of addresses such as 10.0.0.0/8", text)
	}
	for _, b := range specialUse {
		if (b.name == "private" || b.name == "shared") && b.prefix.Bits() <= p.Bits() && b.prefix.Contains(p.Addr()) {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%s holds other than private addresses (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, fc00::/7)", text)
}

// privateScope lets the hosts that a layer names by name have addresses of
// these blocks. It covers nothing by itself.
type privateScope struct {
	blocks []netip.Prefix
	hosts  []*netScope // nil: whatever is covered, in a layer that is a ceiling
}

func (*privateScope) covers(*use, kind) bool { return false }
func (*privateScope) touches(*use) bool      { return false }
func (*privateScope) text() string           { return "" }

func (s *privateScope) names(p *use) bool {
	r := p.req
	if r == nil || r.literal.IsValid() || localName(r.host) || !r.addr.IsValid() ||
		!slices.ContainsFunc(s.blocks, func(b netip.Prefix) bool { return b.Contains(r.addr.Unmap()) }) {
		return false
	}
	return s.hosts == nil || slices.ContainsFunc(s.hosts, func(h *netScope) bool { return h.covers(p, kindGrant) })
}

// private adds a layer's privateScope, where it speaks of the network at all.
func (l *layer) private(blocks []netip.Prefix, where string) {
	var hosts []*netScope
	any := false
	for _, e := range l.entries {
		if n, ok := e.scope.(*netScope); ok {
			any = true
			if !n.public {
				hosts = append(hosts, n)
			}
		}
	}
	switch {
	case !any, len(blocks) == 0, l.kind == kindGrant && len(hosts) == 0:
		return
	case l.kind == kindCeiling:
		hosts = nil
	}
	l.entries = append(slices.Clip(l.entries), entry{abi.NetHTTP, &privateScope{blocks, hosts}, where})
}

// Private is g, where the hosts that it names by name may have the private
// addresses of the system policy's network.private. It is for what a person
// configured or typed: a hub, a registry, a model's address. A redirect to
// another host stays bound to public addresses.
func (p *Policy) Private(g Grants) Grants {
	if p == nil {
		return g
	}
	for _, pl := range p.layers {
		if len(pl.PrivateHosts) == 0 {
			continue
		}
		out := Grants{slices.Clone(g.layers)}
		for i := range out.layers {
			if out.layers[i].kind == kindGrant {
				out.layers[i].private(pl.PrivateHosts, pl.where("network.private"))
			}
		}
		g = out
	}
	return g
}
