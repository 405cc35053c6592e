package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// public is an address that no table lists; web dials a loopback server for it.
const public = "93.184.216.34"

// web is an HTTP whose every name resolves as told, and whose connections to
// public end at a server here: what is tested is the real path but for the wire.
type web struct {
	*HTTP
	mu      sync.Mutex
	names   map[string][]string // host -> addresses; each look-up takes the next of "a|b"
	lookups []string
	dialled []string
	routes  map[string]string // address:port -> where it really goes
}

func newWeb(t testing.TB) *web {
	w := &web{HTTP: &HTTP{}, names: map[string][]string{}, routes: map[string]string{}}
	w.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lookups = append(w.lookups, host)
		all, ok := w.names[host]
		if !ok {
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
		if len(all) > 1 {
			w.names[host] = all[1:]
		}
		var out []netip.Addr
		for a := range strings.SplitSeq(all[0], ",") {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
	w.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		w.mu.Lock()
		w.dialled = append(w.dialled, addr)
		to, ok := w.routes[addr]
		w.mu.Unlock()
		if !ok {
			return nil, fmt.Errorf("nothing listens at %s", addr)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// serve answers for name:port at address.
func (w *web) serve(t testing.TB, name, addr, port string, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	w.names[name] = []string{addr}
	w.routes[net.JoinHostPort(addr, port)] = s.Listener.Addr().String()
	return s
}

func text(s string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, s) })
}

func get(w *web, r policy.Rights, url string) (string, error) {
	return fetch(w, r, &Request{URL: url})
}

func fetch(w *web, r policy.Rights, req *Request) (string, error) {
	resp, err := w.Do(bg, r, req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

func (w *web) trust(s *httptest.Server) {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	w.TLS = &tls.Config{RootCAs: roots}
}

// memory is a secret.Store for tests.
type memory map[string]string

func (m memory) Get(name string) (string, error) {
	if v, ok := m[name]; ok {
		return v, nil
	}
	return "", abi.ErrNotFound
}
func (m memory) Set(name, value string) error { m[name] = value; return nil }
func (m memory) Delete(name string) error     { delete(m, name); return nil }
func (m memory) Names() ([]string, error)     { return nil, nil }
func (m memory) Where() string                { return "memory" }
