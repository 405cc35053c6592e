package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// gateState is what a gate keeps while it works. Rules and questions are those
// of the outermost gate; a child has a mode of its own.
type gateState struct {
	parent *Gate

	mu     sync.Mutex
	mode   Mode // set by Switch
	rules  []Rule
	asking map[string]*question
}

// Child makes the gate of a sub-agent: never looser than g, whatever g is
// switched to later. It shares what was remembered and who is asked. A caller
// may narrow the child's Grants before its first use.
func (g *Gate) Child(m Mode) *Gate {
	return &Gate{
		Policy: g.Policy, Mode: m.Narrower(g.Current()), Grants: g.Grants, Granted: g.Granted, Workspace: g.Workspace,
		Approver: g.Approver, Memory: g.Memory, Audit: g.Audit, state: gateState{parent: g},
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
	g.audit(v)
	if d != nil {
		return d
	}
	return nil
}

func (g *Gate) audit(v Verdict) {
	if g.Audit != nil {
		g.Audit(v)
	}
}

func (g *Gate) decide(ctx context.Context, s Spec, c Call, v *Verdict) *Denied {
	refuse := func(layer, why string) *Denied {
		v.By = layer
		return &Denied{Call: c, Origin: s.Origin, Layer: layer, Why: why, Final: true}
	}
	mode := g.Current()
	ruling := policy.Ruling{Effect: policy.Ask}
	if rules := g.Policy.Rules(); len(rules) > 0 || s.Kind == KindExecute { // commands have a critical list
		ruling = g.judge(s, c, rules, nil)
	}
	v.Rule, v.Where = ruling.Rule, ruling.Where
	switch {
	case ruling.Effect == policy.Deny:
		d := refuse("policy", ruling.Why)
		d.Layer, d.Where = ruling.Layer, ruling.Where
		return d
	case !mode.Offers(s):
		return refuse("mode", "the session is in plan mode, in which nothing is changed")
	case mode == ModePlan && s.Name == spawner && !plans(c.Args):
		return refuse("mode", "in plan mode a sub-agent has permissionMode plan")
	case ruling.Effect == policy.Ask && ruling.Rule != "": // whatever comes below
		return g.askCall(ctx, s, c, ruling, v)
	case Safe(s):
		v.By = "safe"
		return nil
	case ruling.Effect == policy.Allow:
		v.By = "policy"
		return nil
	case mode == ModePlan, mode == ModeAuto, mode == ModeAcceptEdits && edits[s.Name] && s.Origin.Source == Builtin:
		v.By = "mode"
		return nil
	}
	if ruling = g.judge(s, c, g.Policy.Rules(), g.remembered(s, c)); ruling.Effect == policy.Allow {
		v.By, v.Rule = "rule", ruling.Rule
		return nil
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

// answers lists the remembered rules of the session, then of the project.
func (g *Gate) answers(keep func(Rule) bool) []Rule {
	root := g.root()
	root.state.mu.Lock()
	all := slices.Clone(root.state.rules)
	root.state.mu.Unlock()
	if g.Memory != nil {
		all = append(all, g.Memory.Rules()...)
	}
	return slices.DeleteFunc(all, func(r Rule) bool { return !keep(r) })
}

func (g *Gate) askCall(ctx context.Context, s Spec, c Call, ruling policy.Ruling, v *Verdict) *Denied {
	a := Ask{Call: c, Spec: s, Why: why(c.Caller), Now: ruling.Why, Risks: ruling.Risks, Rules: rulesFor(s, ruling.Suggest)}
	a.Final = len(a.Rules) == 0 || c.Caller.Plugin != "" || ruling.Rule != ""
	d := g.ask(ctx, a, v)
	if d != nil && !a.Final {
		d.Allow = command(a.Rules[0])
	}
	return d
}

func why(c Caller) string {
	by := "the model"
	switch {
	case c.Plugin != "":
		by = "the plugin " + c.Plugin
	case c.Agent != "":
		by = "the agent " + c.Agent
	}
	if c.Step > 0 {
		return fmt.Sprintf("asked by %s in step %d", by, c.Step)
	}
	return "asked by " + by
}

// ask puts a question, or joins one that is being asked, and remembers the answer.
func (g *Gate) ask(ctx context.Context, a Ask, v *Verdict) *Denied {
	d := &Denied{Call: a.Call, Origin: a.Spec.Origin, Use: a.Use}
	if g.Approver == nil {
		v.By, d.Layer, d.Why = "nobody", "nobody", "it needs a person's consent, and nobody is there to ask"
		return d
	}
	v.By, d.Layer = "person", "person"
	answer, err := g.root().put(ctx, g.Approver, a)
	switch {
	case ctx.Err() != nil:
		d.Why = "the call was cancelled while a person was asked"
		return d
	case err != nil:
		d.Why = fmt.Sprintf("the question was not answered: %v", err)
		return d
	case !answer.Allow && answer.Reason != "":
		d.Why = "the person refused and says: " + answer.Reason
		return d
	case !answer.Allow:
		d.Why = "the person refused"
		return d
	}
	v.Rule, v.Reason = g.remember(ctx, a, answer)
	return nil
}

// remember keeps an answer as long as the person said. Only a rule that was
// shown is kept.
func (g *Gate) remember(ctx context.Context, a Ask, answer Answer) (rule, reason string) {
	shown := slices.ContainsFunc(a.Rules, answer.Rule.equal)
	if answer.Scope != Session && answer.Scope != Project || !shown || a.Final {
		return "", ""
	}
	if answer.Scope == Project && g.Memory != nil {
		err := g.Memory.Remember(ctx, answer.Rule)
		if err == nil {
			return answer.Rule.String(), ""
		}
		reason = fmt.Sprintf("kept for the session only: %v", err)
	}
	root := g.root()
	root.state.mu.Lock()
	defer root.state.mu.Unlock()
	if !slices.ContainsFunc(root.state.rules, answer.Rule.equal) {
		root.state.rules = append(root.state.rules, answer.Rule)
	}
	return answer.Rule.String(), reason
}

// String writes a rule as it stands in grants.toml and in a question.
func (r Rule) String() string {
	if r.Grant != nil {
		return r.Plugin + ": " + r.Grant.String()
	}
	return r.Pattern
}

func (r Rule) equal(o Rule) bool {
	if r.Pattern != o.Pattern || r.Plugin != o.Plugin || (r.Grant == nil) != (o.Grant == nil) {
		return false
	}
	return r.Grant == nil || r.Grant.Cap == o.Grant.Cap && slices.Equal(r.Grant.Scope, o.Grant.Scope)
}

// Error says why, in one clause.
func (d *Denied) Error() string {
	what := "the call of " + d.Call.Tool
	if d.Use != nil {
		what = useText(*d.Use)
	}
	where := d.Layer
	if d.Where != "" {
		where += ", " + d.Where
	}
	return fmt.Sprintf("%s is denied (%s): %s", what, where, d.Why)
}

// Unwrap makes errors.Is(err, abi.ErrDenied) true.
func (d *Denied) Unwrap() error { return abi.ErrDenied }

// denied turns any error of a check into a *Denied.
func denied(err error, s Spec, c Call) *Denied {
	if d, ok := errors.AsType[*Denied](err); ok {
		return d
	}
	d := &Denied{Call: c, Origin: s.Origin, Layer: "grants", Why: err.Error()}
	if p, ok := errors.AsType[*policy.Denial](err); ok {
		use := p.Use
		d.Use, d.Layer, d.Where, d.Why, d.Final = &use, p.Layer, p.Where, p.Why, p.Final
		if p.Grant.Cap != "" {
			d.Allow = command(Rule{Plugin: subject(s), Grant: &p.Grant})
		}
	}
	return d
}
