package reach

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

// HTTP is the one way out to the network. Every hop of every request is
// checked against the call's rights, its name is resolved once, every address
// must pass the special-use table or be granted by name, and the checked
// address is the one dialled. The environment's proxy variables are ignored.
//
// The zero value works; set fields before first use. It is safe for concurrent
// use; Close releases idle connections.
type HTTP struct {
	// Proxy comes from the system policy only. It resolves the names, so with it
	// an address is checked where the URL spells one; what a name may resolve to
	// is the proxy's to decide. This machine itself is reached without it.
	Proxy *url.URL
	// TLS holds extra roots and client certificates; ServerName is never taken
	// from it. Nil: the system's roots. TLSFiles makes one.
	TLS *tls.Config
	// Secrets fills placeholders in headers, query and path after the last
	// check, and scrubs what comes back. Nil: a placeholder is plain text.
	Secrets   *secret.Vault
	UserAgent string

	// Resolve and Dial replace the system's; Dial is given "ip:port". For tests.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)

	once sync.Once
	pool *pool // guarded by once
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

	length int64 // of Body when it cannot say it itself; -1: not known
	strict bool  // a body over its limit is an error, not an end
}

// HTTPLimits bound one request. Zero fields are the defaults. Response headers
// are always bounded, to 256 KiB.
type HTTPLimits struct {
	Time      time.Duration // whole exchange, body included; 0 is 30 s, negative none (model streams)
	Body      int64         // bytes after decoding, where the body ends (Body.Truncated); 0 is 5 MiB, negative none
	Redirects int           // 0 is 5, negative none: a 3xx is the answer
}

// Response is the answer to the last hop. Close its Body.
type Response struct {
	Status int
	Proto  string
	Header http.Header // scrubbed; Content-Encoding and Content-Length are gone when decoded
	URL    string      // of the last hop, canonical, without secrets
	Hops   []string    // "GET https://a.example:443", each hop in order
	Body   *Body
}

// Do sends a request and follows redirects. The error is a *policy.Denial
// (errors.Is abi.ErrDenied), abi.ErrInvalid, abi.ErrLimit, abi.ErrTooLarge,
// abi.ErrUnavailable or the context's. No secret is in it.
func (h *HTTP) Do(ctx context.Context, r policy.Rights, req *Request) (*Response, error) {
	resp, err := h.follow(ctx, r, req)
	if err != nil {
		return nil, h.scrubber().Error(err)
	}
	return resp, nil
}

// Client is a view for libraries that want an *http.Client: the same checks,
// redirects and secrets. limits and b (nil: none) bound every request made
// through it; a body over its limit is an error here, not a short body.
func (h *HTTP) Client(r policy.Rights, limits HTTPLimits, b *Budget) *http.Client {
	return &http.Client{
		Transport:     &transport{h: h, rights: r, limits: limits, budget: b},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// transport is the view behind Client.
type transport struct {
	h      *HTTP
	rights policy.Rights
	limits HTTPLimits
	budget *Budget
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	body := req.Body
	if body == http.NoBody {
		body = nil
	}
	if body != nil {
		defer body.Close()
	}
	own := &Request{
		Method: req.Method, URL: req.URL.String(), Header: req.Header,
		Limits: t.limits, Budget: t.budget, length: req.ContentLength, strict: true,
	}
	switch {
	case body != nil && req.GetBody != nil:
		own.Body = &rereader{Reader: body, again: req.GetBody}
	case body != nil:
		own.Body = body
	}
	resp, err := t.h.Do(req.Context(), t.rights, own)
	if err != nil {
		return nil, err
	}
	last := req.Clone(req.Context())
	if u, err := url.Parse(resp.URL); err == nil {
		last.URL = u
	}
	major, minor, _ := http.ParseHTTPVersion(resp.Proto)
	return &http.Response{
		Status: strconv.Itoa(resp.Status) + " " + http.StatusText(resp.Status), StatusCode: resp.Status,
		Proto: resp.Proto, ProtoMajor: major, ProtoMinor: minor,
		Header: resp.Header, Body: resp.Body, ContentLength: -1, Request: last,
	}, nil
}

// rereader is a body that can be had again from its beginning.
type rereader struct {
	io.Reader
	again func() (io.ReadCloser, error)
}

func (r *rereader) Seek(off int64, whence int) (int64, error) {
	if off != 0 || whence != io.SeekStart {
		return 0, errors.ErrUnsupported
	}
	body, err := r.again()
	if err != nil {
		return 0, err
	}
	r.Reader = body
	return 0, nil
}

// Close drops idle connections. Requests under way go on.
func (h *HTTP) Close() error {
	h.connections().close()
	return nil
}

func (h *HTTP) scrubber() *secret.Scrubber {
	if h.Secrets == nil {
		return &secret.Scrubber{}
	}
	return &h.Secrets.Scrub
}
