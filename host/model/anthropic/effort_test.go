package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// What goes over the wire for each effort, by generation.
func TestEffort(t *testing.T) {
	for _, c := range []struct {
		id     string
		effort model.Effort
		want   string // thinking, output_config, max_tokens
	}{
		{"claude-sonnet-5-5", "", `null null 16000`},
		{"claude-sonnet-5-5", "low", `{"display":"summarized","type":"adaptive"} {"effort":"low"} 16000`},
		{"claude-opus-4-6", "high", `{"display":"summarized","type":"adaptive"} {"effort":"high"} 16000`},
		{"claude-sonnet-5-5", "none", `{"type":"disabled"} null 16000`},
		{"claude-sonnet-4-5-20250929", "", `null null 16000`},
		{"claude-sonnet-4-5-20250929", "low", `{"budget_tokens":2048,"type":"enabled"} null 16000`},
		{"claude-haiku-4-5", "medium", `{"budget_tokens":8192,"type":"enabled"} null 16000`},
		{"claude-3-7-sonnet-latest", "high", `{"budget_tokens":24576,"type":"enabled"} null 28672`},
		{"claude-3-5-haiku-latest", "high", `null null 8192`}, // it has no thinking, and refuses the field
		{"claude-3-haiku-20240307", "none", `null null 4096`},
	} {
		p, err := (&Model{id: c.id}).params(model.Request{Effort: c.effort, Messages: []model.Message{model.User(abi.TextBlock("go"))}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		text := func(key string) string { b, _ := json.Marshal(body[key]); return string(b) }
		if got := text("thinking") + " " + text("output_config") + " " + text("max_tokens"); got != c.want {
			t.Errorf("%s %q: %s\nwant %s", c.id, c.effort, got, c.want)
		}
	}
}
