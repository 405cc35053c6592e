package reach

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Body is the body of a Response: decoded, scrubbed, bounded and charged. Close
// it; reading to the end is not enough.
type Body struct {
	r         io.Reader
	raw       io.Closer
	ctx       context.Context
	cancel    context.CancelFunc
	budget    *Budget
	left      int64 // negative: no limit
	limited   bool
	strict    bool
	truncated bool
	fail      error
}

// Truncated reports whether the body went on past its limit; it is known once
// Read has answered io.EOF.
func (b *Body) Truncated() bool { return b.truncated }

// Close ends the exchange.
func (b *Body) Close() error {
	b.cancel()
	return b.raw.Close()
}

func (b *Body) Read(p []byte) (int, error) {
	if b.fail != nil {
		return 0, b.fail
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.limited && int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.limited && int64(n) > b.left {
		n = int(b.left)
		b.truncated, err = true, io.EOF
		if b.strict {
			err = fmt.Errorf("the response is over its limit: %w", abi.ErrTooLarge)
		}
	}
	b.left -= int64(n)
	if over := b.budget.read(n); over != nil {
		n, err = 0, over
	}
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	b.fail = err
	return n, err
}

// answer makes the Response of the last hop, which owns cancel.
func (h *HTTP) answer(req *Request, c *hop, resp *http.Response, hops []string, cancel context.CancelFunc) (*Response, error) {
	scrub := h.scrubber()
	body := &Body{
		raw: resp.Body, ctx: resp.Request.Context(), cancel: cancel, budget: req.Budget,
		left: orDefault(req.Limits.Body, defaultBody), limited: req.Limits.Body >= 0, strict: req.strict,
	}
	decoded, err := decode(resp)
	if err != nil {
		body.Close()
		return nil, h.failed(body.ctx, c, err)
	}
	body.r = scrub.Reader(decoded)
	header := make(http.Header, len(resp.Header))
	for k, vs := range resp.Header {
		for _, v := range vs {
			header.Add(k, scrub.String(v))
		}
	}
	return &Response{
		Status: resp.StatusCode, Proto: resp.Proto, Header: header,
		URL: scrub.String(c.url.String()), Hops: hops, Body: body,
	}, nil
}

// decode undoes gzip. The limit counts what comes out, so a bomb ends there.
func decode(resp *http.Response) (io.Reader, error) {
	if !strings.EqualFold(strings.TrimSpace(resp.Header.Get("Content-Encoding")), "gzip") || resp.Request.Method == http.MethodHead {
		return resp.Body, nil
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	return &gunzip{in: bufio.NewReader(resp.Body)}, nil
}

// gunzip opens its stream on the first Read: a model's stream may not have
// begun when the headers are there. An empty body is empty, not broken.
type gunzip struct {
	in  *bufio.Reader
	out *gzip.Reader
}

func (g *gunzip) Read(p []byte) (int, error) {
	if g.out == nil {
		if _, err := g.in.Peek(1); err != nil {
			return 0, err
		}
		out, err := gzip.NewReader(g.in)
		if err != nil {
			return 0, fmt.Errorf("the response is not the gzip it claims to be: %w: %w", abi.ErrUnavailable, err)
		}
		g.out = out
	}
	return g.out.Read(p)
}
