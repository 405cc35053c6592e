package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

type httpHeader struct {
	Method    string              `json:"method"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers"`
	TimeoutMS int64               `json:"timeout_ms"`
	MaxBytes  int64               `json:"max_bytes"`
	Redirect  string              `json:"redirect"`
}

type httpReply struct {
	Status    int                 `json:"status"`
	URL       string              `json:"url"`
	Headers   map[string][]string `json:"headers"`
	Truncated bool                `json:"truncated,omitempty"`
}

// hostHeaders are the host's to set: a guest that could would tell a server
// another host, or another length, than the one that was checked.
var hostHeaders = []string{"Host", "Content-Length", "Connection", "Accept-Encoding", "Transfer-Encoding",
	"Te", "Trailer", "Upgrade", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive"}

func opHTTP(ctx context.Context, c *call, h httpHeader, body []byte) (any, []byte, error) {
	broker := c.plugin.loader.HTTP
	if broker == nil {
		return nil, nil, fmt.Errorf("this host has no network for plugins: %w", abi.ErrUnsupported)
	}
	req, err := c.httpRequest(h, body)
	if err != nil {
		return nil, nil, err
	}
	res, err := broker.Do(ctx, c.rights, req)
	if res != nil {
		c.addHosts(res.Hops)
	}
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	limit := h.MaxBytes
	if limit <= 0 || limit > c.limits.BytesIn {
		limit = c.limits.BytesIn
	}
	limit = min(limit, maxFrame-maxHeader)
	data, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	cut := int64(len(data)) > limit || res.Body.Truncated()
	switch {
	case errors.Is(err, abi.ErrTooLarge): // the broker's own cap: cut, as asked
		cut = true
	case err != nil:
		return nil, nil, fmt.Errorf("reading the response of %s: %w", res.URL, err)
	}
	data = data[:min(int64(len(data)), limit)]
	return httpReply{res.Status, res.URL, res.Header, cut}, data, nil
}

func (c *call) httpRequest(h httpHeader, body []byte) (*reach.Request, error) {
	req := &reach.Request{Method: h.Method, URL: h.URL, Header: http.Header{}, Budget: c.budget}
	if h.TimeoutMS < 0 || h.MaxBytes < 0 {
		return nil, invalid("timeout_ms and max_bytes are not below zero")
	}
	switch h.Redirect {
	case "", "follow":
	case "manual":
		req.Limits.Redirects = -1
	default:
		return nil, invalid(`redirect is "follow" or "manual", not %q`, h.Redirect)
	}
	for name, values := range h.Headers {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(hostHeaders, key) {
			return nil, invalid("the header %s is set by the host", key)
		}
		req.Header[key] = append(req.Header[key], values...)
	}
	if len(body) > 0 {
		req.Body = bytes.NewReader(body)
	}
	req.Limits.Time = time.Duration(h.TimeoutMS) * time.Millisecond
	if h.TimeoutMS == 0 {
		req.Limits.Time = -1 // the call's own time bounds it
	}
	req.Limits.Body = h.MaxBytes
	if h.MaxBytes == 0 {
		req.Limits.Body = c.limits.BytesIn
	}
	return req, nil
}

func (c *call) addHosts(hops []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range hops {
		addNote(&c.receipt.Hosts, h)
	}
}

type modelHeader struct {
	Prompt    string             `json:"prompt"`
	Messages  []modelMessageJSON `json:"messages"`
	System    string             `json:"system"`
	MaxTokens int64              `json:"max_tokens"`
	Images    []modelImageJSON   `json:"images"`
}

type modelMessageJSON struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type modelImageJSON struct {
	MIMEType string `json:"mime_type"`
	Length   uint32 `json:"length"`
}

type modelReplyJSON struct {
	Stop      string `json:"stop,omitempty"`
	TokensIn  int64  `json:"tokens_in,omitempty"`
	TokensOut int64  `json:"tokens_out,omitempty"`
	Model     string `json:"model,omitempty"`
}

func opGenerate(ctx context.Context, c *call, h modelHeader, body []byte) (any, []byte, error) {
	if c.plugin.loader.Model == nil {
		return nil, nil, fmt.Errorf("no model is configured: %w", abi.ErrUnavailable)
	}
	q, err := modelRequest(h, body)
	if err != nil {
		return nil, nil, err
	}
	// What a question will cost is not known before; an estimate is asked for,
	// so that a budget is not overrun by more than one answer's inaccuracy.
	ask := c.receipt.Tokens + estimate(q) + max(h.MaxTokens, 0)
	if err := c.rights.Check(ctx, policy.Use{Cap: abi.Model, Verb: "generate", N: ask}); err != nil {
		return nil, nil, err
	}
	r, err := c.plugin.loader.Model(ctx, c.rights, q)
	c.receipt.Tokens += r.TokensIn + r.TokensOut
	if err != nil {
		if code(err) == abi.ErrInternal {
			err = fmt.Errorf("the model: %w: %w", err, abi.ErrUnavailable)
		}
		return nil, nil, err
	}
	return modelReplyJSON{r.Stop, r.TokensIn, r.TokensOut, r.Model}, []byte(r.Text), nil
}

// estimate counts four bytes a token, and a thousand for an image.
func estimate(q ModelRequest) int64 {
	n := int64(len(q.System))
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if b.Type == abi.TypeImage {
				n += 4 * 1000
			}
			n += int64(len(b.Text))
		}
	}
	return n / 4
}

func modelRequest(h modelHeader, body []byte) (q ModelRequest, err error) {
	if h.Prompt != "" && len(h.Messages) > 0 {
		return q, invalid("either prompt or messages, not both")
	}
	if h.MaxTokens < 0 {
		return q, invalid("max_tokens is not below zero")
	}
	if len(h.Messages) == 0 {
		h.Messages = []modelMessageJSON{{"user", h.Prompt}}
	}
	q.System, q.MaxTokens = h.System, h.MaxTokens
	for i, m := range h.Messages {
		if want := [...]string{"user", "assistant"}[i%2]; m.Role != want {
			return q, invalid("message %d is from %q; they alternate, and the first is from the user", i+1, m.Role)
		}
		q.Messages = append(q.Messages, ModelMessage{m.Role, []abi.Content{abi.TextBlock(m.Content)}})
	}
	if len(q.Messages)%2 == 0 {
		return q, invalid("the last message is from the user")
	}
	last := &q.Messages[len(q.Messages)-1]
	var images []abi.Content
	for _, im := range h.Images {
		if uint64(im.Length) > uint64(len(body)) || im.Length == 0 {
			return q, invalid("an image of %d bytes in a body of %d", im.Length, len(body))
		}
		images = append(images, abi.Content{Type: abi.TypeImage, MIMEType: im.MIMEType, Data: body[:im.Length:im.Length]})
		body = body[im.Length:]
	}
	if len(body) > 0 {
		if !utf8.Valid(body) {
			return q, invalid("the text after the images is not UTF-8")
		}
		text := &last.Content[0].Text
		if *text != "" {
			*text += "\n\n"
		}
		*text += string(body)
	}
	if last.Content[0].Text == "" {
		return q, invalid("the model is asked nothing")
	}
	last.Content = append(images, last.Content...)
	return q, nil
}
