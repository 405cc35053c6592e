package mcp

import (
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// The lists that a client is told the changes of.
const (
	listTools = iota
	listPrompts
	listResources
	lists
)

// listed are the lists by the requests for them.
var listed = map[string]int{
	string(mcp.MethodToolsList): listTools, string(mcp.MethodPromptsList): listPrompts, string(mcp.MethodResourcesList): listResources,
}

// changes know when each list became another. A client of before 2026-07-28
// hears of a change on its stream, which it may open after it listed. Where its
// session began mcp-go keeps the notification until then. Another server, or this
// one after a restart, has none to keep: it tells what may have been missed.
type changes struct {
	mu sync.Mutex
	n  [lists]int // 1: as at the start; 0: the server has no such list
	at [lists]time.Time
}

// begin counts a list from here on.
func (c *changes) begin(list int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[list], c.at[list] = 1, time.Now()
}

// make has f, which tells the clients that listen, change a list.
func (c *changes) make(list int, f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.n[list]++
	c.at[list] = time.Now()
}

func (c *changes) now(list int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[list]
}

// missed are the lists that changed after a client had them last: as it is known
// here, or else since its session was made, to the second, be it by another
// server or before this one was started.
func (c *changes) missed(had [lists]int, made time.Time) (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for list, method := range [lists]string{mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationPromptsListChanged, mcp.MethodNotificationResourcesListChanged} {
		n, at := c.n[list], c.at[list].Unix()
		if n == 0 {
			continue
		}
		if had[list] > 0 && n > had[list] || had[list] == 0 && (at > made.Unix() || at == made.Unix() && n > 1) {
			out = append(out, method)
		}
	}
	return out
}

// opening is the answer to a request for a stream. What its client missed is
// the first on it, once whatever changes from then on goes to it, too.
type opening struct {
	*asking
	missed func() []string
	once   sync.Once
}

// Flush implements http.Flusher. The first one is that of the bare header.
func (o *opening) Flush() {
	o.once.Do(func() {
		for _, method := range o.missed() {
			_, _ = fmt.Fprintf(o.ResponseWriter, "%s{\"jsonrpc\":\"2.0\",\"method\":%q}\n\n", eventHead, method)
		}
	})
	o.asking.Flush()
}
