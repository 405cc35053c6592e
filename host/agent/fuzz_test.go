package agent

import (
	"encoding/json"
	"testing"

	"github.com/elfhost/elfhost/host/model"
)

// FuzzArguments: what is passed on is one JSON value, and what is not has a
// complaint.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a": "b`, `{"a":1}{"b":2}`, "[", "nul", "\xff", `"{}"`, "{\"\u00e9\": tru"} {
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, s string, cut bool) {
		args, complaint := arguments(model.Call{Args: s}, cut)
		if (complaint == "") == (args == nil) {
			t.Fatalf("%q: %q, %q", s, args, complaint)
		}
		if complaint == "" && !json.Valid(args) {
			t.Fatalf("%q passed on as %q", s, args)
		}
	})
}

// FuzzMend: any transcript becomes one that providers accept, and one that is
// fine stays as it is.
func FuzzMend(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","blocks":[{"call":{"id":"a","name":"t","args":""}}]},{"role":"tool","blocks":[{"result":{"id":"a","name":"t","content":[]}}]}]`))
	f.Add([]byte(`[{"role":"tool","blocks":[{"result":{"id":"a"}},{"call":{"id":""}}]},{"role":"assistant","blocks":[{"call":{"id":"mended_0_0"}},{"call":{"id":"mended_0_0"}}]}]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var messages []model.Message
		if json.Unmarshal(raw, &messages) != nil {
			return
		}
		fixed := mend(messages)
		if err := model.Check(fixed); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		again := mend(fixed)
		a, _ := json.Marshal(fixed)
		b, _ := json.Marshal(again)
		if string(a) != string(b) {
			t.Fatalf("mending twice differs:\n%s\n%s", a, b)
		}
	})
}
