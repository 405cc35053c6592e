package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/host"
)

// askingRegistry is a registry in which Read is safe and Write is asked about.
func askingRegistry(t *testing.T, more ...host.Tool) *host.Registry {
	t.Helper()
	_, reg := bridge(t, more...)
	return reg
}

// Any of several servers with the same secret can answer any request, and take
// the answer to what another one asked.
func TestServeReplicas(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		t.Run(fmt.Sprint("legacy ", legacy), func(t *testing.T) {
			memory := new(local)
			var handlers []http.Handler
			for range 2 {
				h, err := bridgeOf(t, ServeOptions{Registry: askingRegistry(t), Shared: memory}).Handler(HTTPOptions{Token: "letmein"})
				if err != nil {
					t.Fatal(err)
				}
				handlers = append(handlers, h)
			}
			var n int
			var mu sync.Mutex
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				n++
				h := handlers[n%2]
				mu.Unlock()
				h.ServeHTTP(w, r)
			}))
			t.Cleanup(s.Close)
			asked := 0
			c := httpClient(t, s.URL, legacy, client.WithElicitationHandler(person(func(mcp.ElicitationRequest) mcp.ElicitationResponse {
				asked++
				return mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": "1"}}
			})))
			for i := range 6 {
				if r := callTool(t, c, "Read", `{}`); r.IsError {
					t.Fatalf("call %d: %s", i, textOf(r))
				}
			}
			for i := range 2 { // the answer goes to the other server at least once
				if r := callTool(t, c, "Write", `{"q":"x"}`); r.IsError || asked != i+1 {
					t.Fatalf("asked %d: %s", asked, textOf(r))
				}
			}
		})
	}
}

// session is a client of before 2026-07-28, by hand.
type session struct {
	t   *testing.T
	url string
	id  string
}

func begin(t *testing.T, url string) *session {
	t.Helper()
	s := &session{t: t, url: url}
	r := s.send(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	_, _ = io.Copy(io.Discard, r.Body)
	r.Body.Close()
	if s.id = r.Header.Get("Mcp-Session-Id"); s.id == "" {
		t.Fatalf("no session: %d", r.StatusCode)
	}
	return s
}

func (s *session) send(method, body string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/mcp", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"Bearer letmein"}}
	if s.id != "" {
		r.Header.Set("Mcp-Session-Id", s.id)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

// status is that of a request whose body does not matter.
func (s *session) status(method, body string) int {
	s.t.Helper()
	r := s.send(method, body)
	r.Body.Close()
	return r.StatusCode
}

// write begins a call that is asked about, and gives the question's id and the
// channel that has the call's text in the end.
func (s *session) write(q string) (id string, done <-chan string) {
	s.t.Helper()
	r := s.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"Write","arguments":{"q":%q}}}`, q))
	ids, end := make(chan string, 1), make(chan string, 1)
	go func() {
		defer r.Body.Close()
		b := make([]byte, 64<<10)
		var all bytes.Buffer
		for {
			n, err := r.Body.Read(b)
			all.Write(b[:n])
			if line, _, ok := strings.Cut(all.String(), "\n\n"); ok && id == "" {
				var m struct{ ID json.RawMessage }
				_ = json.Unmarshal([]byte(strings.TrimPrefix(line, eventHead)), &m)
				id = string(m.ID)
				ids <- id
			}
			if err != nil {
				end <- all.String()
				return
			}
		}
	}()
	select {
	case id := <-ids:
		return id, end
	case <-time.After(time.Minute):
		s.t.Fatal("nothing was asked")
	}
	return "", nil
}

func yesTo(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"answer":"1"}}}`
}

// The answer to one question counts for no other: not for that of another
// server, of which mcp-go's number is the same, nor for another session's.
func TestAnswersCountForTheirQuestion(t *testing.T) {
	memory := new(local)
	one := web(t, bridgeOf(t, ServeOptions{Registry: askingRegistry(t), Shared: memory}))
	two := web(t, bridgeOf(t, ServeOptions{Registry: askingRegistry(t), Shared: memory}))
	s := begin(t, one.URL)
	at2 := &session{t: t, url: two.URL, id: s.id}
	id1, done1 := s.write("one")
	id2, done2 := at2.write("two")
	if id1 == id2 {
		t.Fatalf("two questions have the id %s", id1)
	}
	for name, c := range map[string]struct {
		by   *session
		id   string
		want int
	}{
		"mcp-go's number":   {s, "1", http.StatusAccepted}, // that of a ping
		"made up":           {s, `"AAAA"`, http.StatusBadRequest},
		"another session's": {begin(t, one.URL), id1, http.StatusBadRequest},
		"none":              {&session{t: t, url: one.URL, id: "forged"}, id1, http.StatusNotFound},
	} {
		if got := c.by.status(http.MethodPost, yesTo(c.id)); got != c.want {
			t.Errorf("%s: status %d", name, got)
		}
	}
	select {
	case text := <-done1:
		t.Fatalf("answered by what was no answer: %s", text)
	case text := <-done2:
		t.Fatalf("answered by what was no answer: %s", text)
	case <-time.After(3 * lookEvery):
	}
	if got := s.status(http.MethodPost, yesTo(id2)); got != http.StatusAccepted { // of the other server
		t.Fatalf("status %d", got)
	}
	if text := <-done2; !strings.Contains(text, "written") {
		t.Errorf("%s", text)
	}
	for i, want := range []int{http.StatusAccepted, http.StatusBadRequest} {
		if got := s.status(http.MethodPost, yesTo(id1)); got != want {
			t.Errorf("answer %d: status %d", i, got)
		}
	}
	if text := <-done1; !strings.Contains(text, "written") {
		t.Errorf("%s", text)
	}
}

// A session that its client ended is ended for every server; nobody goes on
// with one that was never given.
func TestSessionsEnd(t *testing.T) {
	memory := new(local)
	one := web(t, bridgeOf(t, ServeOptions{Registry: askingRegistry(t), Shared: memory}))
	two := web(t, bridgeOf(t, ServeOptions{Registry: askingRegistry(t), Shared: memory}))
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	s := begin(t, one.URL)
	at2 := &session{t: t, url: two.URL, id: s.id}
	if got := at2.status(http.MethodPost, list); got != 200 {
		t.Fatalf("status %d", got)
	}
	if got := s.status(http.MethodDelete, ""); got != 200 {
		t.Fatalf("status %d", got)
	}
	forged := &session{t: t, url: one.URL, id: "forged"}
	for name, got := range map[string]int{
		"ended": s.status(http.MethodPost, list), "ended, elsewhere": at2.status(http.MethodPost, list), "ended, its stream": at2.status(http.MethodGet, ""),
		"ended, twice": s.status(http.MethodDelete, ""), "forged": forged.status(http.MethodPost, list), "forged stream": forged.status(http.MethodGet, ""),
		"forged end": forged.status(http.MethodDelete, ""),
	} {
		if got != http.StatusNotFound {
			t.Errorf("%s: status %d", name, got)
		}
	}
}

// What is kept of sessions is bounded, and one of which nothing is kept any
// more goes on.
func TestSessionsAreBounded(t *testing.T) {
	var kept atomic.Int64
	hooks := &server.Hooks{}
	hooks.AddOnRegisterSession(func(context.Context, server.ClientSession) { kept.Add(1) })
	hooks.AddOnUnregisterSession(func(context.Context, server.ClientSession) { kept.Add(-1) })
	b := newBridge(ServeOptions{Registry: askingRegistry(t)}, server.WithHooks(hooks))
	t.Cleanup(b.Close)
	s := web(t, b)
	first := begin(t, s.URL)
	for range maxSessions + 10 {
		begin(t, s.URL)
	}
	if n := kept.Load(); n == 0 || n > maxSessions {
		t.Errorf("%d sessions are kept", n)
	}
	if got := first.status(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); got != 200 {
		t.Errorf("status %d", got)
	}
}

// A page that may speak to the server is let by its browser, which asks without
// the token; others are told nothing.
func TestPages(t *testing.T) {
	b, _ := bridge(t)
	h, err := b.Handler(HTTPOptions{Token: "letmein", Origins: []string{"https://tools.example"}})
	if err != nil {
		t.Fatal(err)
	}
	for origin, want := range map[string]int{"https://tools.example": 204, "http://localhost:6274": 204, "https://evil.test": 403, "https://tools.example.evil.test": 403} {
		r := httptest.NewRequest(http.MethodOptions, "http://127.0.0.1/mcp", nil)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,mcp-session-id")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if w.Code != want || want == 204 && (allowed != origin || w.Header().Get("Access-Control-Allow-Headers") != "authorization,content-type,mcp-session-id") || want != 204 && allowed != "" {
			t.Errorf("%s: %d %v", origin, w.Code, w.Header())
		}
		r = httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(ping))
		r.Header.Set("Origin", origin)
		w = httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if want == 204 && (w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != origin) {
			t.Errorf("%s, without the token: %d %v", origin, w.Code, w.Header())
		}
	}
}
