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

	"github.com/elfhost/elfhost/host/policy"
)

// oldServer speaks HTTP+SSE by hand. Its tool sends what its argument lists
// to the client and gives back what it is answered.
type oldServer struct {
	t      *testing.T
	mu     sync.Mutex
	out    chan string // events of the stream
	hello  string      // the client's initialize
	asked  []string    // answers to its own requests
	want   int
	caller json.RawMessage
	posts  atomic.Int64
	gone   atomic.Bool // it does not know the session any more
}

func (o *oldServer) start() string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", o.stream)
	mux.HandleFunc("POST /msg", o.message)
	s := httptest.NewServer(mux)
	o.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/sse"
}

func (o *oldServer) stream(w http.ResponseWriter, r *http.Request) {
	out := make(chan string, 1000)
	o.mu.Lock()
	o.out = out
	o.mu.Unlock()
	o.gone.Store(false)
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "event: endpoint\ndata: /msg\n\n")
	for {
		w.(http.Flusher).Flush()
		select {
		case e, ok := <-out:
			if !ok {
				return
			}
			_, _ = io.WriteString(w, e)
		case <-r.Context().Done():
			return
		}
	}
}

func (o *oldServer) send(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.out <- "event: message\ndata: " + fmt.Sprintf(format, args...) + "\n\n"
}

func (o *oldServer) message(w http.ResponseWriter, r *http.Request) {
	var q struct {
		fakeRequest
		Params struct {
			Args struct {
				Ask   []json.RawMessage `json:"ask"`
				Break bool              `json:"break"`
			} `json:"arguments"`
		} `json:"params"`
	}
	if o.gone.Load() {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &q); err != nil {
		o.t.Error(err)
	}
	w.WriteHeader(http.StatusAccepted)
	switch q.Method {
	case "":
		o.mu.Lock()
		o.asked = append(o.asked, fmt.Sprintf("%s %s%s", q.ID, q.Result, q.Error))
		all, caller := o.asked, o.caller
		o.mu.Unlock()
		if len(all) == o.want {
			b, _ := json.Marshal(strings.Join(all, "\n"))
			o.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`, caller, b)
		}
	case "initialize":
		o.mu.Lock()
		o.hello = string(body)
		o.mu.Unlock()
		o.send(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}}`, q.ID)
	case "tools/list":
		o.send(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[%s]}}`, q.ID, fakeTool("echo"))
	case "tools/call":
		o.posts.Add(1)
		if q.Params.Args.Break {
			o.mu.Lock()
			close(o.out)
			o.mu.Unlock()
			return
		}
		if o.want = len(q.Params.Args.Ask); o.want == 0 {
			o.send(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"ok"}]}}`, q.ID)
			return
		}
		o.mu.Lock()
		o.caller, o.asked = q.ID, nil
		o.mu.Unlock()
		for _, m := range q.Params.Args.Ask {
			o.send("%s", bytes.ReplaceAll(m, []byte(`"CALLER"`), q.ID))
		}
	default:
		if len(q.ID) > 0 {
			o.send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, q.ID)
		}
	}
}

// reached is a server at a URL that may be reached.
func reached(t *testing.T, s Server) Server {
	t.Helper()
	g, ok := s.Grant()
	if !ok {
		t.Fatal(s.URL)
	}
	grants, err := policy.New("mcp", g)
	if err != nil {
		t.Fatal(err)
	}
	s.Rights, s.Startup = policy.Rights{Grants: grants}, time.Minute
	return s
}

// A server over HTTP+SSE may ask what others may, also under the id of the
// request that it is working at.
func TestSSEAsks(t *testing.T) {
	o := &oldServer{t: t}
	r := newRig(t, Options{
		Elicit: func(context.Context, Elicitation) (Reply, error) {
			return Reply{Accept: true, Content: map[string]any{"name": "Ada"}}, nil
		},
		Sample: func(context.Context, Sampling) (Sampled, error) { return Sampled{Text: "sampled", Model: "m"}, nil },
		Roots:  func(context.Context, Server, bool) ([]string, error) { return []string{"/the/root"}, nil },
	})
	r.add(t, reached(t, Server{Name: "old", URL: o.start(), SSE: true}))
	r.connect(t, "old")
	got := r.do(t, "mcp__old__echo", `{"ask":[
		{"jsonrpc":"2.0","id":"CALLER","method":"ping"},
		{"jsonrpc":"2.0","id":"r","method":"roots/list"},
		{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}},
		{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":9}},
		{"jsonrpc":"2.0","id":"x","method":"no/such"}]}`)
	if !strings.Contains(o.hello, `"roots":{"listChanged":true}`) {
		t.Errorf("roots that a person gives later are not announced: %s", o.hello)
	}
	for _, part := range []string{"/the/root", "Ada", "sampled", `{}`, `"x" {"code":-32601`} {
		if !strings.Contains(got, part) {
			t.Errorf("%s is missing in %s", part, got)
		}
	}
}

// A call ends with the stream that would bring its answer, and is not repeated.
func TestSSELost(t *testing.T) {
	o := &oldServer{t: t}
	r := newRig(t, Options{})
	r.add(t, reached(t, Server{Name: "old", URL: o.start(), SSE: true}))
	r.connect(t, "old")
	res := r.call(context.Background(), "mcp__old__echo", `{"break":true}`)
	if !res.IsError || !strings.Contains(res.Text(), "was not repeated") || o.posts.Load() != 1 {
		t.Fatalf("%s, sent %d times", res.Text(), o.posts.Load())
	}
	// What a server does not know the session of, it has not taken.
	if got := r.do(t, "mcp__old__echo", `{}`); got != "ok" {
		t.Fatal(got)
	}
	o.gone.Store(true)
	if got := r.do(t, "mcp__old__echo", `{}`); got != "ok" || o.posts.Load() != 3 {
		t.Fatalf("%q, sent %d times", got, o.posts.Load())
	}
}

// sessions is a server over streamable HTTP that ends its sessions when told to.
type sessions struct {
	began, calls atomic.Int64
	end          atomic.Bool // at the next request
	always       atomic.Bool // it ends each at once
	late         atomic.Bool // it takes the call, and forgets the session before the answer
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q fakeRequest
	if r.Method != http.MethodPost {
		if r.Header.Get("Last-Event-ID") != "" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	_ = json.NewDecoder(r.Body).Decode(&q)
	id := fmt.Sprint(s.began.Load())
	answer := func(format string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, q.ID, fmt.Sprintf(format, args...))
	}
	if q.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", fmt.Sprint(s.began.Add(1)))
		answer(`"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"web","version":"1"}}`)
		return
	}
	if q.Method == "server/discover" {
		answer(`"error":{"code":-32601,"message":"no"}`)
		return
	}
	if q.Method == "tools/call" && (s.end.CompareAndSwap(true, false) || s.always.Load()) || r.Header.Get("Mcp-Session-Id") != id {
		http.NotFound(w, r)
		return
	}
	switch q.Method {
	case "tools/list":
		answer(`"result":{"tools":[%s]}`, fakeTool("echo"))
	case "tools/call":
		s.calls.Add(1)
		if s.late.Load() {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: 1\nretry: 1\ndata: \n\n")
			return
		}
		answer(`"result":{"content":[{"type":"text","text":"in session %s"}]}`, id)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

// A 404 says that the server has forgotten the session and taken nothing: the
// call is made in a new one, once. What was taken is not made again.
func TestSessionEnded(t *testing.T) {
	s := &sessions{}
	srv := httptest.NewServer(s)
	defer srv.Close()
	r := newRig(t, Options{})
	r.add(t, reached(t, Server{Name: "web", URL: srv.URL + "/mcp"}))
	r.connect(t, "web")
	if got := r.do(t, "mcp__web__echo", `{}`); got != "in session 1" {
		t.Fatal(got)
	}
	s.end.Store(true)
	if got := r.do(t, "mcp__web__echo", `{}`); got != "in session 2" || s.calls.Load() != 2 {
		t.Fatalf("%q after %d calls", got, s.calls.Load())
	}
	s.late.Store(true)
	res := r.call(context.Background(), "mcp__web__echo", `{}`)
	if !res.IsError || !strings.Contains(res.Text(), "was not repeated") || s.calls.Load() != 3 {
		t.Fatalf("%s after %d calls", res.Text(), s.calls.Load())
	}
	s.late.Store(false)
	r.do(t, "mcp__web__echo", `{}`)
	s.always.Store(true)
	began := s.began.Load()
	res = r.call(context.Background(), "mcp__web__echo", `{}`)
	if !res.IsError || !strings.Contains(res.Text(), "was not called: it has ended the session") || s.began.Load() > began+2 {
		t.Fatalf("%s after %d sessions", res.Text(), s.began.Load()-began)
	}
}

func TestEvents(t *testing.T) {
	var busy atomic.Int64
	busy.Add(1)
	read := func(in string, take func([]byte) bool) (string, error) {
		b, err := io.ReadAll(newEvents(io.NopCloser(strings.NewReader(in)), &busy, take))
		return string(b), err
	}
	for in, want := range map[string]string{
		"data: {\"a\":\ndata:1}\n\n":                     "data: {\"a\": 1}\n\n",
		": ping\n\nid: 3\r\nretry: 9\r\ndata: x\r\n\r\n": "id: 3\nretry: 9\ndata: x\n\n",
		"event: endpoint\ndata: /m\n\n":                  "event: endpoint\ndata: /m\n\n",
		"data\n\nid\n\n":                                 "data: \n\nid: \n\n",
		"data: unfinished\ndata: no end":                 "data: unfinished\n",
		"data: " + strings.Repeat("y", 9000) + "\n\n":    "data: " + strings.Repeat("y", 9000) + "\n\n",
	} {
		if got, err := read(in, nil); got != want || err != nil {
			t.Errorf("%.40q became %.80q, %v", in, got, err)
		}
	}
	got, _ := read("data: mine\n\nevent: endpoint\ndata: mine\n\ndata: yours\n\n", func(b []byte) bool { return string(b) == "mine" })
	if got != "event: endpoint\ndata: mine\n\ndata: yours\n\n" {
		t.Errorf("%q", got)
	}
	// As many lines as the size allows cost no more than reading them.
	began := time.Now()
	if _, err := read(strings.Repeat("data:\n", 8<<20)+"\n", nil); err != nil || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	busy.Add(-1)
	if got, err := read("data: "+strings.Repeat("z", maxLine)+"\n\n", nil); err == nil {
		t.Errorf("%d bytes of an event that nobody waits for", len(got))
	}
}

// An answer in very many lines is read in time.
func TestMC09EventLines(t *testing.T) {
	rest := &sessions{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q fakeRequest
		_ = json.NewDecoder(r.Body).Decode(&q)
		if q.Method == "tools/call" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\n%sdata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"end\"}]}}\n\n", q.ID, strings.Repeat("data:\n", 2<<20))
			return
		}
		b, _ := json.Marshal(map[string]any{"id": q.ID, "method": q.Method})
		r.Body = io.NopCloser(bytes.NewReader(b))
		rest.ServeHTTP(w, r)
	}))
	defer srv.Close()
	r := newRig(t, Options{})
	s := reached(t, Server{Name: "web", URL: srv.URL + "/mcp"})
	s.Timeout = 20 * time.Second
	r.add(t, s)
	r.connect(t, "web")
	if got := r.do(t, "mcp__web__echo", `{}`); got != "end" {
		t.Fatal(got)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: message\ndata: {}\nid: 1\n\n: c\n\ndata"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var busy atomic.Int64
		once, err := io.ReadAll(newEvents(io.NopCloser(bytes.NewReader(b)), &busy, nil))
		if err != nil {
			t.Fatal(err)
		}
		twice, err := io.ReadAll(newEvents(io.NopCloser(bytes.NewReader(once)), &busy, nil))
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%q became %q, %v", once, twice, err)
		}
	})
}
