// Package replay serves recorded exchanges with model vendors to tests, in
// chunks whose borders say nothing about the content.
package replay

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/internal/shared"
)

// Exchange is one recorded request and its answer.
type Exchange struct {
	Request struct {
		Body string `yaml:"body"`
		URL  string `yaml:"url"`
	} `yaml:"request"`
	Response struct {
		Body    string              `yaml:"body"`
		Headers map[string][]string `yaml:"headers"`
		Code    int                 `yaml:"code"`
	} `yaml:"response"`
}

// Load reads ../shared/data/llm/name.
func Load(t testing.TB, name string) []Exchange {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared.Dir(t, "data/llm"), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Interactions []Exchange `yaml:"interactions"`
	}
	if err := yaml.Unmarshal(data, &f); err != nil {
		t.Fatalf("reading %s: %v", name, err)
	}
	if len(f.Interactions) == 0 {
		t.Fatalf("%s has no exchange", name)
	}
	return f.Interactions
}

// Server answers with the exchanges in order, and keeps what it was asked.
type Server struct {
	URL string

	mu       sync.Mutex
	answers  []Exchange
	requests []map[string]any
	headers  []http.Header
	paths    []string
}

// Serve starts a server that is closed with the test.
func Serve(t testing.TB, answers []Exchange) *Server {
	t.Helper()
	s := &Server{answers: answers}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	s.URL = srv.URL
	return s
}

// Stream makes an exchange of a body, as an event stream.
func Stream(body string) Exchange {
	var e Exchange
	e.Response.Body, e.Response.Code = body, 200
	e.Response.Headers = map[string][]string{"Content-Type": {"text/event-stream"}}
	return e
}

// Refusal makes an exchange of a status and a JSON body.
func Refusal(code int, body string) Exchange {
	e := Stream(body)
	e.Response.Code = code
	e.Response.Headers = map[string][]string{"Content-Type": {"application/json"}}
	return e
}

// Requests is what came so far, decoded.
func (s *Server) Requests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]map[string]any(nil), s.requests...)
}

// Headers and Paths are those of the requests.
func (s *Server) Headers() []http.Header { s.mu.Lock(); defer s.mu.Unlock(); return s.headers }

// Paths of the requests, with their query.
func (s *Server) Paths() []string { s.mu.Lock(); defer s.mu.Unlock(); return s.paths }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	n := len(s.requests)
	var decoded map[string]any
	_ = json.Unmarshal(body, &decoded)
	s.requests = append(s.requests, decoded)
	s.headers = append(s.headers, r.Header)
	s.paths = append(s.paths, r.URL.RequestURI())
	if n >= len(s.answers) {
		s.mu.Unlock()
		http.Error(w, fmt.Sprintf("no answer for request %d", n), http.StatusTeapot)
		return
	}
	answer := s.answers[n].Response
	s.mu.Unlock()
	for k, vs := range answer.Headers {
		for _, v := range vs {
			w.Header().Add(k, v)
		}
	}
	w.WriteHeader(answer.Code)
	for rest := answer.Body; rest != ""; {
		n := min(len(rest), 1+rand.IntN(1+rand.IntN(400)))
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		rest = rest[n:]
	}
}

// Answer is what one Stream gave.
type Answer struct {
	model.Turn
	Text, Thinking string // the deltas, joined
	Searches       []string
	Kinds          map[model.Kind]int
	Args           map[string]string // of each call, its deltas joined
	Rate           *model.RateLimit
}

// Ask ranges over a stream.
func Ask(t testing.TB, m model.Model, r model.Request) (*Answer, error) {
	t.Helper()
	a := &Answer{Kinds: map[model.Kind]int{}, Args: map[string]string{}}
	for e, err := range m.Stream(t.Context(), r) {
		if err != nil {
			return a, err
		}
		if a.Stop != "" {
			t.Errorf("event %q after the stop", e.Kind)
		}
		a.Add(e)
		a.Kinds[e.Kind]++
		switch e.Kind {
		case model.KindText:
			a.Text += e.Text
		case model.KindThinking:
			a.Thinking += e.Text
		case model.KindSearch:
			a.Searches = append(a.Searches, e.Text)
		case model.KindCallArgs:
			a.Args[e.Call.ID] += e.Text
		case model.KindRate:
			a.Rate = e.Rate
		}
	}
	if a.Stop == "" {
		t.Error("the stream ended without a stop and without an error")
	}
	if got := a.Message.Text(); got != a.Text {
		t.Errorf("the blocks say %q, the pieces %q", got, a.Text)
	}
	for _, c := range a.Message.Calls() {
		if got, ok := a.Args[c.ID]; ok && got != c.Args {
			t.Errorf("call %s: the block has %q, the pieces %q", c.ID, c.Args, got)
		}
	}
	return a, nil
}
