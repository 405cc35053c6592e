package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
)

// A guard is asked about everything that policy and mode leave, and its no is
// final; a child's calls are asked about, too.
func TestBeforeRefuses(t *testing.T) {
	var asked []string
	g := &Gate{Mode: ModeAuto, Before: func(_ context.Context, s Spec, c Call) error {
		asked = append(asked, s.Name)
		if strings.Contains(string(c.Args), "forbidden") {
			return errors.New("the guard says no")
		}
		return nil
	}}
	var audited []Verdict
	g.Audit = func(v Verdict) error { audited = append(audited, v); return nil }
	r := registry(t, Options{Gate: g}, builtin("Read"), builtin("Write"), bash())
	for _, r := range []*Registry{r, r.Under(g.Child(ModeAuto))} {
		allowed(t, r, "Read", `{}`)
		refusedWith(t, r, "Read", `{"path":"forbidden"}`, "the guard says no")
		allowed(t, r, "Write", `{}`)
		refusedWith(t, r, "Bash", `{"command":"rm -rf /"}`, "")
	}
	if !slices.Equal(asked, []string{"Read", "Read", "Write", "Read", "Read", "Write"}) {
		t.Errorf("asked about %q", asked)
	}
	if v := audited[1]; v.Allowed || v.By != "hook" || v.Reason != "the guard says no" {
		t.Errorf("%+v", v)
	}
	asked = nil
	if err := g.Switch(ModePlan); err != nil {
		t.Fatal(err)
	}
	refusedWith(t, r, "Write", `{}`, "plan mode")
	if len(asked) > 0 {
		t.Errorf("asked about what the mode refuses: %q", asked)
	}
}

func TestAfterAdds(t *testing.T) {
	var saw []string
	o := Options{Gate: &Gate{Mode: ModeAuto}, After: func(_ context.Context, s Spec, c Call, res abi.Result) abi.Result {
		saw = append(saw, s.Name+" "+res.Text())
		res.Content = append(res.Content, abi.TextBlock("added"))
		return res
	}}
	r := registry(t, o, builtin("Read"), builtin("Write"))
	res := r.Under(r.Gate().Child(ModeAsk)).Invoke(context.Background(), Call{Tool: "Read", Args: json.RawMessage(`{}`)})
	if !strings.HasSuffix(res.Text(), "added") || len(saw) != 1 {
		t.Errorf("%q, saw %q", res.Text(), saw)
	}
	refusedWith(t, r.Under(r.Gate().Child(ModePlan)), "Write", `{}`, "plan mode")
	if len(saw) != 1 {
		t.Errorf("a call that was not made was seen: %q", saw)
	}
}

func TestMatchesInDoubt(t *testing.T) {
	g := &Gate{Workspace: "/home/x/p"}
	shell, write := bash().Spec(), builtin("Write").Spec()
	for _, c := range []struct {
		pattern string
		spec    Spec
		args    string
		want    bool
	}{
		{"Bash(git:*)", shell, `{"command":"git push"}`, true},
		{"Bash(git:*)", shell, `{"command":"ls; git push"}`, true},
		{"Bash(git:*)", shell, `{"command":"ls"}`, false},
		{"Bash(git:*)", shell, `{"command":"X=git; $X push"}`, true},
		{"Bash(git:*)", shell, `{"command":"eval \"$Y\""}`, true},
		{"Bash(git:*)", shell, `{"command":"((("}`, true},
		{"Bash(git:*)", shell, `{"command":"ls \"$HOME\""}`, false},
		{"Bash", shell, `{"command":"ls"}`, true},
		{"Write(docs/**)", write, `{"path":"docs/a"}`, true},
		{"Write(docs/**)", write, `{"path":"/home/x/p/docs/a"}`, true},
		{"Write(docs/**)", write, `{"path":"src/a"}`, false},
		{"Write", shell, `{"command":"ls"}`, false},
		{"mcp__*", Spec{Name: "mcp__a__b", Origin: Origin{Source: MCP}}, `{}`, true},
	} {
		if got := g.Matches(patterns(t, c.pattern)[0], c.spec, Call{Tool: c.spec.Name, Args: json.RawMessage(c.args)}); got != c.want {
			t.Errorf("%s of %s: %v", c.pattern, c.args, got)
		}
	}
}
