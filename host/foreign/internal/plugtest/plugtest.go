// Package plugtest is what the tests of foreign formats share: rights, a web
// that answers every name, a store of secrets.
package plugtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Rights are grants as people write them: "fs.read /ws/**".
func Rights(t testing.TB, grants ...string) policy.Rights {
	t.Helper()
	var list []policy.Grant
	for _, g := range grants {
		pg, err := policy.ParseGrant(g)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, pg)
	}
	g, err := policy.New("grants", list...)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: g}
}

// Web answers for hostname, over TLS, with h. Every name leads there.
func Web(t testing.TB, hostname string, h http.HandlerFunc) *reach.HTTP {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{hostname}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &reach.HTTP{
		TLS: &tls.Config{RootCAs: roots},
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	}
}

// Secrets is a store that only answers.
type Secrets map[string]string

func (s Secrets) Get(name string) (string, error) {
	if v, ok := s[name]; ok {
		return v, nil
	}
	return "", errors.New("no such secret")
}

func (Secrets) Set(string, string) error { return errors.ErrUnsupported }
func (Secrets) Delete(string) error      { return errors.ErrUnsupported }
func (Secrets) Names() ([]string, error) { return nil, errors.ErrUnsupported }
func (Secrets) Where() string            { return "a test" }
