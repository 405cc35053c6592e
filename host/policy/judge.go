package policy

import (
	"slices"
	"strings"
)

// Effect is what a rule, or a ruling, says.
type Effect string

// The effects. In a set of rules Deny wins over Ask, Ask over Allow.
const (
	Allow Effect = "allow" // no question
	Ask   Effect = "ask"   // a question, whatever else was remembered
	Deny  Effect = "deny"
	Only  Effect = "only" // in a layer that has such rules, what none of them matches is denied
)

// Rule is a tool rule of a policy, or a remembered answer.
type Rule struct {
	Pattern Pattern
	Effect  Effect
	Layer   string // "system policy", "session", …
	Where   string // file:line
}

// Subject is what a call acts on. Text is the command of a shell tool, the URL
// of WebFetch, else the path. Root and Cwd are folders of the host and count
// for commands only: with Root set, a command that leaves it is asked about.
type Subject struct {
	Text string
	Root string
	Cwd  string
}

// Ruling is what the rules say of one call. Effect is Allow, Ask or Deny; a
// call that no rule matches is Ask with an empty Rule.
type Ruling struct {
	Effect  Effect
	Rule    string   // the pattern that decided
	Layer   string   // of that rule
	Where   string   // of that rule
	Why     string   // one clause, for the question or the denial
	Risks   []string // marks for the question: "pipes into a shell"
	Command *Command // of a shell tool, when it could be parsed
	Unclear string   // why the critical list could not be applied to a command in full; usually ""
	Suggest []string // patterns that would cover the call, narrowest first
}

// Judge applies the rules to one call. Of a command every simple command in it
// is judged: one that is denied denies the whole, one that is not covered, or
// cannot be known before it runs, is asked about.
func Judge(rules []Rule, tool string, s Subject) Ruling {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return !r.Pattern.matchTool(tool) && r.Effect != Only })
	if isShell(tool) {
		return judgeCommand(rules, tool, s)
	}
	hit := func(r Rule) bool {
		return r.Pattern.matchTool(tool) && r.Pattern.matchArg(s.Text, r.Effect == Deny || r.Effect == Ask)
	}
	out := Ruling{Effect: Ask, Why: "no rule covers it", Suggest: suggest(tool, s.Text)}
	if r := decide(rules, hit); r != nil {
		out.by(*r)
	}
	return out
}

func (out *Ruling) by(r Rule) {
	out.Effect, out.Rule, out.Layer, out.Where = r.Effect, r.Pattern.String(), r.Layer, r.Where
	switch r.Effect {
	case Only:
		out.Effect, out.Why = Deny, "it is not among what the policy allows"
	case Deny:
		out.Why = "the rule " + r.Pattern.String() + " denies it"
	case Ask:
		out.Why = "the rule " + r.Pattern.String() + " wants a question"
	case Allow:
		out.Why = "the rule " + r.Pattern.String() + " covers it"
	}
}

// decide returns the strongest rule that hits.
func decide(rules []Rule, hit func(Rule) bool) *Rule {
	var best *Rule
	rank := map[Effect]int{Allow: 1, Ask: 2, Deny: 3}
	for i := range rules {
		r := &rules[i]
		if r.Effect != Only && hit(*r) && (best == nil || rank[r.Effect] > rank[best.Effect]) {
			best = r
		}
	}
	if best != nil && best.Effect == Deny {
		return best
	}
	if r := missed(rules, hit); r != nil {
		return r
	}
	return best
}

// missed finds a layer whose Only rules leave the call out.
func missed(rules []Rule, hit func(Rule) bool) *Rule {
	in := map[string]bool{}
	for _, r := range rules {
		if r.Effect == Only {
			in[r.Layer] = in[r.Layer] || hit(r)
		}
	}
	for i, r := range rules {
		if r.Effect == Only && !in[r.Layer] {
			return &rules[i]
		}
	}
	return nil
}

func suggest(tool, subject string) []string {
	switch {
	case subject == "":
	case strings.HasPrefix(subject, "http://"), strings.HasPrefix(subject, "https://"):
		if u, err := CheckURL(subject); err == nil {
			return []string{tool + "(" + u.Scheme + "://" + u.Host + "/**)"}
		}
	case strings.HasPrefix(subject, Workspace+"/"), !strings.HasPrefix(subject, "/") && !strings.HasPrefix(subject, "."):
		rel := strings.TrimPrefix(subject, Workspace+"/")
		out := []string{tool + "(" + escapeGlob(rel) + ")"}
		if i := strings.LastIndexByte(rel, '/'); i > 0 {
			out = append(out, tool+"("+escapeGlob(rel[:i])+"/**)")
		}
		return slices.DeleteFunc(out, func(s string) bool { _, err := ParsePattern(s); return err != nil })
	}
	if _, err := ParsePattern(tool); err != nil {
		return nil
	}
	return []string{tool}
}
