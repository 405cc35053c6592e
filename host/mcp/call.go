package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// maxParts is how many content blocks of one answer are looked at.
const maxParts = 100_000

// remote is a tool of a server, as it was agreed to.
type remote struct {
	l *link
	d *definition
}

func (t *remote) Spec() host.Spec { return t.d.Spec }

// Call sends the call to the server, starting it if need be. What may have been
// taken is sent once: after a crash nobody knows whether it was carried out.
func (t *remote) Call(ctx context.Context, c host.Call) (abi.Result, error) {
	var raw json.RawMessage
	conn, err := t.l.with(ctx, func(conn *conn) (err error) {
		raw, err = conn.call(ctx, t.d.Tool, c)
		return err
	})
	var lost *lostError
	switch {
	case ctx.Err() != nil:
		return abi.Result{}, ctx.Err()
	case conn == nil || errors.Is(err, errUnknown):
		return abi.Errorf("The tool %s was not called: %v.", c.Tool, err), nil
	case errors.As(err, &lost):
		t.l.drop(conn, lost.why)
		return abi.Errorf("The MCP server %s ended during the call: %v. The call may have had effects and was not repeated. The next call starts the server again.", t.l.s.Name, err), nil
	case errors.Is(err, errTimeout):
		return abi.Errorf("The MCP server %s did not answer within %s. It was told to stop; the call may have had effects.", t.l.s.Name, t.l.s.Timeout), nil
	case err != nil:
		text, _ := told("", err.Error(), 4<<10)
		return abi.Errorf("The MCP server %s answered with an error: %s", t.l.s.Name, text), nil
	}
	conn.answered.Store(true)
	conn.settled(ctx)
	return answer(raw), nil
}

var errTimeout = errors.New("the call's time is over")

// call is one tools/call. A tool's time stands still while a person is asked,
// and begins anew with each progress notification, up to ten times.
func (c *conn) call(ctx context.Context, tool string, hc host.Call) (json.RawMessage, error) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := c.l.s.Timeout
	token := strconv.FormatInt(c.token.Add(1), 10)
	alive := make(chan struct{}, 1)
	c.watch(token, func(p progress) {
		select {
		case alive <- struct{}{}:
		default:
		}
		if hc.Progress != nil {
			hc.Progress(abi.Progress{Message: p.message, Done: p.done, Total: p.total})
		}
	})
	defer c.watch(token, nil)
	defer c.making(inner)()
	go func() {
		began, before := time.Now(), hc.Waited()
		last := began
		timer := time.NewTimer(limit)
		defer timer.Stop()
		for {
			select {
			case <-inner.Done():
				return
			case <-alive:
				last, before = time.Now(), hc.Waited()
			case <-timer.C:
			}
			left := min(limit-time.Since(last)+hc.Waited()-before, 10*limit-time.Since(began)+hc.Waited())
			if left <= 0 {
				cancel(errTimeout)
				return
			}
			timer.Reset(left)
		}
	}()
	raw, err := c.request(inner, func(ctx context.Context) error {
		req := mcp.CallToolRequest{}
		req.Params.Name, req.Params.RawArguments = tool, hc.Args
		req.Params.Meta = &mcp.Meta{ProgressToken: token}
		_, err := c.rpc.CallTool(ctx, req)
		return err
	})
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(inner), errTimeout) {
		err = errTimeout
	}
	return raw, err
}

// making counts ctx among the calls that are going on until the function that it
// returns is called.
func (c *conn) making(ctx context.Context) (done func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, ctx)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = slices.Delete(c.calls, slices.Index(c.calls, ctx), slices.Index(c.calls, ctx)+1)
		if c.retired && len(c.calls) == 0 {
			go c.shut(context.Background())
		}
	}
}

// behind is ctx for a question of the server, with what belongs to the call
// that it is asked for: who can be asked. It ends with that call too; end frees
// it. The protocol before 2026-07-28 does not say for which call a question is;
// it is clear where there is one.
func (c *conn) behind(ctx context.Context) (_ context.Context, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 1 {
		return ctx, func() {}
	}
	call := c.calls[0]
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(call, cancel)
	return callContext{ctx, call}, func() { stop(); cancel() }
}

// callContext ends as the first does, and has what the second has beside it.
type callContext struct {
	context.Context
	call context.Context
}

func (c callContext) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.call.Value(key)
}

// answer reads a result block by block, so that one that cannot be read costs
// only itself. Invoke checks structured content and cuts what is long.
func answer(raw json.RawMessage) abi.Result {
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
		Type       string            `json:"resultType"`
		// ToolResult is what servers answered before 2024-11-05.
		ToolResult json.RawMessage `json:"toolResult"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return abi.Errorf("The server's answer cannot be read: %v.", err)
	}
	if r.Type == string(mcp.ResultTypeInputRequired) {
		return abi.Errorf("The server asked for more than could be answered here.")
	}
	res := abi.Result{IsError: r.IsError}
	if s := string(r.Structured); s != "" && s != "null" {
		res.Structured = r.Structured
	}
	if len(r.Content) > maxParts {
		res.Content = append(res.Content, abi.TextBlock(fmt.Sprintf("(%d further blocks were left out)", len(r.Content)-maxParts)))
		r.Content = r.Content[:maxParts]
	}
	for _, b := range r.Content {
		res.Content = append(res.Content, block(b))
	}
	if len(r.Content) == 0 && len(r.ToolResult) > 0 {
		res.Content = append(res.Content, abi.TextBlock(string(r.ToolResult)))
	}
	return res
}

func block(raw json.RawMessage) abi.Content {
	var c abi.Content
	if err := json.Unmarshal(raw, &c); err != nil {
		return abi.TextBlock(fmt.Sprintf("(a block of content that cannot be read: %v)", err))
	}
	switch c.Type {
	case abi.TypeText:
		return abi.Content{Type: c.Type, Text: c.Text, Annotations: c.Annotations}
	case abi.TypeImage, abi.TypeAudio:
		if len(c.Data) > 0 && c.MIMEType != "" {
			return c
		}
		return abi.TextBlock(fmt.Sprintf("(an %s without data or type)", c.Type))
	case abi.TypeResource:
		if c.Resource != nil {
			return c
		}
	case abi.TypeResourceLink:
		if c.URI != "" {
			return c
		}
	}
	kind, _ := told("", c.Type, 40)
	return abi.TextBlock(strings.TrimSpace(fmt.Sprintf("(a block of kind %q, which is not known here)", kind)))
}
