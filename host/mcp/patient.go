package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// answerTime bounds sending one answer.
const answerTime = 30 * time.Second

// patient lets a person take longer for a question over HTTP than the half
// minute that mcp-go gives each request of a server: what comes later is sent
// from here.
func (t *httpTap) patient(h transport.RequestHandler) transport.RequestHandler {
	return func(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		if q.Method == string(mcp.MethodPing) {
			return h(ctx, q)
		}
		own, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer context.AfterFunc(t.life, cancel)()
		defer context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				cancel()
			}
		})()
		r, err := h(own, q)
		if ctx.Err() == nil || own.Err() != nil {
			return r, err
		}
		if err != nil {
			r = transport.NewJSONRPCErrorResponse(q.ID, mcp.INTERNAL_ERROR, err.Error(), nil)
		}
		return nil, t.post.answer(own, r)
	}
}

// SetRequestHandler is found by mcp-go.
func (t *httpTap) SetRequestHandler(h transport.RequestHandler) {
	t.StreamableHTTP.SetRequestHandler(t.patient(h))
}

// poster sends answers to requests of a server.
type poster struct {
	web     *http.Client
	headers map[string]string
	where   func() string // the URL
	session func() string // "": there is none
	version func() string // of the protocol
}

func (p poster) answer(ctx context.Context, r *transport.JSONRPCResponse) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.where(), bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if id := p.session(); id != "" {
		req.Header.Set(transport.HeaderKeySessionID, id)
	}
	if v := p.version(); v != "" {
		req.Header.Set(transport.HeaderKeyProtocolVersion, v)
	}
	for k, v := range p.headers {
		req.Header.Set(k, v)
	}
	resp, err := p.web.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
