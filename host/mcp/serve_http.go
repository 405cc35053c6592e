package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// HTTPOptions guard the bridge over HTTP.
type HTTPOptions struct {
	Token string // what "Authorization: Bearer" has to bring; never empty
	// Hosts are the names, without a port, under which the server is spoken to,
	// beside the loopback's.
	Hosts []string
	// Origins are web pages that may speak to it, beside those of this machine.
	Origins []string
}

// Limits of the HTTP side.
const (
	maxRequests = 256
	maxStreams  = 1000
	idleSession = time.Hour
)

// Handler serves streamable HTTP at /mcp, /healthz to everybody, and /metrics
// with the token. It is an error to serve without a token.
func (b *Bridge) Handler(o HTTPOptions) (http.Handler, error) {
	if o.Token == "" {
		return nil, errors.New("an MCP server over HTTP needs a token")
	}
	stream := server.NewStreamableHTTPServer(b.srv,
		server.WithSessionIdManagerResolver(b.sessions), server.WithStreamableHTTPLogger(quiet), server.WithSessionIdleTTL(idleSession),
		server.WithDisableLocalhostProtection(true), // the guard does it, for every address
		server.WithHeartbeatInterval(30*time.Second),
	)
	g := &guard{
		o: o, b: b, sessions: b.sessions, next: stream, want: sha256.Sum256([]byte(o.Token)),
		questions: &questions{seal: b.seal, shared: b.opt.Shared, self: rand.Text(), next: stream, b: b},
		slots:     make(chan struct{}, maxRequests), streams: make(chan struct{}, maxStreams),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.Handle("GET /metrics", g.authorized(http.HandlerFunc(b.metrics)))
	mux.Handle("/mcp", g.authorized(g))
	return g.addressed(mux), nil
}

// guard stands before mcp-go's handler, which reads bodies without a limit and
// looks at no origin.
type guard struct {
	o         HTTPOptions
	b         *Bridge
	sessions  *sealedSessions
	recent    recent
	questions *questions
	next      http.Handler
	want      [sha256.Size]byte
	slots     chan struct{}
	streams   chan struct{}
}

// authorized wants the bearer token, in the header and nowhere else: addresses
// end up in logs.
func (g *guard) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !strings.EqualFold(kind, "Bearer") || len(r.Header.Values("Authorization")) != 1 || subtle.ConstantTimeCompare(got[:], g.want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="elfhost"`)
			g.refuse(w, http.StatusUnauthorized, "the bearer token is missing or wrong")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Accel-Buffering", "no") // a proxy is to pass each event on at once
	switch r.Method {
	case http.MethodPost:
		g.post(w, r)
	case http.MethodGet:
		g.get(w, r)
	case http.MethodDelete:
		g.end(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		g.refuse(w, http.StatusMethodNotAllowed, "this method is not served")
	}
}

// get opens a session's stream.
func (g *guard) get(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(server.HeaderKeySessionID)
	switch {
	case ofToday(r, message{}): // has no such streams
		g.next.ServeHTTP(w, r)
	case g.accepted(w, r, "text/event-stream") && g.sessioned(w, r, message{}) && g.open(w, id) && g.take(w, g.streams):
		defer func() { <-g.streams }()
		g.used(id)
		g.next.ServeHTTP(&opening{asking: &asking{ResponseWriter: w, q: g.questions, session: id}, missed: func() []string { return g.missed(id) }}, r)
	}
}

func (g *guard) take(w http.ResponseWriter, slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		w.Header().Set("Retry-After", "1")
		g.refuse(w, http.StatusServiceUnavailable, "too many requests at once")
		return false
	}
}

func (g *guard) post(w http.ResponseWriter, r *http.Request) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		g.refuse(w, http.StatusUnsupportedMediaType, "the body is application/json")
		return
	}
	if !g.accepted(w, r, "application/json", "text/event-stream") || !g.take(w, g.slots) {
		return
	}
	slots := g.slots
	defer func() { <-slots }()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		g.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message has at most %d MiB", maxMessage>>20))
		return
	case err != nil:
		g.refuse(w, http.StatusBadRequest, "the body could not be read")
		return
	}
	m, err := readMessage(body)
	if err != nil {
		g.refuse(w, http.StatusBadRequest, "the message was refused: "+err.Error())
		return
	}
	if !g.sessioned(w, r, m) {
		return
	}
	g.b.stats.messages.Add(1)
	ctx := r.Context()
	id := r.Header.Get(server.HeaderKeySessionID)
	switch {
	case m.method == "" && m.id != nil:
		g.questions.answered(w, r, g, m, body)
		return
	case m.method == string(mcp.MethodInitialize):
		if offersElicitation(m.params) {
			ctx = context.WithValue(ctx, elicitKey{}, true)
		}
	case m.method == string(mcp.MethodSubscriptionsListen):
		if !g.take(w, g.streams) {
			return
		}
		<-g.slots // it stays for long, and is counted among the streams
		slots = g.streams
	default:
		if flags, _, err := g.sessions.read(id); err == nil {
			g.used(id)
			if list, ok := listed[m.method]; ok {
				n := g.b.changes.now(list)
				g.recent.note(id, func(k *known) { k.had[list] = n })
			}
			if flags&canElicit != 0 {
				ctx = context.WithValue(ctx, elicitKey{}, true)
			}
		}
	}
	r = r.WithContext(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	out := &asking{ResponseWriter: w, q: g.questions, session: id}
	if m.method == string(mcp.MethodSubscriptionsListen) {
		g.listen(out, r, m.id)
	} else {
		g.next.ServeHTTP(out, r)
	}
	out.end()
	if m.method == string(mcp.MethodInitialize) {
		id := w.Header().Get(server.HeaderKeySessionID)
		g.used(id)
		g.recent.note(id, func(k *known) { k.queued = true })
	}
}

// listen keeps a subscription open.
func (g *guard) listen(out *asking, r *http.Request, id json.RawMessage) {
	s := &subscription{asking: out, id: id, changes: &g.b.changes}
	stop := s.live()
	g.next.ServeHTTP(s, r)
	stop()
	s.end(r.Context())
}

// offersElicitation reads the params of initialize.
func offersElicitation(params json.RawMessage) bool {
	var p struct {
		Capabilities struct {
			Elicitation json.RawMessage `json:"elicitation"`
		} `json:"capabilities"`
	}
	err := json.Unmarshal(params, &p)
	e := string(p.Capabilities.Elicitation)
	return err == nil && e != "" && e != "null"
}

// elicitKey says in a request's context that the client can ask its person.
type elicitKey struct{}

func elicits(ctx context.Context) bool {
	yes, _ := ctx.Value(elicitKey{}).(bool)
	return yes
}

func (g *guard) refuse(w http.ResponseWriter, status int, why string) {
	g.b.stats.refuse(status)
	http.Error(w, why, status)
}

// Listen serves Handler on l, which it closes, until ctx ends; then it lets
// requests that run end within a moment, and closes what is left.
func (b *Bridge) Listen(ctx context.Context, l net.Listener, o HTTPOptions) error {
	h, err := b.Handler(o)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	base, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base }, ErrorLog: log.New(io.Discard, "", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	// Streams do not end by themselves.
	timer := time.AfterFunc(time.Second, func() { stop(errStopping) })
	defer timer.Stop()
	err = srv.Shutdown(grace)
	if err != nil {
		err = errors.Join(err, srv.Close())
	}
	<-failed
	return err
}
