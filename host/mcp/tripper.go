package mcp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync/atomic"
)

// tripper is below mcp-go's HTTP transports: what it reads of a server is bounded,
// and whether a request was taken is known afterwards.
type tripper struct {
	next http.RoundTripper
	busy *atomic.Int64
	take func(data []byte) bool // of event streams; nil: nothing
}

// sending is what is known of one request of ours, which mcp-go may have sent
// in several rounds.
type sending struct {
	unknown atomic.Bool // a server said 404: it does not know the session
	taken   atomic.Bool // it may have acted on a part
}

// sendingKey is for a *sending in a request's context.
type sendingKey struct{}

func (w *tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if s, ok := req.Context().Value(sendingKey{}).(*sending); ok && req.Method == http.MethodPost {
		if err == nil && resp.StatusCode == http.StatusNotFound {
			s.unknown.Store(true)
		} else {
			s.taken.Store(true)
		}
	}
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == "text/event-stream" {
		resp.Body = newEvents(resp.Body, w.busy, w.take)
	} else {
		resp.Body = &bounded{resp.Body, maxAnswer}
	}
	return resp, nil
}

// bounded is a body that is an error when it is longer than left.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, fmt.Errorf("an answer of more than %d MiB", maxAnswer>>20)
	}
	return n, err
}

// sent puts a sending into a context.
func sent(ctx context.Context) (context.Context, *sending) {
	s := &sending{}
	return context.WithValue(ctx, sendingKey{}, s), s
}
