package mcp

import (
	"context"
	"encoding/json"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// The taps keep a result as it came beside what mcp-go makes of it. They embed
// the transports because mcp-go looks for their further methods.
type (
	stdioTap struct{ *transport.Stdio }
	httpTap  struct {
		*transport.StreamableHTTP
		post poster
		life context.Context // of the client
	}
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

// discovered keeps a server that answers {} to every method it does not know
// from being taken for one of 2026-07-28: those name the versions they speak.
func discovered(q transport.JSONRPCRequest, r *transport.JSONRPCResponse) *transport.JSONRPCResponse {
	if q.Method != string(mcp.MethodServerDiscover) || r == nil || r.Error != nil {
		return r
	}
	var d mcp.DiscoverResult
	if json.Unmarshal(r.Result, &d) == nil && len(d.SupportedVersions) > 0 {
		return r
	}
	return transport.NewJSONRPCErrorResponse(r.ID, mcp.METHOD_NOT_FOUND, "not a server/discover result", nil)
}

func (t *stdioTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.Stdio.SendRequest(ctx, q)
	r = discovered(q, r)
	keep(ctx, r)
	return r, err
}

func (t *httpTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	r, err := t.StreamableHTTP.SendRequest(ctx, q)
	r = discovered(q, r)
	keep(ctx, r)
	return r, err
}
