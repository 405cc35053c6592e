package kit

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/pdk/golden"
)

// world is what a case's plugin finds outside of itself: servers, a model,
// tools, settings, made of the case's answers. Requests go through the real
// broker, so grants, address checks and limits are those of a host; only the
// wire is not there.
type world struct {
	http   *reach.HTTP
	server *http.Server
	conns  chan net.Conn
	done   chan struct{}
	key    *ecdsa.PrivateKey
	root   *x509.Certificate

	mu      sync.Mutex
	c       *golden.Case
	missing []string // requests that the case does not answer
}

func newWorld() (*world, error) {
	w := &world{conns: make(chan net.Conn), done: make(chan struct{}), c: new(golden.Case)}
	var err error
	if w.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if w.root, err = w.certify(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(w.root)
	w.http = &reach.HTTP{
		TLS: &tls.Config{RootCAs: roots}, Dial: w.dial, Resolve: resolve,
		Secrets: &secret.Vault{Store: store{w}},
	}
	w.server = &http.Server{Handler: http.HandlerFunc(w.serve), ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0)}
	go w.server.Serve(listener{w})
	return w, nil
}

func (w *world) close() error {
	close(w.done)
	return errors.Join(w.http.Close(), w.server.Close())
}

// enter makes the world that of a case.
func (w *world) enter(c *golden.Case) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.c, w.missing = c, nil
}

func (w *world) now() *golden.Case {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.c
}

// unanswered says which requests the case has no answer for.
func (w *world) unanswered() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.missing) == 0 {
		return nil
	}
	return fmt.Errorf(`the case has no answer in "http" for %s`, strings.Join(w.missing, ", "))
}

func (w *world) serve(out http.ResponseWriter, r *http.Request) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	url := scheme + "://" + r.Host + r.URL.RequestURI()
	a, ok := w.now().Answer(r.Method, url)
	if !ok {
		w.mu.Lock()
		w.missing = append(w.missing, r.Method+" "+url)
		w.mu.Unlock()
		panic(http.ErrAbortHandler) // nobody is there
	}
	for k, v := range a.Headers {
		out.Header().Set(k, v)
	}
	out.WriteHeader(a.Status)
	io.WriteString(out, a.Body)
}

// resolve gives every name an address that the broker accepts as public.
func resolve(context.Context, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{93, 184, 215, 14})}, nil
}

// dial connects to a server that is everybody. The first byte says whether the
// client speaks TLS.
func (w *world) dial(_ context.Context, _, addr string) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		r := bufio.NewReader(server)
		var conn net.Conn = &peeked{server, r}
		first, err := r.Peek(1)
		if err == nil && first[0] == 0x16 { // a TLS handshake record
			conn = tls.Server(conn, &tls.Config{GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return w.leaf(h.ServerName, addr)
			}})
		}
		select {
		case w.conns <- conn:
		case <-w.done:
			server.Close()
		}
	}()
	return client, nil
}

// peeked is a connection of which something was read ahead.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// listener gives the server what was dialled.
type listener struct{ w *world }

func (l listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.w.conns:
		return c, nil
	case <-l.w.done:
		return nil, net.ErrClosed
	}
}

func (l listener) Close() error   { return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

// leaf is the certificate of a server: of the name that the client gives, or
// of the address that it dialled.
func (w *world) leaf(name, addr string) (*tls.Certificate, error) {
	about := &x509.Certificate{DNSNames: []string{name}}
	if name == "" {
		at, err := netip.ParseAddrPort(addr)
		if err != nil {
			return nil, err
		}
		about.DNSNames, about.IPAddresses = nil, []net.IP{at.Addr().AsSlice()}
	}
	cert, err := w.certify(about, w.root)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: w.key}, nil
}

// certify makes a certificate of the world's own authority, or that authority.
func (w *world) certify(about *x509.Certificate, parent *x509.Certificate) (*x509.Certificate, error) {
	about.SerialNumber = big.NewInt(time.Now().UnixNano())
	about.NotAfter = time.Now().Add(24 * time.Hour)
	if parent == nil {
		parent = about
	}
	der, err := x509.CreateCertificate(rand.Reader, about, parent, &w.key.PublicKey, w.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// store is the secrets of a case.
type store struct{ w *world }

func (s store) Get(name string) (string, error) {
	if v, ok := s.w.now().Secrets[name]; ok {
		return v, nil
	}
	return "", abi.ErrNotFound
}

func (store) Set(string, string) error { return errors.ErrUnsupported }
func (store) Delete(string) error      { return errors.ErrUnsupported }
func (store) Where() string            { return "the case" }

func (s store) Names() ([]string, error) { return slices.Sorted(maps.Keys(s.w.now().Secrets)), nil }

func (w *world) env(name string) (string, bool) {
	v, ok := w.now().Env[name]
	return v, ok
}

func (w *world) model(context.Context, policy.Rights, sandbox.ModelRequest) (sandbox.ModelReply, error) {
	m := w.now().Model
	if m == nil {
		return sandbox.ModelReply{}, fmt.Errorf(`the case has no "model": %w`, abi.ErrUnavailable)
	}
	return sandbox.ModelReply{Text: *m, Model: "case"}, nil
}

func (w *world) invoke(_ context.Context, c host.Call) abi.Result {
	if text, ok := w.now().Tools[c.Tool]; ok {
		return abi.Text(text)
	}
	return abi.Errorf("There is no tool %s: the case names none of it in \"tools\".", c.Tool)
}
