package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

const (
	headerLimit  = 256 << 10
	dialTimeout  = 10 * time.Second
	maxAddresses = 8 // of one name that are checked and tried
)

// pool holds the connections. They are keyed by name and checked addresses
// together: a connection that one call's grant opened to a private address is
// never handed to a call whose check ended at another address.
type pool struct {
	pinned  *http.Transport
	proxied *http.Transport // nil without a proxy
}

func (p *pool) close() {
	p.pinned.CloseIdleConnections()
	if p.proxied != nil {
		p.proxied.CloseIdleConnections()
	}
}

func (h *HTTP) connections() *pool {
	h.once.Do(func() {
		h.pool = &pool{pinned: h.transport()}
		h.pool.pinned.DialContext = h.dialPinned
		h.pool.pinned.DialTLSContext = h.dialPinnedTLS
		if h.Proxy != nil {
			h.pool.proxied = h.transport()
			h.pool.proxied.Proxy = http.ProxyURL(h.Proxy)
			h.pool.proxied.DialContext = h.dial
			h.pool.proxied.TLSClientConfig = h.tls("")
		}
	})
	return h.pool
}

func (h *HTTP) transport() *http.Transport {
	return &http.Transport{
		DisableCompression:     true, // decoded here, under the cap
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: headerLimit,
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConns:           64,
		ExpectContinueTimeout:  time.Second,
	}
}

func (h *HTTP) tls(name string) *tls.Config {
	c := &tls.Config{}
	if h.TLS != nil {
		c = h.TLS.Clone()
	}
	c.ServerName = name
	c.NextProtos = []string{"h2", "http/1.1"}
	return c
}

func (h *HTTP) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if h.Dial != nil {
		return h.Dial(ctx, network, addr)
	}
	d := net.Dialer{Timeout: dialTimeout}
	return d.DialContext(ctx, network, addr)
}

// pin joins a name and the addresses that were checked for it into what
// http.Transport takes for a host. '+' is in no host name.
func pin(name string, addrs []netip.Addr) string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(name, ":", "_"))
	for _, a := range addrs {
		b.WriteByte('+')
		b.WriteString(strings.ReplaceAll(a.String(), ":", "_"))
	}
	return b.String()
}

func unpin(host string) (name string, addrs []string) {
	parts := strings.Split(host, "+")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(p, "_", ":")
	}
	// A host name may hold '_' but never ':', an address the other way round.
	if name = parts[0]; !isAddress(name) {
		name = strings.ReplaceAll(name, ":", "_")
	}
	return name, parts[1:]
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

func (h *HTTP) dialPinned(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	_, addrs := unpin(host)
	return h.dialAny(ctx, network, addrs, port)
}

// dialAny tries one address after the other, in the resolver's order, and
// leaves time for those that follow.
func (h *HTTP) dialAny(ctx context.Context, network string, addrs []string, port string) (net.Conn, error) {
	var errs []error
	for i, a := range addrs {
		try, cancel := ctx, context.CancelFunc(func() {})
		if i < len(addrs)-1 {
			try, cancel = context.WithTimeout(ctx, dialTimeout/4)
		}
		conn, err := h.dial(try, network, net.JoinHostPort(a, port))
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

func (h *HTTP) dialPinnedTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	name, addrs := unpin(host)
	raw, err := h.dialAny(ctx, network, addrs, port)
	if err != nil {
		return nil, err
	}
	shake, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn := tls.Client(raw, h.tls(name))
	if err := conn.HandshakeContext(shake); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// addresses resolves a host once and checks every address: one that is refused
// refuses the name.
func (h *HTTP) addresses(ctx context.Context, r policy.Rights, method string, u *url.URL) ([]netip.Addr, error) {
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}, nil // checked with the URL
	}
	found, err := h.resolve(ctx, host)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("looking up %q: %w: %w", host, abi.ErrUnavailable, err)
	}
	var addrs []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); !slices.Contains(addrs, a) {
			addrs = append(addrs, a)
		}
	}
	if len(addrs) == 0 {
		return nil, fmt.Errorf("looking up %q: no address: %w", host, abi.ErrUnavailable)
	}
	if len(addrs) > maxAddresses {
		addrs = addrs[:maxAddresses]
	}
	for _, a := range addrs {
		use := policy.Use{Cap: abi.NetHTTP, Verb: method, Target: u.String(), Addr: a}
		if r.Grants.Check(use) == nil {
			continue // the URL was noted already
		}
		if err := r.Check(ctx, use); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

func (h *HTTP) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if h.Resolve != nil {
		return h.Resolve(ctx, host)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		// Not a question for a name server (RFC 6761 section 6.3).
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	// The dot keeps the machine's search domains out of it.
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host+".")
}
