package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// listener is one subscriptions/listen of a client over standard streams, as
// mcp-go knows of it: a session of its own, with a filter of its own. What goes
// to it carries the subscription's id, by which the client tells one from another.
type listener struct {
	*stdioClient
	id   json.RawMessage
	news chan mcp.JSONRPCNotification

	mu     sync.Mutex
	filter mcp.SubscriptionFilter
}

var _ server.SessionWithSubscriptionFilter = (*listener)(nil)

func (l *listener) Initialized() bool                                   { return true }
func (l *listener) NotificationChannel() chan<- mcp.JSONRPCNotification { return l.news }
func (l *listener) SessionID() string                                   { return "stdio " + string(l.id) }

func (l *listener) SetSubscriptionFilter(f mcp.SubscriptionFilter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.filter = f
}

// SubscriptionFilter implements server.SessionWithSubscriptionFilter. A filter
// is there from the begin: nothing comes that was not asked for.
func (l *listener) SubscriptionFilter() (mcp.SubscriptionFilter, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.filter, true
}

// listen carries out a subscriptions/listen. It ends with ctx, or with the
// client's input.
func (s *stream) listen(ctx context.Context, m message, line []byte) any {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.input, cancel)()
	s.turn.yield()
	l := &listener{stdioClient: s.c, id: m.id, news: make(chan mcp.JSONRPCNotification, maxQueued)}
	if err := s.b.srv.RegisterSession(ctx, l); err != nil {
		return mcp.NewJSONRPCError(mcp.NewRequestId(m.id), mcp.INTERNAL_ERROR, err.Error(), nil)
	}
	over, told := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(told)
		l.pass(ctx, s.b, over)
	}()
	answer := s.b.srv.HandleMessage(s.b.srv.WithContext(ctx, l), line)
	s.b.srv.UnregisterSession(context.WithoutCancel(ctx), l.SessionID())
	close(over)
	<-told
	return answer
}

// pass writes what comes for a listener until over is closed, and nothing more
// once ctx has ended. Behind the acknowledgement, which is the first, goes what
// its client has missed.
func (l *listener) pass(ctx context.Context, b *Bridge, over <-chan struct{}) {
	acknowledged := false
	tell := func(n mcp.JSONRPCNotification) {
		if ctx.Err() != nil {
			return
		}
		var missed []string
		if !acknowledged { // what changes from here on comes by itself
			acknowledged = true
			filter, _ := l.SubscriptionFilter()
			missed = wanted(filter, b.changes.missed(l.lists(), time.Now()))
		}
		_ = l.write(tagged(n, l.id))
		for _, method := range missed {
			n := mcp.JSONRPCNotification{JSONRPC: mcp.JSONRPC_VERSION}
			n.Method = method
			_ = l.write(tagged(n, l.id))
		}
	}
	for {
		select {
		case n := <-l.news:
			tell(n)
		case <-over:
			for len(l.news) > 0 {
				tell(<-l.news)
			}
			return
		}
	}
}

// tagged is a notification for one subscription. Others share its parameters.
func tagged(n mcp.JSONRPCNotification, id json.RawMessage) mcp.JSONRPCNotification {
	meta := map[string]any{}
	maps.Copy(meta, n.Params.Meta)
	meta[mcp.MetaKeySubscriptionID] = id
	n.Params.Meta = meta
	return n
}

// wanted are those of the methods that a filter lets through.
func wanted(f mcp.SubscriptionFilter, methods []string) []string {
	return slices.DeleteFunc(methods, func(m string) bool {
		switch m {
		case mcp.MethodNotificationToolsListChanged:
			return !f.ToolsListChanged
		case mcp.MethodNotificationPromptsListChanged:
			return !f.PromptsListChanged
		case mcp.MethodNotificationResourcesListChanged:
			return !f.ResourcesListChanged
		}
		return true
	})
}

// errStopping is why requests end when the server does.
var errStopping = errors.New("the server is stopping")

// keepAlive is how often a subscription without news says that it is alive:
// what stands between takes a silent connection for a dead one.
const keepAlive = 25 * time.Second

// subscription is the answer to a subscriptions/listen over HTTP, on which
// mcp-go writes each event with one Write. Behind the acknowledgement goes what
// the client may have missed. It keeps no session, so that nobody knows what it
// had, and from which server: all counts that changed, or began, within the life
// of a session.
type subscription struct {
	*asking
	id      json.RawMessage
	changes *changes

	lock         sync.Mutex
	acknowledged bool
}

// Write implements io.Writer.
func (s *subscription) Write(b []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	line, event := bytes.CutPrefix(b, []byte(eventHead))
	if !event || s.acknowledged {
		return s.asking.Write(b)
	}
	s.acknowledged = true // what changes from here on comes by itself
	missed := s.changes.missed([lists]int{}, time.Now().Add(-sessionLife))
	n, err := s.asking.Write(b)
	var ack struct {
		Params struct {
			Notifications mcp.SubscriptionFilter `json:"notifications"`
		} `json:"params"`
	}
	if err != nil || json.Unmarshal(line, &ack) != nil {
		return n, err
	}
	for _, method := range wanted(ack.Params.Notifications, missed) {
		_, err = fmt.Fprintf(s.ResponseWriter, "%s{\"jsonrpc\":\"2.0\",\"method\":%q,\"params\":{\"_meta\":{%q:%s}}}\n\n", eventHead, method, mcp.MetaKeySubscriptionID, s.id)
	}
	return n, err
}

// Flush implements http.Flusher.
func (s *subscription) Flush() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.asking.Flush()
}

// say writes something of our own between the events.
func (s *subscription) say(text string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.acknowledged {
		_, _ = s.ResponseWriter.Write([]byte(text))
		s.asking.Flush()
	}
}

// live says every now and then that the subscription is alive, until the
// function that it returns is called, which waits for it.
func (s *subscription) live() (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(keepAlive)
		defer t.Stop()
		for {
			select {
			case <-over:
				return
			case <-t.C:
				s.say(":\n\n")
			}
		}
	}()
	return func() { close(over); <-done }
}

// end tells the client, where the server stops, that this was no accident.
func (s *subscription) end(ctx context.Context) {
	if errors.Is(context.Cause(ctx), errStopping) {
		s.say(fmt.Sprintf("%s{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"_meta\":{%q:%s}}}\n\n", eventHead, s.id, mcp.MetaKeySubscriptionID, s.id))
	}
}
