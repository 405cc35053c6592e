package mcp

import (
	"container/list"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
)

// maxSessions is of how many sessions over HTTP something is kept. The id of a
// session that was used longest ago stays good when it is forgotten: it is then
// what it is to a server that never saw it.
const maxSessions = 1000

// recent are the sessions that were used last.
type recent struct {
	mu    sync.Mutex
	order list.List // of *known, the last used first
	at    map[string]*list.Element
}

// known is what is kept of a session.
type known struct {
	id  string
	had [lists]int // which of each list its client got last; 0: none
	// queued says that mcp-go keeps its notifications until there is a stream:
	// it began here, and was not left alone for too long since.
	queued bool
	used   time.Time
}

// use notes a session, and gives the one that is to be forgotten for it, if any.
func (r *recent) use(id string) (forgotten string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.at[id]; e != nil {
		r.order.MoveToFront(e)
		k := e.Value.(*known)
		k.queued = k.queued && time.Since(k.used) < idleSession
		k.used = time.Now()
		return ""
	}
	if r.at == nil {
		r.at = map[string]*list.Element{}
	}
	if r.order.Len() >= maxSessions {
		if k, ok := r.order.Remove(r.order.Back()).(*known); ok {
			forgotten = k.id
		}
		delete(r.at, forgotten)
	}
	r.at[id] = r.order.PushFront(&known{id: id, used: time.Now()})
	return forgotten
}

// note changes what is kept of a session, if anything is.
func (r *recent) note(id string, f func(*known)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.at[id]; e != nil {
		f(e.Value.(*known))
	}
}

func (r *recent) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.at[id]; e != nil {
		r.order.Remove(e)
		delete(r.at, id)
	}
}

// used notes a session that a client showed or got.
func (g *guard) used(id string) {
	if id == "" {
		return
	}
	if old := g.recent.use(id); old != "" {
		ctx := context.WithValue(g.b.life, forgetKey{}, true)
		if r, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://localhost/mcp", nil); err == nil {
			r.Header.Set(server.HeaderKeySessionID, old)
			g.next.ServeHTTP(unheard{http.Header{}}, r)
		}
	}
}

// missed are the notifications that the client of a session did not hear.
func (g *guard) missed(id string) []string {
	_, made, err := g.sessions.read(id)
	if err != nil {
		return nil
	}
	var k known
	g.recent.note(id, func(now *known) { k = *now })
	if k.queued {
		return nil
	}
	return g.b.changes.missed(k.had, made)
}

// forgetKey marks a DELETE of ours, which ends no session: what mcp-go keeps of
// it goes.
type forgetKey struct{}

func forgets(ctx context.Context) bool {
	yes, _ := ctx.Value(forgetKey{}).(bool)
	return yes
}

// unheard takes an answer that nobody waits for.
type unheard struct{ header http.Header }

func (u unheard) Header() http.Header       { return u.header }
func (unheard) Write(b []byte) (int, error) { return len(b), nil }
func (unheard) WriteHeader(int)             {}

// open reports whether a session is good, or answers that it is not.
func (g *guard) open(w http.ResponseWriter, id string) bool {
	switch ended, err := g.sessions.Validate(id); {
	case err != nil:
		g.refuse(w, http.StatusNotFound, "the session id was not given by this server, or has expired: initialize anew")
	case ended:
		g.refuse(w, http.StatusNotFound, "the session was ended: initialize anew")
	default:
		return true
	}
	return false
}

// end carries out a DELETE.
func (g *guard) end(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(server.HeaderKeySessionID)
	if !ofToday(r, message{}) && (!g.sessioned(w, r, message{}) || !g.open(w, id)) {
		return
	}
	g.recent.drop(id)
	g.next.ServeHTTP(w, r)
}
