package pdk

import (
	"context"
	"strings"
	"time"
)

// Request is an HTTP request. It needs the capability net.http for its URL,
// and for every redirect.
type Request struct {
	Method   string // GET when empty
	URL      string
	Header   Header
	Body     []byte
	Timeout  time.Duration // zero: the call's own deadline
	MaxBytes int64         // of the decoded body; the rest is cut. Zero: the call's limit on bytes received, past which Fetch fails
	// NoRedirect returns a redirect as the response. Otherwise up to five are followed.
	NoRedirect bool
}

// Response is the answer to a Request. A status of 400 or 500 is no error.
type Response struct {
	Status    int
	URL       string // the one that answered, after redirects
	Header    Header
	Body      []byte // decoded from gzip
	Truncated bool   // cut at MaxBytes
}

// Header is a set of HTTP header fields under their canonical names.
type Header map[string][]string

// Get returns the first value of a field, or "".
func (h Header) Get(name string) string {
	if v := h[canonical(name)]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set makes value the only one of a field. h must not be nil.
func (h Header) Set(name, value string) { h[canonical(name)] = []string{value} }

// canonical is net/textproto's rule for names made of letters and hyphens;
// that package would link all of net into every guest.
func canonical(name string) string {
	parts := strings.Split(strings.ToLower(name), "-")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "-")
}

// Fetch sends a request and waits for the whole response. The host resolves,
// connects, follows redirects and puts secrets in; what it refuses is an
// [Error] of abi.ErrDenied.
func Fetch(ctx context.Context, r Request) (Response, error) {
	header := struct {
		Method    string `json:"method,omitempty"`
		URL       string `json:"url"`
		Headers   Header `json:"headers,omitempty"`
		TimeoutMS int64  `json:"timeout_ms,omitempty"`
		MaxBytes  int64  `json:"max_bytes,omitempty"`
		Redirect  string `json:"redirect,omitempty"`
	}{Method: r.Method, URL: r.URL, Headers: r.Header, TimeoutMS: r.Timeout.Milliseconds(), MaxBytes: r.MaxBytes}
	if r.NoRedirect {
		header.Redirect = "manual"
	}
	var reply struct {
		Status    int    `json:"status"`
		URL       string `json:"url"`
		Headers   Header `json:"headers"`
		Truncated bool   `json:"truncated"`
	}
	body, err := opHTTP.do(ctx, header, r.Body, &reply)
	if err != nil {
		return Response{}, err
	}
	return Response{Status: reply.Status, URL: reply.URL, Header: reply.Headers, Body: body, Truncated: reply.Truncated}, nil
}
