package host

import (
	"fmt"
	"slices"

	"github.com/elfhost/elfhost/host/policy"
)

// Narrow refuses, from the next call on and until Widen, every call that none
// of the patterns matches: what a slash command's allowed-tools says. Without
// patterns nothing is left. Narrowing again asks both; children are narrowed
// with their parents. It never allows what was refused before.
func (g *Gate) Narrow(patterns ...policy.Pattern) {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	g.state.narrow = append(g.state.narrow, slices.Clone(patterns))
}

// Widen ends what Narrow began, on this gate; its parents' stays.
func (g *Gate) Widen() {
	g.state.mu.Lock()
	defer g.state.mu.Unlock()
	g.state.narrow = nil
}

// Offers reports whether a registry shows a tool at this moment: the mode and
// what the gate was narrowed to leave it. Check says the same at each call.
func (g *Gate) Offers(s Spec) bool {
	if !g.Current().Offers(s) {
		return false
	}
	for _, n := range g.narrowings() {
		if !n.names(s.Name) {
			return false
		}
	}
	return true
}

// Unasked reports whether every call of a tool goes ahead at this moment
// without a question, whatever its arguments: what somebody else does in the
// tool's place, out of the gate's sight, may then be left to them.
func (g *Gate) Unasked(s Spec) bool {
	if !s.Safe() || !g.Offers(s) {
		return false
	}
	rules, left := g.rules(s)
	if !left || policy.Judge(rules, s.Name, policy.Subject{}).Effect == policy.Deny {
		return false
	}
	return !slices.ContainsFunc(rules, func(r policy.Rule) bool {
		return (r.Effect == policy.Deny || r.Effect == policy.Ask) && r.Pattern.Names(s.Name)
	})
}

const narrowLayer = "command "

// narrowing is one list of what is left.
type narrowing []policy.Pattern

func (n narrowing) names(tool string) bool {
	return slices.ContainsFunc(n, func(p policy.Pattern) bool { return p.Names(tool) })
}

// narrowings are the gate's own and its parents'.
func (g *Gate) narrowings() (out []narrowing) {
	for ; g != nil; g = g.state.parent {
		g.state.mu.Lock()
		out = append(out, g.state.narrow...)
		g.state.mu.Unlock()
	}
	return out
}

// rules are the policy's, and those that Narrow made.
func (g *Gate) rules(s Spec) (out []policy.Rule, left bool) {
	out = g.Policy.Rules()
	for i, n := range g.narrowings() {
		if !n.names(s.Name) {
			return nil, false
		}
		layer := fmt.Sprint(narrowLayer, i) // Only-rules of one layer are alternatives, of different layers conditions
		for _, p := range n {
			out = append(out, policy.Rule{Pattern: p, Effect: policy.Only, Layer: layer})
		}
	}
	return out, true
}
