package known

import (
	"testing"
	"time"
)

func TestFind(t *testing.T) {
	p, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		t.Error(err)
	}
	for id, want := range map[string]float64{
		"claude-sonnet-4-5-20250929": 3, "claude-opus-4-5-20251101": 5, "claude-opus-4-1-20250805": 15, "anthropic/claude-sonnet-4": 3,
		"gpt-5-2025-08-07": 1.25, "gemini-2.5-pro-preview-05-06": 1.25, "grok-4-0709": 3, "grok-4-1-fast-non-reasoning": 0.2,
		"anthropic/claude-sonnet-4.5": 3, "claude-opus-4-6": 5, "claude-sonnet-4-5@20250929": 3, "gpt-5-mini": 0.25, "gpt-4o-mini-2024-07-18": 0.15, "o3": 2, "gemini-2.5-flash": 0.3,
	} {
		f, ok := p.Find(id)
		if !ok || f.Input != want || f.Window == 0 {
			t.Errorf("%s: %+v %v, want %v", id, f, ok, want)
		}
	}
	for _, id := range []string{"", "gpt-55", "o30", "qwen3:8b", "gpt-4", "claude-opus-4-99", "gpt-5-codex-next", "grok-4-1", "openai/gpt-5:free"} {
		if f, ok := p.Find(id); ok {
			t.Errorf("%q is found as %+v", id, f)
		}
	}
	for name, f := range p.Models {
		if f.Input <= 0 || f.Output < f.Input || f.CacheRead > f.Input {
			t.Errorf("%s: %+v", name, f)
		}
		if (f.Long != nil) != (f.Above > 0) || f.Long != nil && (f.Long.Input < f.Input || f.Long.Output < f.Output || f.Above >= f.Window && f.Window > 0) {
			t.Errorf("%s: the price of long prompts %+v", name, f)
		}
	}
}
