package oci

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/skillhub"
)

// A registry whose name leads to a private address is reached only where the
// system policy lists that block.
func TestRegistryAtAPrivateAddress(t *testing.T) {
	f := newFake(t)
	s := httptest.NewTLSServer(f)
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	r := f.image("t", manifest{Layers: []descriptor{f.layer(LayerType, []byte("archive"))}})
	r.Location = "example.com/acme/x"
	for _, block := range []string{"", "10.9.0.0/16", "10.1.0.0/16"} {
		l := policy.Layer{Kind: policy.System, File: "p.toml"}
		if block != "" {
			l.PrivateHosts = []netip.Prefix{netip.MustParsePrefix(block)}
		}
		p, err := policy.NewPolicy(l)
		if err != nil {
			t.Fatal(err)
		}
		h := &reach.HTTP{
			TLS: &tls.Config{RootCAs: roots},
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
			},
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if addr != "10.1.2.3:443" {
					t.Errorf("dialled %s", addr)
				}
				return (&net.Dialer{}).DialContext(ctx, network, s.Listener.Addr().String())
			},
		}
		g := &Registry{HTTP: h, Rights: func(want policy.Grant) (policy.Rights, error) {
			given, err := policy.New("test", want)
			return policy.Rights{Grants: p.Private(given).Meet(p.Ceiling())}, err
		}}
		b, _, err := fetch(t.Context(), g, skillhub.Ref{Kind: skillhub.OCI, Location: r.Location, Digest: r.Digest})
		if ok := err == nil && string(b) == "archive"; ok != (block == "10.1.0.0/16") {
			t.Errorf("%q: %v", block, err)
		}
		h.Close()
	}
}
