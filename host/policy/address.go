package policy

import "net/netip"

// specialUse is what the IANA special-purpose registries (RFC 6890 and its
// updates) and older RFCs keep off the public internet. The first match wins.
var specialUse = func() []addressBlock {
	rows := []struct{ prefix, name string }{
		{"0.0.0.0/8", "this-network"}, {"10.0.0.0/8", "private"}, {"100.64.0.0/10", "shared"},
		{"127.0.0.0/8", "loopback"}, {"169.254.0.0/16", "link-local"}, {"172.16.0.0/12", "private"},
		{"192.0.0.0/24", "protocol"}, {"192.0.2.0/24", "documentation"}, {"192.88.99.0/24", "6to4 relay"},
		{"192.168.0.0/16", "private"}, {"198.18.0.0/15", "benchmarking"}, {"198.51.100.0/24", "documentation"},
		{"203.0.113.0/24", "documentation"}, {"224.0.0.0/4", "multicast"}, {"255.255.255.255/32", "broadcast"},
		{"240.0.0.0/4", "reserved"},

		{"::/128", "unspecified"}, {"::1/128", "loopback"}, {"::/96", "IPv4-compatible"},
		{"64:ff9b:1::/48", "local translation"}, {"100::/64", "discard"}, {"100:0:0:1::/64", "dummy"},
		{"2001::/32", "Teredo"}, {"2001::/23", "protocol"}, {"2001:db8::/32", "documentation"},
		{"3fff::/20", "documentation"}, {"5f00::/16", "segment routing"}, {"fc00::/7", "private"},
		{"fe80::/10", "link-local"}, {"fec0::/10", "site-local"}, {"ff00::/8", "multicast"},
	}
	out := make([]addressBlock, len(rows))
	for i, r := range rows {
		out[i] = addressBlock{netip.MustParsePrefix(r.prefix), r.name}
	}
	return out
}()

type addressBlock struct {
	prefix netip.Prefix
	name   string
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	global6   = netip.MustParsePrefix("2000::/3")
)

// AddressClass reports whether an address is of special use, and so reached
// only by a grant that names it, and the kind of it: "loopback", "private"….
// Addresses that carry an IPv4 address (4in6, NAT64, 6to4) are judged by that
// one too; Teredo is always special, its inner address is the sender's choice.
func AddressClass(a netip.Addr) (special bool, name string) {
	if !a.IsValid() {
		return true, "invalid"
	}
	if a.Zone() != "" {
		return true, "link-local"
	}
	a = a.Unmap()
	for _, b := range specialUse {
		if b.prefix.Contains(a) {
			return true, b.name
		}
	}
	if a.Is4() {
		return false, ""
	}
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return AddressClass(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		return AddressClass(netip.AddrFrom4([4]byte(b[2:6])))
	case !global6.Contains(a):
		return true, "unassigned"
	}
	return false, ""
}
