package policy

import (
	"slices"
	"strings"
)

// judgeCommand is Judge for a command line.
func judgeCommand(rules []Rule, tool string, s Subject) Ruling {
	c, err := ParseCommand(s.Text)
	out := Ruling{Effect: Ask, Why: "no rule covers it", Command: c}
	if err != nil {
		out.Why, out.Unclear = err.Error(), err.Error()
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
	if len(c.Unclear) > 0 {
		out.Unclear = c.Unclear[0]
	}
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
	if !p.matchWords(g.Argv) {
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
