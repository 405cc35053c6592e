package host

import (
	"context"
	"errors"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// What one client's person says until the session ends is asked of no other
// client's memory, and is not the gate's; where it cannot be kept, it counts
// for its call.
func TestMemoryOfAClient(t *testing.T) {
	use := get("https://a.example/x")
	f, got := web(t, []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}}, use)
	p := &person{answer: says(Session)}
	g := &Gate{Approver: p, Granted: func(Origin) policy.Grants { return granted(t) }}
	r := registry(t, Options{Gate: g}, f, builtin("Write"))
	one, two := &mem{}, &mem{}
	asks := func(m *mem, tool string) int {
		t.Helper()
		before, ctx := p.count(), t.Context()
		if m != nil {
			ctx = WithMemory(ctx, m)
		}
		if res := r.Invoke(ctx, Call{ID: "c", Tool: tool}); res.IsError {
			t.Fatal(res.Text())
		}
		if tool == "fetch" && (*got)[0] != nil {
			t.Fatal((*got)[0])
		}
		return p.count() - before
	}
	for _, c := range []struct {
		who  string
		m    *mem
		tool string
		want int
	}{
		{"one", one, "Write", 1}, {"one again", one, "Write", 0}, {"two", two, "Write", 1}, {"nobody", nil, "Write", 1}, {"two again", two, "Write", 0},
		{"one's plugin", one, "fetch", 2}, {"again", one, "fetch", 0}, {"two's plugin", two, "fetch", 2},
	} {
		if n := asks(c.m, c.tool); n != c.want {
			t.Errorf("%s: %d questions, not %d", c.who, n, c.want)
		}
	}
	if len(one.rules) != 3 || len(g.state.rules) != 1 {
		t.Errorf("kept: %v, and %v in the gate", one.rules, g.state.rules)
	}
	full := &mem{err: errors.New("the disk is full")}
	if a, b := asks(full, "fetch"), asks(full, "fetch"); a != 2 || b != 2 || len(g.state.rules) != 1 {
		t.Errorf("not kept: %d and %d questions, %v in the gate", a, b, g.state.rules)
	}
	if _, ok := memoryOf(context.Background()); ok {
		t.Error("a context without a memory has one")
	}
}

// A plugin that holds nothing of what it asks for can do nothing by itself. One
// that asks for nothing, or holds a part, can.
func TestPowerless(t *testing.T) {
	needs := []abi.Need{{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}, {Cap: abi.KV, Scope: []string{"1MiB"}}}
	f, _ := web(t, needs)
	off := layers(t, policy.Layer{Kind: policy.System, Network: policy.Network{Off: true}})
	none, _ := web(t, nil)
	own := builtin("Write")
	for _, c := range []struct {
		what string
		tool Tool
		have policy.Grants
		p    *policy.Policy
		want bool
	}{
		{"nothing at all", f, policy.Grants{}, nil, true},
		{"no grants", f, granted(t), nil, true},
		{"another's", f, granted(t, policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}}), nil, true},
		{"a part", f, granted(t, policy.Grant{Cap: abi.KV, Scope: []string{"1MiB"}}), nil, false},
		{"what a policy takes", f, granted(t, netGrant("https://a.example GET")), off, true},
		{"all", f, granted(t, netGrant("https://a.example GET")), nil, false},
		{"no needs", none, granted(t), nil, false},
		{"not a plugin", own, granted(t), nil, false},
	} {
		g := &Gate{Policy: c.p, Granted: func(Origin) policy.Grants { return c.have }}
		if got := g.Powerless(c.tool); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

func TestCanAsk(t *testing.T) {
	for mode, want := range map[Mode]bool{ModeAsk: true, ModeAcceptEdits: true, ModePlan: false, ModeAuto: false} {
		if g := (&Gate{Mode: mode, Approver: &person{}}); g.CanAsk() != want {
			t.Errorf("in mode %s: %v", mode, !want)
		}
		if g := (&Gate{Mode: mode}); g.CanAsk() {
			t.Errorf("in mode %s nobody is asked", mode)
		}
	}
}
