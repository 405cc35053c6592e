package host

import (
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/policy"
)

func patterns(t testing.TB, texts ...string) (out []policy.Pattern) {
	t.Helper()
	for _, s := range texts {
		p, err := policy.ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestNarrow(t *testing.T) {
	g := &Gate{Mode: ModeAuto}
	r := registry(t, Options{Gate: g}, builtin("Read"), builtin("Write"), bash())
	shown := func(g *Gate) string {
		return strings.Join(r.Filter(g.Offers).Names(), " ")
	}
	g.Narrow(patterns(t, "Read", "Bash(git status:*)")...)
	child := r.Under(g.Child(ModeAuto))
	for _, r := range []*Registry{r, child} {
		allowed(t, r, "Read", `{}`)
		allowed(t, r, "Bash", `{"command":"git status -s"}`)
		refusedWith(t, r, "Write", `{}`, "may not use this tool")
		refusedWith(t, r, "Bash", `{"command":"git push"}`, "other things only")
		refusedWith(t, r, "Bash", `{"command":"git status; git push"}`, "other things only")
	}
	if got := shown(g); got != "Read Bash" {
		t.Errorf("a narrowed gate offers %q", got)
	}
	g.Narrow(patterns(t, "Bash", "Write")...) // narrowing twice asks both
	allowed(t, r, "Bash", `{"command":"git status"}`)
	refusedWith(t, r, "Bash", `{"command":"git push"}`, "other things only")
	refusedWith(t, r, "Read", `{}`, "may not use this tool")
	refusedWith(t, r, "Write", `{}`, "may not use this tool")
	child.Gate().Widen() // a child cannot undo what its parent was narrowed to
	refusedWith(t, child, "Write", `{}`, "may not use this tool")
	g.Narrow()
	if got := shown(g); got != "" {
		t.Errorf("with nothing left the gate offers %q", got)
	}
	g.Widen()
	allowed(t, r, "Write", `{}`)
	allowed(t, child, "Bash", `{"command":"git push"}`)
}

// TestNarrowAllowsNothing: what a command may use is still asked about.
func TestNarrowAllowsNothing(t *testing.T) {
	p := &person{answer: refuses}
	g := &Gate{Approver: p}
	r := registry(t, Options{Gate: g}, bash())
	g.Narrow(patterns(t, "Bash(git push:*)")...)
	refusedWith(t, r, "Bash", `{"command":"git push"}`, "the person refused")
	if p.count() != 1 {
		t.Errorf("%d questions were asked", p.count())
	}
}
