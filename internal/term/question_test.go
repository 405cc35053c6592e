package term

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host"
)

// A question about what the host prepared shows that, with its own ways to
// agree, and "no" stays the default.
func TestQuestionOfAScreen(t *testing.T) {
	a := host.Ask{
		Call: host.Call{Tool: "skillhub_install", Args: json.RawMessage(`{"skillId":"x"}`)}, Why: "asked by the model", Final: true,
		Screen: "install x 1.0.0\n  asks  net.http https://a.example GET\n", Choices: []string{"install it, and grant everything", "install it, and grant nothing\x1b[2J"},
	}
	q, ok := Ask(a, false)
	if !ok || len(q.Choices) != 4 || q.Default != 2 || q.Folded {
		t.Fatalf("%+v", q)
	}
	for i, c := range q.Choices {
		if c.Answer.Allow != (i < 2) || c.Answer.Choice != i && i < 2 {
			t.Errorf("%d: %+v", i, c)
		}
	}
	text := q.Render(Style{})
	for _, want := range []string{"install x 1.0.0\n  asks  net.http", "why    asked by the model", "1  install it, and grant everything\n", "<U+001B>", "3  no\n", "default 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "skillId") || strings.ContainsRune(text, 0x1b) {
		t.Errorf("%s", text)
	}
	a.Screen = strings.Repeat("x", MaxScreen+1)
	if _, ok := Ask(a, true); ok {
		t.Error("a screen that nobody reads is shown")
	}
	a.Screen, a.Choices = "x", nil
	if _, ok := Ask(a, true); ok {
		t.Error("a screen without a way to agree is shown")
	}
}
