package mcp

import (
	"context"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/abi"
)

// reporter passes a tool's progress on to the request that waits for it, if
// the client wants it.
type reporter struct {
	srv *server.MCPServer

	mu    sync.Mutex
	ctx   context.Context
	token any // nil: nobody is told
	last  float64
	n     int
}

func (b *Bridge) reporter(ctx context.Context, token any) *reporter {
	return &reporter{srv: b.srv, ctx: ctx, token: token, last: -1}
}

// pause ends the reports to a request that is about to be answered.
func (r *reporter) pause() {
	r.flush()
	r.follow(context.Background(), nil)
}

// follow reports to another request from now on.
func (r *reporter) follow(ctx context.Context, token any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.token, r.last, r.n = ctx, token, -1, 0
}

func (r *reporter) report(p abi.Progress) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.token == nil {
		return
	}
	if p.Done <= r.last { // it must grow (the specification of progress)
		p.Done = r.last + 1e-6
	}
	r.last = p.Done
	r.n++
	params := map[string]any{"progressToken": r.token, "progress": p.Done}
	if p.Total > 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = p.Message
	}
	const method = "notifications/progress"
	if c, ok := server.ClientSessionFromContext(r.ctx).(*stdioClient); ok {
		_ = c.write(map[string]any{"jsonrpc": "2.0", "method": method, "params": params}) // in order with results
		return
	}
	_ = r.srv.SendNotificationToClient(r.ctx, method, params)
}

// flush lets progress go out before the result that is about to follow: over
// HTTP, mcp-go drops what its forwarder still holds then.
func (r *reporter) flush() {
	if r == nil {
		return
	}
	r.mu.Lock()
	ctx, n := r.ctx, r.n
	r.mu.Unlock()
	if n == 0 {
		return
	}
	s := server.ClientSessionFromContext(ctx)
	if _, ok := s.(*stdioClient); ok || s == nil {
		return
	}
	for range 200 {
		if len(s.NotificationChannel()) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * time.Millisecond)
}
