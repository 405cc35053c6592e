package openai

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What servers say of a model's context, each in its way.
func TestWindow(t *testing.T) {
	answers := map[string]string{
		"/ollama/api/ps":          `{"models":[{"name":"qwen3:latest","model":"qwen3:latest","context_length":8192},{"model":"old:1"}]}`,
		"/lmstudio/api/v0/models": `{"data":[{"id":"qwen3","max_context_length":131072,"loaded_context_length":4096},{"id":"idle","max_context_length":9}]}`,
		"/llamacpp/props":         `{"default_generation_settings":{"n_ctx":16384}}`,
		"/vllm/v1/models":         `{"data":[{"id":"qwen3","max_model_len":40960}]}`,
		"/openrouter/v1/models":   `{"data":[{"id":"a/qwen3","context_length":262144},{"id":"qwen3","context_length":1000000}]}`,
		"/silent/v1/models":       `{"data":[{"id":"qwen3"}]}`,
		"/broken/v1/models":       `{"data":`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, body)
	}))
	defer server.Close()
	for asked, want := range map[string]int64{
		"ollama qwen3": 8192, "ollama qwen3:latest": 8192, "ollama old:1": 0, "ollama none": 0,
		"lmstudio qwen3": 4096, "lmstudio idle": 0, "lmstudio none": 0,
		"llamacpp any": 16384, "vllm qwen3": 40960, "vllm none": 0, "openrouter a/qwen3": 262144, "openrouter qwen3": 1000000, "silent qwen3": 0,
	} {
		name, id, _ := strings.Cut(asked, " ")
		p := New(Options{Name: name, BaseURL: server.URL + "/" + name + "/v1"})
		if got, err := p.Window(t.Context(), id); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", asked, got, err, want)
		}
	}
	for _, name := range []string{"broken", "nowhere"} {
		if n, err := New(Options{Name: name, BaseURL: server.URL + "/" + name + "/v1"}).Window(t.Context(), "x"); err == nil || n != 0 {
			t.Errorf("%s: %d and no error", name, n)
		}
	}
}
