package term

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host"
)

func edit(tool string, args map[string]any) host.Ask {
	raw, _ := json.Marshal(args)
	return host.Ask{
		Call: host.Call{Tool: tool, Args: raw},
		Spec: host.Spec{Name: tool, Kind: host.KindEdit, Origin: host.Origin{Source: host.Builtin}},
	}
}

func TestEditsAreShownAsWhatGoesAndComes(t *testing.T) {
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"Edit", map[string]any{"path": "a.go", "old_string": "x\ny", "new_string": "z\n", "replace_all": true}, "path: a.go\nreplace_all: true\n- x\n- y\n+ z"},
		{"EditFile", map[string]any{"path": "a.go", "oldText": "x", "newText": ""}, "path: a.go\n- x"},
		{"Write", map[string]any{"path": "a.go", "content": "one\n\ntwo\n"}, "path: a.go\n+ one\n+ \n+ two"},
		// What is in a text cannot pass for the path, nor for what goes.
		{"Write", map[string]any{"path": "a.go", "content": "path: b.go\n- x"}, "path: a.go\n+ path: b.go\n+ - x"},
		// Other forms are shown as they are.
		{"Write", map[string]any{"path": "a.go\n+ b", "content": "x"}, "content: x\npath: a.go\n  + b"},
		{"Write", map[string]any{"path": 7, "content": "x"}, "content: x\npath: 7"},
	} {
		q, ok := Ask(edit(c.tool, c.args), true)
		if !ok || q.Rows[0][1] != c.want {
			t.Errorf("%s %v is shown as\n%s\nwant\n%s", c.tool, c.args, q.Rows[0][1], c.want)
		}
	}
	q, _ := Ask(edit("Edit", map[string]any{"path": "a", "old_string": "x", "new_string": "y"}), true)
	if s := q.Render(Style{Color: true}); !strings.Contains(s, "\x1b[31m- x\x1b[0m") || !strings.Contains(s, "\x1b[32m+ y\x1b[0m") {
		t.Errorf("no colours: %q", s)
	}
	if s := q.Render(Style{}); strings.Contains(s, "\x1b") {
		t.Errorf("a plain question has an escape sequence: %q", s)
	}
	other := edit("mcp__x__y", map[string]any{"path": "a", "content": "x"})
	other.Spec.Kind = host.KindOther
	if q, _ := Ask(other, true); strings.Contains(q.Rows[0][1], "+ x") {
		t.Errorf("what is no edit is shown as one: %s", q.Rows[0][1])
	}
}
