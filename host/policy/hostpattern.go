package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// hostPattern is a name, "*." and a suffix of two labels or more, an address,
// or a block of addresses in brackets.
type hostPattern struct {
	name   string
	wild   bool
	prefix netip.Prefix
}

func parseHostPattern(s string) (hostPattern, error) {
	if s == "" || s == "*" {
		return hostPattern{}, errors.New(`the host is left open: name hosts, or ask for "public"`)
	}
	if in, ok := strings.CutPrefix(s, "["); ok && strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(strings.TrimSuffix(in, "]"))
		if err != nil || p.Addr().Is4In6() || p.Masked() != p || p.Bits() == 0 {
			return hostPattern{}, fmt.Errorf("%q is not a block of addresses such as [10.1.0.0/16]", s)
		}
		return hostPattern{prefix: p}, nil
	}
	suffix, wild := strings.CutPrefix(s, "*.")
	h, err := CanonicalHost(suffix)
	if err != nil {
		return hostPattern{}, err
	}
	a, err := netip.ParseAddr(h)
	switch {
	case err == nil && wild:
		return hostPattern{}, errors.New("an address has no subdomains")
	case err == nil:
		a = a.Unmap()
		return hostPattern{prefix: netip.PrefixFrom(a, a.BitLen())}, nil
	case wild && !strings.Contains(h, "."):
		return hostPattern{}, fmt.Errorf("*.%s leaves a whole top-level domain open", h)
	}
	return hostPattern{name: h, wild: wild}, nil
}

// match compares canonical hosts label-wise: "*.good.test" is every host
// below good.test, not good.test itself.
func (h hostPattern) match(host string) bool {
	if h.prefix.IsValid() {
		a, err := netip.ParseAddr(host)
		return err == nil && h.matchAddr(a.Unmap())
	}
	if h.wild {
		return strings.HasSuffix(host, "."+h.name)
	}
	return host == h.name
}

func (h hostPattern) matchAddr(a netip.Addr) bool {
	return h.prefix.IsValid() && h.prefix.Contains(a)
}

func (h hostPattern) String() string {
	switch {
	case h.prefix.IsValid() && h.prefix.IsSingleIP():
		return h.prefix.Addr().String()
	case h.prefix.IsValid():
		return "[" + h.prefix.String() + "]"
	case h.wild:
		return "*." + h.name
	}
	return h.name
}

// badPort lists ports of other protocols, which "public" does not reach: a
// request could be made to speak them (the fetch standard's list, shortened to
// those that listen on real machines). A scope that names the port reaches it.
func badPort(port string) bool {
	switch port {
	case "7", "9", "11", "13", "15", "17", "19", "20", "21", "22", "23", "25", "37", "42", "43", "53", "69", "77", "79", "87", "95",
		"101", "102", "103", "104", "109", "110", "111", "113", "115", "117", "119", "123", "135", "137", "139", "143", "161", "179",
		"389", "427", "465", "512", "513", "514", "515", "526", "530", "531", "532", "540", "548", "554", "556", "563", "587", "601",
		"636", "989", "990", "993", "995", "1719", "1720", "1723", "2049", "3659", "4045", "4190", "5060", "5061", "6000", "6379",
		"6566", "6665", "6666", "6667", "6668", "6669", "6679", "6697", "10080", "11211":
		return true
	}
	return false
}
