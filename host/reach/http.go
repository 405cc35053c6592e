package reach

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/policy"
)

// HTTP is the one way out to the network. Every hop of every request is
// checked against the call's rights, its name is resolved once, every address
// must pass the special-use table or be granted by name, and the checked
// address is the one dialled. The environment's proxy variables are ignored.
//
// The zero value works; set fields before first use. It is safe for concurrent
// use; Close releases idle connections.
type HTTP struct {
	// Proxy comes from the system policy only. With it the proxy resolves the
	// name, so addresses are checked where the URL spells them.
	Proxy *url.URL
	// TLS holds extra roots and client certificates; ServerName is never taken
	// from it. Nil: the system's roots. TLSFiles makes one.
	TLS *tls.Config
	// Secrets fills placeholders in headers, query and path after the last
	// check, and scrubs what comes back. Nil: a placeholder is plain text.
	Secrets   *Secrets
	UserAgent string

	// Resolve and Dial replace the system's; Dial is given "ip:port". For tests.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)

	once sync.Once
	pool *pool
}

// Request is one request of a call.
type Request struct {
	Method string // "" is GET
	URL    string
	Header http.Header
	// Body is sent as it is. For a redirect that repeats the body (307, 308) it
	// must be an io.Seeker, else the redirect is answered as it came.
	Body   io.Reader
	Limits HTTPLimits
	Budget *Budget // of the call; nil: none
}

// HTTPLimits bound one request. Zero fields are the defaults.
type HTTPLimits struct {
	Time      time.Duration // whole exchange, body included; 0 is 30 s, negative none (model streams)
	Header    int64         // bytes of response headers; 0 is 256 KiB
	Body      int64         // bytes after decoding; 0 is 5 MiB, negative none
	Redirects int           // 0 is 5, negative none: a 3xx is the answer
}

// Response is the answer to the last hop. Close its Body.
type Response struct {
	Status int
	Proto  string
	Header http.Header // scrubbed; Content-Encoding and -Length are gone when decoded
	URL    string      // of the last hop, canonical, without secrets
	Hops   []string    // "GET https://a.example:443", each hop in order
	Body   *Body
}

// Do sends a request and follows redirects. The error is a *policy.Denial
// (errors.Is abi.ErrDenied), abi.ErrInvalid, abi.ErrLimit, abi.ErrTooLarge,
// abi.ErrUnavailable or the context's.
func (h *HTTP) Do(ctx context.Context, r policy.Rights, req *Request) (*Response, error) {
	return h.do(ctx, r, req)
}

// Client is a view for libraries that want an *http.Client: the same checks,
// redirects and secrets. limits bounds every request made through it.
func (h *HTTP) Client(r policy.Rights, limits HTTPLimits) *http.Client {
	return &http.Client{
		Transport:     &transport{h: h, rights: r, limits: limits},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close drops idle connections.
func (h *HTTP) Close() error { return h.close() }

// TLSFiles makes the TLS settings of a policy: a PEM file of extra roots, which
// are added to the system's, and a client certificate with its key. "" leaves
// a part out.
func TLSFiles(caFile, certFile, keyFile string) (*tls.Config, error) {
	return tlsFiles(caFile, certFile, keyFile)
}
