package agent

import (
	"context"
	"slices"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/policy"
)

// A provider's own search stands in a tool's place exactly where every call of
// that tool would go ahead, and the tool is offered where it does not.
func TestSearchIsNoMoreThanItsTool(t *testing.T) {
	rules := func(r ...policy.Rule) *policy.Policy {
		p, err := policy.NewPolicy(policy.Layer{Tools: r})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	rule := func(text string, e policy.Effect) policy.Rule {
		p, err := policy.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return policy.Rule{Pattern: p, Effect: e}
	}
	for name, c := range map[string]struct {
		gate            *host.Gate
		narrow          string
		drop, without   bool
		native, offered bool
	}{
		"free":                {gate: &host.Gate{}, native: true},
		"plan":                {gate: &host.Gate{Mode: host.ModePlan}, native: true},
		"no native":           {gate: &host.Gate{}, without: true, offered: true},
		"the tool is gone":    {gate: &host.Gate{}, drop: true},
		"denied":              {gate: &host.Gate{Policy: rules(rule("WebSearch", policy.Deny))}, offered: true},
		"denied in part":      {gate: &host.Gate{Policy: rules(rule("WebSearch(secret/**)", policy.Deny))}, offered: true},
		"asked":               {gate: &host.Gate{Policy: rules(rule("Web*", policy.Ask))}, offered: true},
		"only others":         {gate: &host.Gate{Policy: rules(rule("Read", policy.Only))}, offered: true},
		"only this":           {gate: &host.Gate{Policy: rules(rule("Web*", policy.Only))}, native: true},
		"narrowed to others":  {gate: &host.Gate{}, narrow: "Read"},
		"narrowed to it":      {gate: &host.Gate{}, narrow: "WebSearch", native: true},
		"narrowed to a query": {gate: &host.Gate{}, narrow: "WebSearch(go/**)", offered: true},
	} {
		search := spec("WebSearch", true)
		search.Origin = host.Origin{Source: host.Bundled, Name: "websearch"}
		reg := host.New(host.Options{Gate: c.gate})
		if err := reg.Add(tool{spec: search}, tool{spec: spec("Read", true)}); err != nil {
			t.Fatal(err)
		}
		if c.narrow != "" {
			c.gate.Narrow(rule(c.narrow, policy.Allow).Pattern)
		}
		m := &script{turns: []turn{says("done")}}
		l := newLoop(m)
		l.Tools, l.Search, l.Stands = reg, &model.Search{}, "WebSearch"
		if c.without {
			l.Search = nil
		}
		if c.drop {
			l.Tools = reg.Filter(func(s host.Spec) bool { return s.Name != "WebSearch" })
		}
		if _, err := drain(t, l.Run(t.Context(), New("s", nil), abi.TextBlock("hi"))); err != nil {
			t.Fatal(name, err)
		}
		r := m.requests[0]
		offered := slices.ContainsFunc(r.Tools, func(t model.Tool) bool { return t.Name == "WebSearch" })
		if native := r.Search != nil; native != c.native || offered != c.offered {
			t.Errorf("%s: native %v, offered %v", name, native, offered)
		}
	}
}

// A child that may not use the tool does not search through its provider
// either, though its parent does.
func TestChildWithoutTheToolSearchesNot(t *testing.T) {
	search := spec("WebSearch", true)
	search.Origin = host.Origin{Source: host.Bundled, Name: "websearch"}
	for _, c := range []struct {
		tools  []string
		native bool
	}{{nil, true}, {[]string{"WebSearch"}, true}, {[]string{"Read"}, false}} {
		f := &family{parts: map[string]*script{
			"":      {turns: []turn{does(model.Call{ID: "a", Name: "spawn_agent"}), says("done")}},
			"child": {turns: []turn{says("found")}},
		}}
		l := newLoop(f, spawner(&Runs{}, Spawn{Prompt: "child", Tools: c.tools}), tool{spec: search, call: func(context.Context, host.Call) (abi.Result, error) { return abi.Text(""), nil }}, tool{spec: spec("Read", true)})
		l.Search, l.Stands = &model.Search{}, "WebSearch"
		if _, err := drain(t, l.Run(t.Context(), New("s", nil), abi.TextBlock("hi"))); err != nil {
			t.Fatal(err)
		}
		if got := f.parts["child"].requests[0].Search != nil; got != c.native {
			t.Errorf("a child with the tools %q searches by itself: %v", c.tools, got)
		}
		if f.parts[""].requests[0].Search == nil {
			t.Error("the parent does not search")
		}
	}
}
