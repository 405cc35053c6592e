package openai

import (
	"encoding/json"
	"testing"

	"github.com/elfhost/elfhost/host/model"
)

// What goes over the wire for each effort, by vendor and generation.
func TestEffort(t *testing.T) {
	for _, c := range []struct {
		vendor, id string
		effort     model.Effort
		want       string
	}{
		{"openai", "gpt-5.6", "", `null`},
		{"openai", "gpt-5.6", "high", `{"effort":"high","summary":"auto"}`},
		{"openai", "gpt-5.6", "none", `{"effort":"none","summary":"auto"}`},
		{"openai", "gpt-5", "none", `{"effort":"minimal","summary":"auto"}`},
		{"openai", "gpt-5-codex", "none", `{"effort":"low","summary":"auto"}`},
		{"openai", "gpt-5-pro", "low", `{"effort":"high","summary":"auto"}`},
		{"openai", "gpt-5.4-pro", "low", `{"effort":"medium","summary":"auto"}`},
		{"openai", "o3", "none", `{"effort":"low","summary":"auto"}`},
		{"openai", "gpt-4.1", "high", `null`},
		{"openai", "gpt-5-chat-latest", "high", `null`}, // it does not think, whatever its name says
		{"xai", "grok-4.7", "medium", `{"effort":"medium"}`},
		{"xai", "grok-4.7", "none", `{"effort":"low"}`},
		{"xai", "grok-3-mini", "medium", `{"effort":"low"}`},
		{"xai", "grok-3-mini", "high", `{"effort":"high"}`},
		{"xai", "grok-4", "high", `null`},
	} {
		raw, err := json.Marshal(mustRequest(New(Options{Name: c.vendor}), c.id, c.effort).Reasoning)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != c.want {
			t.Errorf("%s/%s %q: %s, want %s", c.vendor, c.id, c.effort, raw, c.want)
		}
	}
}

func TestEffortOfChat(t *testing.T) {
	for _, c := range []struct {
		vendor      string
		effort      model.Effort
		word, extra string
	}{
		{"groq", "medium", "medium", "null"}, {"groq", "", "", "null"}, {"groq", "none", "", "null"},
		{"ollama", "none", "none", "null"}, {"openrouter", "none", "", `{"effort":"none"}`}, {"openrouter", "low", "", `{"effort":"low"}`},
	} {
		m := &chat{p: New(Options{Name: c.vendor, BaseURL: "http://x.example"}), id: "m"}
		r := m.request(model.Request{Effort: c.effort, Messages: user1("go")})
		extra, err := json.Marshal(r.extra["reasoning"])
		if err != nil {
			t.Fatal(err)
		}
		if r.ReasoningEffort != c.word || string(extra) != c.extra {
			t.Errorf("%s %q: %q %s", c.vendor, c.effort, r.ReasoningEffort, extra)
		}
	}
}
