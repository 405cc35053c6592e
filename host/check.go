package host

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/host/policy"
)

// gateState is what a gate keeps while it works. Rules and questions are those
// of the outermost gate; a child has a mode of its own.
type gateState struct {
	parent *Gate

	mu     sync.Mutex
	mode   Mode // set by Switch
	narrow []narrowing
	rules  []Rule
	asking map[string]*question
}

// Child makes the gate of a sub-agent: never looser than g, whatever g is
// switched to later. It shares what was remembered and who is asked. A caller
// may narrow the child's Grants before its first use.
func (g *Gate) Child(m Mode) *Gate {
	return &Gate{
		Policy: g.Policy, Mode: m.Narrower(g.Current()), Grants: g.Grants, Granted: g.Granted, Workspace: g.Workspace,
		Approver: g.Approver, Memory: g.Memory, Unconfined: g.Unconfined, Terminal: g.Terminal, Before: g.Before, Audit: g.Audit, state: gateState{parent: g},
	}
}

// Switch changes the mode from the next call on. A policy may forbid it.
func (g *Gate) Switch(m Mode) error {
	if _, ok := looseness[m]; !ok {
		return fmt.Errorf("unknown mode %q: use plan, ask, acceptEdits or auto", m)
	}
	if err := g.Policy.ModeAllowed(string(m)); err != nil {
		return fmt.Errorf("switching the mode: %w", err)
	}
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	g.state.mode = m
	return nil
}

// Current is the mode in force: the gate's own, not looser than its parents',
// and the next tighter one that a policy does not forbid.
func (g *Gate) Current() Mode {
	g.state.mu.Lock()
	m := g.state.mode
	g.state.mu.Unlock()
	if m == "" {
		m = g.Mode
	}
	if _, ok := looseness[m]; !ok {
		m = ModeAsk
	}
	for m != ModePlan && g.Policy.ModeAllowed(string(m)) != nil {
		m = tighter[m]
	}
	if g.state.parent != nil {
		m = m.Narrower(g.state.parent.Current())
	}
	return m
}

// Allow remembers answers for the session as if a person had given them: what
// --allow names. None is taken if one cannot be read.
func (g *Gate) Allow(rules ...Rule) error {
	for _, r := range rules {
		var err error
		if r.Grant != nil {
			_, err = policy.New("grants", *r.Grant)
		} else {
			_, err = policy.ParsePattern(r.Pattern)
		}
		if err != nil {
			return fmt.Errorf("allowing %q: %w", r.String(), err)
		}
	}
	root := g.root()
	root.state.mu.Lock()
	defer root.state.mu.Unlock()
	root.state.rules = append(root.state.rules, rules...)
	return nil
}

func (g *Gate) root() *Gate {
	for g.state.parent != nil {
		g = g.state.parent
	}
	return g
}

// Check decides whether a call may go ahead: policy, safe list, mode,
// remembered answers, a person, in this order. It returns nil or a *Denied, and
// may wait for a person until ctx ends.
func (g *Gate) Check(ctx context.Context, s Spec, c Call) error {
	v := Verdict{Call: c, Origin: s.Origin}
	d := g.decide(ctx, s, c, &v)
	v.Allowed = d == nil
	if d != nil {
		v.Reason, v.Where = d.Why, d.Where
	}
	err := g.audit(v)
	switch {
	case d != nil:
		return d
	case err != nil: // nothing happens that leaves no trace
		return &Denied{Call: c, Origin: s.Origin, Layer: "audit", Why: "the audit log cannot be written: " + err.Error(), Final: true}
	}
	return nil
}

func (g *Gate) audit(v Verdict) error {
	if g.Audit == nil {
		return nil
	}
	return g.Audit(v)
}

func (g *Gate) decide(ctx context.Context, s Spec, c Call, v *Verdict) *Denied {
	refuse := func(layer, why string) *Denied {
		v.By = layer
		return &Denied{Call: c, Origin: s.Origin, Layer: layer, Why: why, Final: true}
	}
	mode := g.Current()
	rules, left := g.rules(s)
	if !left {
		return refuse("command", "the command that is being carried out may not use this tool")
	}
	ruling := policy.Ruling{Effect: policy.Ask}
	if len(rules) > 0 || s.Kind == KindExecute { // commands have a critical list
		ruling = g.judge(s, c, rules, nil)
	}
	v.Rule, v.Where = ruling.Rule, ruling.Where
	switch {
	case ruling.Effect == policy.Deny:
		if strings.HasPrefix(ruling.Layer, narrowLayer) {
			return refuse("command", "the command that is being carried out may use this tool for other things only")
		}
		d := refuse("policy", ruling.Why)
		d.Layer, d.Where = ruling.Layer, ruling.Where
		return d
	case !mode.Offers(s):
		return refuse("mode", "the session is in plan mode, in which nothing is changed")
	case mode == ModePlan && s.Name == spawner && !plans(c.Args):
		return refuse("mode", "in plan mode a sub-agent has permissionMode plan")
	}
	if g.Before != nil {
		if err := g.Before(ctx, s, c); err != nil {
			return refuse("hook", err.Error())
		}
	}
	switch {
	case ruling.Effect == policy.Ask && ruling.Rule != "": // whatever comes below
		return g.askCall(ctx, s, c, ruling, v)
	case g.Unconfined && s.Kind == KindExecute && s.Origin.Source == Builtin:
		return g.askEach(ctx, s, c, ruling, v)
	case s.Safe():
		v.By = "safe"
		return nil
	case ruling.Effect == policy.Allow:
		v.By = "policy"
		return nil
	case mode == ModePlan, mode == ModeAuto && ruling.Unclear == "", mode == ModeAcceptEdits && edits[s.Name] && s.Origin.Source == Builtin:
		v.By = "mode"
		return nil
	}
	if ruling = g.judge(s, c, rules, g.remembered(ctx, s, c)); ruling.Effect == policy.Allow {
		v.By, v.Rule = "rule", ruling.Rule
		return nil
	}
	if mode == ModeAuto && ruling.Unclear != "" {
		return g.askUnclear(ctx, s, c, ruling, v)
	}
	return g.askCall(ctx, s, c, ruling, v)
}

// plans reports whether the arguments of spawn_agent ask for no more than plan.
func plans(args json.RawMessage) bool {
	var a struct {
		Mode Mode `json:"permissionMode"`
	}
	err := json.Unmarshal(args, &a)
	return err == nil && (a.Mode == "" || a.Mode == ModePlan)
}

// answers lists the remembered rules of the session, of the client that calls,
// then of the project.
func (g *Gate) answers(ctx context.Context, keep func(Rule) bool) []Rule {
	root := g.root()
	root.state.mu.Lock()
	all := slices.Clone(root.state.rules)
	root.state.mu.Unlock()
	if m, ok := memoryOf(ctx); ok {
		all = append(all, m.Rules()...)
	}
	if g.Memory != nil {
		all = append(all, g.Memory.Rules()...)
	}
	return slices.DeleteFunc(all, func(r Rule) bool { return !keep(r) })
}
