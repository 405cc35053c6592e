package app_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/internal/app"
)

// The context that a provider publishes is asked for once, kept with its date,
// and used where neither the configuration nor the table knows the model.
func TestAPublishedWindow(t *testing.T) {
	var lists atomic.Int64
	body := `{"data":[{"id":"new-1","max_model_len":24000},{"id":"silent"},{"id":"gpt-5.6","max_model_len":1234}]}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			lists.Add(1)
			fmt.Fprint(w, body)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()
	m := newMachine(t)
	m.write("home/config.toml", fmt.Sprintf("[providers.mine]\nkind = 'openai-chat'\nbase_url = '%[1]s/v1'\n[providers.told]\nkind = 'openai-chat'\nbase_url = '%[1]s/v1'\ncontext = 5000\n", server.URL))
	chosen := func(a *app.App, name string) (app.Chosen, *agent.Loop) {
		t.Helper()
		c, err := a.Model(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Loop(t.Context(), c, agent.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return c, l
	}
	ask := func(a *app.App, name string) int64 {
		_, l := chosen(a, name)
		if l.Compact.Ask == nil {
			return -1
		}
		return l.Compact.Ask(t.Context())
	}
	file := filepath.Join(m.paths.Cache, "windows.json")
	a := m.open()
	if _, l := chosen(a, "told/new-1"); l.Compact.Ask != nil || l.Info.Window != 5000 {
		t.Error("what the configuration says is asked for")
	}
	c, _ := chosen(a, "mine/new-1")
	if lists.Load() != 0 || a.Window(c) != 0 {
		t.Fatalf("%d requests before it matters", lists.Load())
	}
	for range 3 {
		if n := ask(a, "mine/new-1"); n != 24000 {
			t.Errorf("a window of %d", n)
		}
	}
	if a.Window(c) != 24000 || lists.Load() != 1 {
		t.Errorf("%d known, by %d requests", a.Window(c), lists.Load())
	}
	if n := ask(a, "mine/silent"); n != 0 || ask(a, "mine/silent") != 0 || lists.Load() != 2 {
		t.Errorf("a model of which nothing is published: %d, after %d requests", n, lists.Load())
	}
	// The next session asks nobody, as long as it is fresh and the place the same.
	next := m.open()
	if n := ask(next, "mine/new-1"); n != 24000 || ask(next, "mine/silent") != 0 || lists.Load() != 2 {
		t.Errorf("%d, after %d requests", n, lists.Load())
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), time.Now().UTC().Format("2006-01-")) {
		t.Fatalf("%s %v", b, err)
	}
	for name, kept := range map[string]string{
		"old":    strings.ReplaceAll(string(b), `"asked":"`, `"asked":"1`),
		"broken": string(b)[:20],
		"wrong":  strings.ReplaceAll(string(b), "24000", "-5"),
	} {
		lists.Store(0)
		m.write("home/cache/windows.json", kept)
		if n := ask(m.open(), "mine/new-1"); n != 24000 || lists.Load() != 1 {
			t.Errorf("with what is kept %s: %d, after %d requests", name, n, lists.Load())
		}
	}
	// `elfhost models` has asked already.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := m.open().Models(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	lists.Store(0)
	if n := ask(m.open(), "mine/new-1"); n != 24000 || lists.Load() != 0 {
		t.Errorf("after a list: %d, %d requests", n, lists.Load())
	}
	// Nobody is asked offline, and of a scripted model.
	m.write("home/config.toml", "offline = true\n"+fmt.Sprintf("[providers.mine]\nkind = 'openai-chat'\nbase_url = '%s/v1'\n", server.URL))
	m.write("ws/s.toml", "[[turn]]\ntext = 'x'\n")
	if off := m.open(); ask(off, "mine/new-1") != -1 || ask(off, "scripted/s.toml") != -1 {
		t.Error("somebody is asked all the same")
	}
}

// A server that does not answer costs one try a session.
func TestAWindowThatIsNotToBeHad(t *testing.T) {
	var lists atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lists.Add(1)
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer server.Close()
	m := newMachine(t)
	m.write("home/config.toml", fmt.Sprintf("[providers.mine]\nkind = 'openai-chat'\nbase_url = '%s/v1'\n", server.URL))
	for range 2 {
		lists.Store(0)
		a := m.open()
		c, err := a.Model(t.Context(), "mine/x")
		if err != nil {
			t.Fatal(err)
		}
		l, err := a.Loop(t.Context(), c, agent.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second one is not asked again
			if got := l.Compact.Ask(t.Context()); got != 0 || lists.Load() != 1 {
				t.Errorf("%d tokens, %d requests", got, lists.Load())
			}
		}
	}
}
