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

// judgeCommand is Judge for a command line.
func judgeCommand(rules []Rule, tool string, s Subject) Ruling {
	c, err := ParseCommand(s.Text)
	out := Ruling{Effect: Ask, Why: "no rule covers it", Command: c}
	if err != nil {
		out.Why = err.Error()
		whole := func(r Rule) bool { return r.Pattern.matchTool(tool) && !r.Pattern.has }
		if r := decide(rules, whole); r != nil && r.Effect != Allow {
			out.by(*r)
		}
		if missed(rules, whole) == nil && slices.ContainsFunc(rules, func(r Rule) bool { return r.Effect == Deny && r.Pattern.has }) {
			out.Risks = append(out.Risks, "rules that deny commands could not be applied")
		}
		return out
	}
	out.Risks = c.Risks
	if c.Critical != "" {
		out.Effect, out.Why, out.Layer = Deny, c.Critical, "the critical list"
		return out
	}
	out.Suggest = c.suggest(tool)
	hit := func(r Rule) bool {
		if !r.Pattern.matchTool(tool) {
			return false
		}
		if r.Effect == Deny || r.Effect == Ask {
			return !r.Pattern.has || slices.ContainsFunc(c.Segments, r.Pattern.denies)
		}
		return r.Pattern.coversAll(c)
	}
	if r := decide(rules, hit); r != nil && r.Effect != Allow && !(r.Effect == Only && coveredBy(rules, *r, c, tool)) {
		out.by(*r)
		return out
	}
	return judgeSegments(rules, tool, s, c, out)
}

// judgeSegments looks for rules that together cover every segment.
func judgeSegments(rules []Rule, tool string, s Subject, c *Command, out Ruling) Ruling {
	allows := slices.DeleteFunc(rules, func(r Rule) bool { return r.Effect != Allow || !r.Pattern.matchTool(tool) })
	for _, r := range allows {
		if !r.Pattern.has || r.Pattern.exactly(c) {
			out.by(r)
			return out
		}
	}
	var last *Rule
	for i := range c.Segments {
		g := &c.Segments[i]
		if at := slices.IndexFunc(allows, func(r Rule) bool { return r.Pattern.covers(g) }); at >= 0 {
			last = &allows[at]
		} else if !g.stays() {
			out.Why = g.why()
			return out
		}
	}
	switch {
	case last == nil:
		return out
	case len(c.Ask) > 0:
		out.Why = c.Ask[0]
		return out
	case s.Root != "":
		if paths := c.Outside(s.Root, s.Cwd); len(paths) > 0 {
			out.Why = "it reaches " + quoteClip(paths[0]) + ", outside the workspace"
			return out
		}
	}
	out.by(*last)
	return out
}

// why says what a segment that no rule covers lacks.
func (g *Segment) why() string {
	if len(g.marks) > 0 {
		return g.marks[0].why
	}
	return "no rule covers " + quoteClip(g.String())
}

// coveredBy reports whether the Only rules of one layer together cover c.
func coveredBy(rules []Rule, by Rule, c *Command, tool string) bool {
	for i := range c.Segments {
		g := &c.Segments[i]
		if !g.stays() && !slices.ContainsFunc(rules, func(r Rule) bool {
			return r.Effect == Only && r.Layer == by.Layer && r.Pattern.matchTool(tool) && (!r.Pattern.has || r.Pattern.exactly(c) || r.Pattern.matchWords(g.Argv) && !g.Dynamic)
		}) {
			return false
		}
	}
	return true
}

// coversAll reports whether one pattern covers the whole command.
func (p Pattern) coversAll(c *Command) bool {
	if !p.has || p.exactly(c) {
		return true
	}
	for i := range c.Segments {
		if !p.covers(&c.Segments[i]) {
			return false
		}
	}
	return len(c.Ask) == 0
}

// exactly reports whether the pattern is the text of this very command, with
// its stars escaped.
func (p Pattern) exactly(c *Command) bool {
	return p.has && !p.open && strings.ReplaceAll(p.arg, `\*`, "*") == c.Source &&
		strings.Count(p.arg, "*") == strings.Count(p.arg, `\*`)
}

// covers reports whether an allowing pattern covers a segment: its words, and
// every mark on it, which a pattern covers by spelling the marked word out.
func (p Pattern) covers(g *Segment) bool {
	if g.Dynamic || !p.matchWords(g.Argv) {
		return false
	}
	for _, m := range g.marks {
		if m.word < 0 || m.word >= len(p.words) || p.words[m.word].lit == "" {
			return false
		}
	}
	return true
}

// denies reports whether a denying pattern matches a segment. In the arguments
// of a wrapper such as env every word may be where the command begins.
func (p Pattern) denies(g Segment) bool {
	if p.matchDenied(g.Argv) {
		return true
	}
	if g.wraps {
		for i := range g.Argv {
			if p.matchDenied(g.Argv[i:]) {
				return true
			}
		}
	}
	return false
}

func quoteClip(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return "`" + s + "`"
}
