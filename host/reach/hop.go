package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

const (
	defaultTime      = 30 * time.Second
	defaultBody      = 5 << 20
	defaultRedirects = 5
)

// hop is one request of a chain of redirects.
type hop struct {
	method string
	url    *url.URL
	header http.Header
	body   io.Reader
	length int64
	first  bool // the caller's own URL: later ones come from servers
}

// follow sends a request and goes where redirects lead.
func (h *HTTP) follow(ctx context.Context, r policy.Rights, req *Request) (*Response, error) {
	cur, err := firstHop(req, h.UserAgent)
	if err != nil {
		return nil, err
	}
	ctx, r, cancel := bound(ctx, r, req.Limits.Time)
	left := orDefault(req.Limits.Redirects, defaultRedirects)
	var hops []string
	for {
		resp, err := h.send(ctx, r, cur, req.Budget)
		if err != nil {
			cancel()
			return nil, err
		}
		hops = append(hops, cur.String())
		next, err := h.redirect(cur, resp)
		if err == nil && next != nil && req.Limits.Redirects >= 0 && left == 0 {
			err = fmt.Errorf("stopped after %d redirects: %w", len(hops)-1, abi.ErrLimit)
		}
		if err != nil {
			resp.Body.Close()
			cancel()
			return nil, err
		}
		if next == nil || req.Limits.Redirects < 0 {
			return h.answer(req, cur, resp, hops, cancel)
		}
		drain(resp.Body)
		left--
		cur = next
	}
}

// bound sets the total time. The clock stands still while a person is asked.
func bound(ctx context.Context, r policy.Rights, d time.Duration) (context.Context, policy.Rights, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	if d < 0 {
		return inner, r, func() { cancel(context.Canceled) }
	}
	left := orDefault(d, defaultTime)
	began := time.Now()
	timer := time.AfterFunc(left, func() { cancel(errTime) })
	if decide := r.Decide; decide != nil {
		r.Decide = func(_ context.Context, u policy.Use) error {
			if timer.Stop() {
				left -= time.Since(began)
				defer func() {
					began = time.Now()
					timer.Reset(left)
				}()
			}
			return decide(ctx, u)
		}
	}
	return inner, r, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

var errTime = fmt.Errorf("the request took longer than its time limit: %w: %w", abi.ErrUnavailable, context.DeadlineExceeded)

func orDefault[T ~int | ~int64](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}

func firstHop(req *Request, agent string) (*hop, error) {
	u, err := policy.CheckURL(req.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, abi.ErrInvalid)
	}
	c := &hop{method: req.Method, url: u, header: cleanHeader(req.Header), body: req.Body, length: req.length, first: true}
	if c.method == "" {
		c.method = http.MethodGet
	}
	if c.body == nil {
		c.length = 0
	} else if s, ok := c.body.(interface{ Len() int }); ok && c.length == 0 {
		c.length = int64(s.Len())
	} else if c.length == 0 {
		c.length = -1
	}
	if agent != "" && c.header.Get("User-Agent") == "" {
		c.header.Set("User-Agent", agent)
	}
	if c.header.Get("Range") == "" { // a range of what was packed is of no use
		c.header.Set("Accept-Encoding", "gzip")
	}
	return c, nil
}

// connectionHeaders belong to the connection, which is ours, or would name
// another host than the one that was checked.
var connectionHeaders = []string{
	"Host", "Connection", "Proxy-Connection", "Proxy-Authorization", "Proxy-Authenticate", "Keep-Alive",
	"Transfer-Encoding", "Content-Length", "Te", "Trailer", "Upgrade", "Accept-Encoding", "Expect",
}

func cleanHeader(in http.Header) http.Header {
	out := make(http.Header, len(in)+2)
	for k, vs := range in {
		if k = http.CanonicalHeaderKey(k); !slices.Contains(connectionHeaders, k) {
			out[k] = append(out[k], vs...)
		}
	}
	return out
}

// String is the hop for people: no path, no query.
func (c *hop) String() string {
	host := c.url.Host
	if c.url.Port() == "" {
		host += map[string]string{"http": ":80", "https": ":443"}[c.url.Scheme]
	}
	return c.method + " " + c.url.Scheme + "://" + host
}

// send checks one hop and sends it.
func (h *HTTP) send(ctx context.Context, r policy.Rights, c *hop, b *Budget) (*http.Response, error) {
	if err := r.Check(ctx, policy.Use{Cap: abi.NetHTTP, Verb: c.method, Target: c.url.String()}); err != nil {
		return nil, err
	}
	if err := b.request(); err != nil {
		return nil, err
	}
	p, host, addrs := h.connections(), c.url.Host, []netip.Addr(nil)
	rt := p.proxied
	if rt == nil || thisMachine(c.url.Hostname()) {
		var err error
		if addrs, err = h.addresses(ctx, r, c.method, c.url); err != nil {
			return nil, err
		}
		rt = p.pinned
		if host = pin(c.url.Hostname(), addrs); c.url.Port() != "" {
			host += ":" + c.url.Port()
		}
	}
	out := &http.Request{Method: c.method, URL: clone(c.url), Host: c.url.Host, Header: c.header.Clone(), ProtoMajor: 1, ProtoMinor: 1}
	if err := h.fill(ctx, r, c, addrs, out); err != nil {
		return nil, err
	}
	out.URL.Host = host
	if c.body != nil {
		out.Body, out.ContentLength = io.NopCloser(&sentReader{c.body, b}), c.length
	}
	resp, err := rt.RoundTrip(out.WithContext(ctx))
	if err != nil {
		return nil, h.failed(ctx, c, err)
	}
	return resp, nil
}

// thisMachine: a proxy would look for it at itself.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func clone(u *url.URL) *url.URL { c := *u; return &c }

// failed gives an error its kind.
func (h *HTTP) failed(ctx context.Context, c *hop, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", c, context.Cause(ctx))
	}
	var code abi.Code
	if errors.As(err, &code) {
		return fmt.Errorf("%s: %w", c, err)
	}
	return fmt.Errorf("%s: %w: %w", c, abi.ErrUnavailable, err)
}

// redirect says where an answer leads; nil when it is the last.
func (h *HTTP) redirect(c *hop, resp *http.Response) (*hop, error) {
	where := resp.Header.Get("Location")
	keep := false
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		keep = true
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
	default:
		return nil, nil
	}
	if where == "" {
		return nil, nil
	}
	ref, err := c.url.Parse(where)
	if err == nil {
		ref, err = policy.CheckURL(ref.String())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: redirected to what is no URL to go to: %w: %w", c, err, abi.ErrInvalid)
	}
	next := &hop{method: c.method, url: ref, header: c.header.Clone()}
	switch {
	case keep && c.body != nil:
		s, ok := c.body.(io.Seeker)
		if !ok {
			return nil, nil
		}
		if _, err := s.Seek(0, io.SeekStart); err != nil {
			return nil, nil
		}
		next.body, next.length = c.body, c.length
	case keep, c.method == http.MethodHead, c.method == http.MethodGet:
	default: // RFC 9110 15.4: what changes something becomes a GET
		next.method = http.MethodGet
		for k := range next.header {
			if strings.HasPrefix(k, "Content-") {
				next.header.Del(k)
			}
		}
	}
	if !sameOrigin(c.url, ref) {
		if h.scrubber().String(ref.String()) != ref.String() {
			return nil, fmt.Errorf("%s: a redirect would carry a secret to another host: %w", c, abi.ErrDenied)
		}
		strip(next.header)
	}
	return next, nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// strip leaves only headers that say nothing of who asks. What is gone stays
// gone: a hop back to the first host does not bring it back.
func strip(h http.Header) {
	for k := range h {
		switch k {
		case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Content-Type", "Content-Language", "Range":
			for _, v := range h[k] {
				if secret.In(v) {
					h.Del(k)
				}
			}
		default:
			h.Del(k)
		}
	}
}

// drain reads a little so that the connection can serve the next hop.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 4<<10)
	body.Close()
}

// sentReader charges what is sent.
type sentReader struct {
	r io.Reader
	b *Budget
}

func (s *sentReader) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if over := s.b.sent(n); over != nil {
		return 0, over
	}
	return n, err
}
