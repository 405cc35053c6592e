// Package pdkhttp lets libraries that want an *http.Client work in a guest.
// It links net/http, which makes a guest some 5 MB larger: a plugin that only
// sends a few requests is better off with pdk.Fetch.
package pdkhttp

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

// Transport sends requests through the host. It needs the capability net.http.
// Responses are read whole; redirects are left to the client, and each is
// checked by the host. The zero value is ready to use.
type Transport struct {
	MaxBytes int64 // of a response, past which it is abi.ErrTooLarge; zero: the call's limit
}

// Client returns a client over a zero Transport.
func Client() *http.Client { return &http.Client{Transport: Transport{}} }

// RoundTrip implements [http.RoundTripper]. The context's deadline is passed to
// the host; cancelling it in another way has no effect in a guest, where
// nothing else runs meanwhile.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	out := pdk.Request{Method: r.Method, URL: r.URL.String(), Header: pdk.Header(r.Header), MaxBytes: t.MaxBytes, NoRedirect: true}
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	if deadline, ok := r.Context().Deadline(); ok {
		// At least a millisecond: zero would mean no deadline of its own.
		out.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	res, err := pdk.Fetch(r.Context(), out)
	if err != nil {
		return nil, err
	}
	if res.Truncated {
		return nil, &pdk.Error{Op: "elf:net.http", Code: abi.ErrTooLarge}
	}
	header := http.Header(res.Header)
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		Status: strconv.Itoa(res.Status) + " " + http.StatusText(res.Status), StatusCode: res.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(res.Body)), ContentLength: int64(len(res.Body)), Request: r,
	}, nil
}
