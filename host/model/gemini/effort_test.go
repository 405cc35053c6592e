package gemini

import (
	"encoding/json"
	"testing"

	"github.com/elfhost/elfhost/host/model"
)

// What goes over the wire for each effort, by generation.
func TestEffort(t *testing.T) {
	for _, c := range []struct {
		id     string
		effort model.Effort
		want   string
	}{
		{"gemini-3.8-flash", "", `null`},
		{"gemini-3.8-flash", "none", `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3.8-flash", "low", `{"includeThoughts":true,"thinkingLevel":"LOW"}`},
		{"gemini-3.8-flash", "medium", `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-3.8-flash", "high", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-3.1-pro", "none", `{"thinkingLevel":"LOW"}`},
		{"gemini-3.1-pro", "medium", `{"includeThoughts":true,"thinkingLevel":"MEDIUM"}`},
		{"gemini-3-pro-preview", "medium", `{"includeThoughts":true,"thinkingLevel":"HIGH"}`},
		{"gemini-2.5-flash", "none", `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "medium", `{"includeThoughts":true,"thinkingBudget":8192}`},
		{"gemini-2.5-pro", "none", `{"thinkingBudget":128}`},
		{"gemini-2.0-flash", "high", `null`}, // it has no thinking, and refuses the field
		{"gemma-3-27b-it", "low", `null`},
	} {
		raw, err := json.Marshal((&Model{id: c.id}).config(model.Request{Effort: c.effort}).ThinkingConfig)
		if err != nil {
			t.Fatal(err)
		}
		if string(raw) != c.want {
			t.Errorf("%s %q: %s, want %s", c.id, c.effort, raw, c.want)
		}
	}
}
