package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	quietPeriod = 80 * time.Millisecond // announcements in a burst are one
	longBurst   = time.Second           // that does not end
	slowest     = 10 * time.Second      // between lists of a server that announces all the time
	relistTime  = 10 * time.Second
	settleTime  = 2 * time.Second // that a finished call waits for an announced list
)

type progress struct {
	message     string
	done, total float64
}

// watch sets who is told of the progress of a call; nil: nobody any more.
func (c *conn) watch(token string, f func(progress)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f == nil {
		delete(c.progress, token)
		return
	}
	c.progress[token] = f
}

// notified is called on the connection's reader: it must not wait.
func (c *conn) notified(n mcp.JSONRPCNotification) {
	f := n.Params.AdditionalFields
	switch n.Method {
	case string(mcp.MethodNotificationToolsListChanged), string(mcp.MethodNotificationPromptsListChanged):
		c.announce()
	case mcp.MethodNotificationSubscriptionsAcknowledged:
		go c.listAgain() // what changed since the first list was announced to nobody
	case "notifications/progress":
		c.mu.Lock()
		report := c.progress[fmt.Sprint(f["progressToken"])]
		c.mu.Unlock()
		if report == nil {
			return
		}
		p := progress{}
		p.done, _ = f["progress"].(float64)
		p.total, _ = f["total"].(float64)
		if text, ok := f["message"].(string); ok {
			p.message, _ = told("", text, 500)
		}
		report(p)
	case "notifications/message":
		if c.l.c.opt.Log == nil || !c.logs.allow() {
			return
		}
		level, _ := f["level"].(string)
		text, ok := f["data"].(string)
		if !ok {
			b, _ := json.Marshal(f["data"])
			text = string(b)
		}
		if from, ok := f["logger"].(string); ok && from != "" {
			text = from + ": " + text
		}
		text, _ = told("", text, 2<<10)
		level, _ = told("", level, 20)
		c.l.c.log(c.l.s.Name, level, text)
	}
}

// announce takes the list in anew, once for a burst of announcements, and ever
// more seldom while they do not end.
func (c *conn) announce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.changed != nil {
		if now.Sub(c.since) < longBurst {
			c.relist.Reset(max(quietPeriod, c.due.Sub(now)))
		}
		return
	}
	c.changed, c.since = make(chan struct{}), now
	c.relist = time.AfterFunc(max(quietPeriod, c.due.Sub(now)), func() {
		c.mu.Lock()
		done := c.changed
		c.changed = nil
		c.mu.Unlock()
		if done == nil {
			return
		}
		defer close(done)
		c.listAgain()
		c.slow()
	})
}

// slow notes that a list was taken in: the next one waits twice as long as this
// one did, until it was quiet for a while.
func (c *conn) slow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.pace = max(quietPeriod, min(2*c.pace, slowest)); now.Sub(c.due) > slowest {
		c.pace = quietPeriod
	}
	c.due = now.Add(c.pace)
}

func (c *conn) listAgain() {
	if c.isLost() {
		return
	}
	ctx, cancel := context.WithTimeout(c.l.c.ctx, relistTime)
	defer cancel()
	if err := c.l.list(ctx, c); err != nil && c.l.c.ctx.Err() == nil && !c.isLost() {
		c.l.c.log(c.l.s.Name, "error", "its tools could not be listed again: "+cleaned(err).Error())
	}
}

// settled waits until a list that was announced during a call is taken in, so
// that the next step sees the tools that the call brought.
func (c *conn) settled(ctx context.Context) {
	c.mu.Lock()
	changed := c.changed
	c.mu.Unlock()
	if changed == nil {
		return
	}
	t := time.NewTimer(settleTime)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-ctx.Done():
	}
}
