package host

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// maxDenied is how many refusals of one call are told.
const maxDenied = 16

// trial is one call on its way: what it may do, what a person let it do once,
// and what it was refused.
type trial struct {
	gate *Gate
	spec Spec
	call Call

	mu     sync.Mutex
	once   map[policy.Use]bool
	asked  map[policy.Use]Verdict // by whom a use that no grant covers was decided
	denied []*Denied
	acted  bool // a use that may change something went ahead
	over   bool // Invoke has returned: nothing more is told
}

// bind gives the call its rights: what the tool needs, what persons granted
// and what the policy allows, met, and further narrowed by what the caller set.
func (t *trial) bind(ctx context.Context, tool Tool) {
	grants, decides := t.gate.grantsOf(ctx, tool, t.spec)
	from := t.call.Rights
	if len(from.Grants.List()) > 0 || from.Decide != nil || from.Note != nil {
		grants = grants.Meet(from.Grants)
	}
	r := policy.Rights{Grants: grants}
	if decides {
		r.Decide = func(ctx context.Context, u policy.Use) error { return t.decide(ctx, grants, u) }
	}
	r.Note = func(u policy.Use, err error) {
		t.note(u, err)
		if from.Note != nil {
			from.Note(u, err)
		}
	}
	t.call.Rights = r
}

// grantsOf says what a tool may do without being asked, and whether a person
// may be asked about more.
func (g *Gate) grantsOf(ctx context.Context, tool Tool, s Spec) (policy.Grants, bool) {
	var given policy.Grants
	n, needs := tool.(Needer)
	switch s.Origin.Source {
	case Builtin:
		given = g.own(ctx, s)
	case Bundled, Plugin:
		if !needs {
			return policy.Grants{}, false
		}
		// To find out what was granted takes files, and none of it counts here.
		if all := n.Needs(); all.Nothing() {
			return all, true
		}
		if g.Granted != nil {
			given = g.Granted(s.Origin)
		}
	default:
		return policy.Grants{}, false // an MCP server acts elsewhere
	}
	if needs {
		given = n.Needs().Meet(given)
	}
	if s.Origin.Source == Plugin {
		return given.Meet(g.Policy.PluginCeiling()), true
	}
	return given.Meet(g.Policy.Ceiling()), true
}

// Powerless reports whether a plugin's tool holds none of the rights that its
// manifest asks for: a person took them back, or a policy gives none. Its code
// runs, and every use that it tries is refused, or asked about.
func (g *Gate) Powerless(t Tool) bool {
	s := t.Spec()
	n, ok := t.(Needer)
	if !ok || s.Origin.Source != Plugin && s.Origin.Source != Bundled || n.Needs().Nothing() {
		return false
	}
	held, _ := g.grantsOf(context.Background(), t, s)
	return !slices.ContainsFunc(abi.Capabilities(), held.Allows)
}

// CanAsk reports whether a question may reach a person at this moment, about
// more than a call has: somebody is there, and the mode asks.
func (g *Gate) CanAsk() bool {
	m := g.Current()
	return g.Approver != nil && m != ModePlan && m != ModeAuto
}

// own are the rights of a builtin tool: the session's, and what a person gave
// to this one tool by name, such as a protected file. A child's gate has been
// narrowed, and gets nothing more.
func (g *Gate) own(ctx context.Context, s Spec) policy.Grants {
	if g.state.parent != nil {
		return g.Grants
	}
	list := g.Grants.List()
	n := len(list)
	for _, r := range g.answers(ctx, func(r Rule) bool { return r.Grant != nil && r.Plugin == s.Name }) {
		list = append(list, *r.Grant)
	}
	if len(list) == n {
		return g.Grants
	}
	given, err := policy.New("session", list...)
	if err != nil { // written by hand, and wrong: it gives nothing
		return g.Grants
	}
	return given
}

// decide asks about a use that no grant covers and nothing forbids for good.
func (t *trial) decide(ctx context.Context, grants policy.Grants, u policy.Use) error {
	err := grants.Check(u)
	var denial *policy.Denial
	if !errors.As(err, &denial) || denial.Final {
		return err
	}
	key := asAsked(u)
	t.mu.Lock()
	allowed := t.once[key]
	t.mu.Unlock()
	if allowed {
		return nil
	}
	v := Verdict{Call: t.call, Origin: t.spec.Origin, Use: &u}
	d := t.ask(ctx, grants, u, denial, &v)
	v.Allowed = d == nil
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked, t.once = map[policy.Use]Verdict{}, map[policy.Use]bool{}
	}
	t.asked[key] = v
	if d != nil {
		return d
	}
	t.once[key] = true
	return nil
}

func (t *trial) ask(ctx context.Context, grants policy.Grants, u policy.Use, denial *policy.Denial, v *Verdict) *Denied {
	who := subject(t.spec)
	d := denied(denial, t.spec, t.call)
	switch t.gate.Current() {
	case ModePlan:
		v.By, d.Layer, d.Why, d.Final = "mode", "mode", "the session is in plan mode, in which nothing more is allowed", true
		return d
	case ModeAuto:
		if t.spec.Origin.Source == Builtin {
			v.By = "mode"
			return nil
		}
		v.By = "mode" // nothing is asked, and a module gets only what a person gave
		return d
	}
	if rule, ok := t.gate.granted(ctx, who, u); ok {
		v.By, v.Rule = "rule", rule
		return nil
	}
	a := Ask{
		Call: t.call, Spec: t.spec, Use: &u, Why: why(t.call.Caller),
		Now: "granted: " + grants.Describe(u.Cap), Acted: t.hasActed(),
	}
	describe := t.gate.Policy.Describe
	if t.spec.Origin.Source == Plugin {
		describe = t.gate.Policy.DescribePlugin
	}
	if at := describe(u.Cap); at != "anything" {
		a.Now += "          policy allows: " + at
	}
	if denial.Grant.Cap != "" {
		a.Rules = []Rule{{Plugin: who, Grant: &denial.Grant}}
	}
	a.Final = len(a.Rules) == 0
	refused := t.gate.ask(ctx, a, v)
	if refused == nil {
		return nil
	}
	refused.Allow = d.Allow
	return refused
}

// granted looks for a remembered grant that covers the use.
func (g *Gate) granted(ctx context.Context, who string, u policy.Use) (string, bool) {
	for _, r := range g.answers(ctx, func(r Rule) bool { return r.Grant != nil && r.Plugin == who }) {
		one, err := policy.New("grants", *r.Grant)
		if err == nil && one.Check(u) == nil {
			return r.String(), true
		}
	}
	return "", false
}

func (t *trial) hasActed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acted
}

// onlyReads reports whether a use changes nothing that outlives the call.
func onlyReads(u policy.Use) bool {
	switch u.Cap {
	case abi.FSRead, abi.Env, abi.Secret:
		return true
	case abi.NetHTTP:
		return u.Verb == "GET" || u.Verb == "HEAD"
	case abi.KV:
		return u.Verb == "get"
	}
	return false
}

// note is told of every decision about a use.
func (t *trial) note(u policy.Use, err error) {
	t.mu.Lock()
	v, wasAsked := t.asked[asAsked(u)]
	delete(t.asked, asAsked(u))
	t.acted = t.acted || err == nil && !onlyReads(u)
	if t.over {
		t.mu.Unlock()
		return
	}
	if err != nil && len(t.denied) < maxDenied {
		t.refuse(denied(err, t.spec, t.call))
	}
	t.mu.Unlock()
	if !wasAsked {
		v = Verdict{Call: t.call, Origin: t.spec.Origin, Use: &u, By: "grants", Allowed: err == nil}
	}
	if err != nil {
		d := denied(err, t.spec, t.call)
		v.Where, v.Reason = d.Where, d.Why
		if !wasAsked && d.Layer != "" {
			v.By = d.Layer
		}
	}
	if wasAsked || err != nil || t.spec.Origin.Source != Builtin {
		_ = t.gate.audit(v) // a log that is broken refuses the next call
	}
}

// refuse records a refusal once. It is called with the lock held.
func (t *trial) refuse(d *Denied) {
	for _, have := range t.denied {
		if have.Error() == d.Error() {
			return
		}
	}
	t.denied = append(t.denied, d)
}

// refusals ends the record and returns it.
func (t *trial) refusals() []*Denied {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return t.denied
}
