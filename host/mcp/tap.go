package mcp

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
)

// The taps keep a result as it came beside what mcp-go makes of it. They embed
// the transports because mcp-go looks for their further methods.
type (
	stdioTap struct{ *transport.Stdio }
	httpTap  struct{ *transport.StreamableHTTP }
	sseTap   struct{ *transport.SSE }
)

// rawKey is for a *json.RawMessage in a request's context.
type rawKey struct{}

func keep(ctx context.Context, r *transport.JSONRPCResponse) {
	dst, ok := ctx.Value(rawKey{}).(*json.RawMessage)
	if !ok {
		return
	}
	*dst = nil // of an earlier round of the same request
	if r != nil && r.Error == nil {
		*dst = r.Result
	}
}

func (t *stdioTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.Stdio.SendRequest(ctx, q)
	keep(ctx, r)
	return r, err
}

func (t *httpTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.StreamableHTTP.SendRequest(ctx, q)
	keep(ctx, r)
	return r, err
}

func (t *sseTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.SSE.SendRequest(ctx, q)
	keep(ctx, r)
	return r, err
}
