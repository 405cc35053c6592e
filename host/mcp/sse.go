package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// sseTap is the older HTTP+SSE with what mcp-go's transport of it lacks: the
// server's own requests are answered, and what waits ends with the stream.
type sseTap struct {
	*transport.SSE
	post  poster
	life  context.Context // of the client
	gone  <-chan struct{} // closed when the stream has ended
	slots chan struct{}   // of requests of the server that are being answered

	mu      sync.Mutex
	handler transport.RequestHandler
}

// maxServed is how many requests of one server are answered at once. The
// stream waits for a free place.
const maxServed = 32

// answerable are the requests of a server that somebody may answer.
var answerable = []string{string(mcp.MethodPing), string(mcp.MethodListRoots), string(mcp.MethodSamplingCreateMessage), string(mcp.MethodElicitationCreate)}

// SetRequestHandler is found by mcp-go.
func (t *sseTap) SetRequestHandler(h transport.RequestHandler) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handler = h
}

// take answers a message if it is a request. mcp-go would take one whose id
// equals that of a request of ours for its answer.
func (t *sseTap) take(data []byte) bool {
	if !asksUs(data) {
		return false
	}
	var q transport.JSONRPCRequest
	if json.Unmarshal(data, &q) != nil {
		return true // it can be answered to nobody
	}
	select {
	case t.slots <- struct{}{}:
	case <-t.gone:
		return true
	case <-t.life.Done():
		return true
	}
	go func() {
		defer func() { <-t.slots }()
		t.serve(q)
	}()
	return true
}

// asksUs reports whether a message of a server is a request.
func asksUs(data []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
	}
	return json.Unmarshal(data, &m) == nil && m.Method != nil && len(m.ID) > 0 && string(m.ID) != "null"
}

func (t *sseTap) serve(q transport.JSONRPCRequest) {
	ctx, cancel := context.WithCancel(t.life)
	defer cancel()
	go func() {
		select {
		case <-t.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	r, err := t.handle(ctx, q)
	if err != nil {
		r = transport.NewJSONRPCErrorResponse(q.ID, mcp.INTERNAL_ERROR, err.Error(), nil)
	}
	if ctx.Err() == nil {
		_ = t.post.answer(ctx, r) // a server that does not take it waits for nothing else
	}
}

func (t *sseTap) handle(ctx context.Context, q transport.JSONRPCRequest) (r *transport.JSONRPCResponse, err error) {
	t.mu.Lock()
	h := t.handler
	t.mu.Unlock()
	if h == nil || !slices.Contains(answerable, q.Method) {
		return transport.NewJSONRPCErrorResponse(q.ID, mcp.METHOD_NOT_FOUND, "there is no such method here", nil), nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the request could not be handled: %v", p)
		}
	}()
	return h(ctx, q)
}

// SendRequest ends with the stream that would bring the answer.
func (t *sseTap) SendRequest(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-t.gone:
			cancel()
		case <-own.Done():
		}
	}()
	r, err := t.SSE.SendRequest(own, q)
	if err != nil && ctx.Err() == nil && own.Err() != nil {
		err = transport.ErrTransportClosed
	}
	keep(ctx, r)
	return r, err
}
