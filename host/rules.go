package host

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// maxRules is how many rules a question offers to remember.
const maxRules = 2

// judge asks the policy's tool rules, and with them what was remembered.
func (g *Gate) judge(s Spec, c Call, rules, remembered []policy.Rule) policy.Ruling {
	if impostor(s) { // rules name tools; this one only has the name
		rules = slices.DeleteFunc(rules, func(r policy.Rule) bool { return r.Effect == policy.Allow })
		remembered = nil
	}
	return policy.Judge(append(rules, remembered...), s.Name, g.subject(s, c))
}

// Matches reports whether a call may be one that the pattern names. Where that
// cannot be known before the call is made, it may be: it is for guards, not
// for permissions.
func (g *Gate) Matches(p policy.Pattern, s Spec, c Call) bool {
	if !p.Names(s.Name) {
		return false
	}
	r := policy.Judge([]policy.Rule{{Pattern: p, Effect: policy.Deny}}, s.Name, g.subject(s, c))
	return r.Effect == policy.Deny || s.Kind == KindExecute && unclear(r.Command)
}

// unclear reports a command line of which some program is not known before it
// runs. A nil command could not be read at all.
func unclear(c *policy.Command) bool {
	return c == nil || len(c.Ask) > 0 || slices.ContainsFunc(c.Segments, func(g policy.Segment) bool {
		return g.Dynamic && (g.Via != "" || len(g.Argv) == 0 || strings.HasPrefix(g.Argv[0], "$") || strings.HasPrefix(g.Argv[0], "`") ||
			slices.Contains([]string{"eval", "source", "."}, g.Argv[0]))
	})
}

// remembered are the answers that hold for a call, as rules that allow. What
// was answered about one plugin's tool does not hold for another's of the same
// name, unless a person wrote the rule without an owner, and nothing that was
// answered about the model's calls holds for a plugin's.
func (g *Gate) remembered(ctx context.Context, s Spec, c Call) []policy.Rule {
	if c.Caller.Plugin != "" {
		return nil
	}
	owner := ownerOf(s)
	var out []policy.Rule
	for _, r := range g.answers(ctx, func(r Rule) bool { return r.Grant == nil && (r.Plugin == "" || r.Plugin == owner) }) {
		if p, err := policy.ParsePattern(r.Pattern); err == nil {
			out = append(out, policy.Rule{Pattern: p, Effect: policy.Allow, Layer: "remembered"})
		}
	}
	return out
}

// ownerOf is the plugin whose tool it is; other names are taken once only.
func ownerOf(s Spec) string {
	if s.Origin.Source == Plugin || s.Origin.Source == Bundled {
		return s.Origin.Name
	}
	return ""
}

// rulesFor turns the patterns that would cover a call into what can be remembered.
func rulesFor(s Spec, patterns []string) []Rule {
	if impostor(s) {
		return nil
	}
	var out []Rule
	for _, p := range patterns[:min(len(patterns), maxRules)] {
		out = append(out, Rule{Pattern: p, Plugin: ownerOf(s)})
	}
	return out
}

// subject is what a rule's argument is about: a command, a URL, a path.
func (g *Gate) subject(s Spec, c Call) policy.Subject {
	var a struct {
		Command any               `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
		Cwd     string            `json:"cwd"`
		Path    any               `json:"path"`
		URL     any               `json:"url"`
	}
	if s.Origin.Source == MCP || s.Origin.Source == Plugin || json.Unmarshal(c.Args, &a) != nil {
		return policy.Subject{}
	}
	if cmd, ok := a.Command.(string); ok && s.Kind == KindExecute {
		for _, arg := range a.Args {
			cmd += " " + quote(arg)
		}
		for _, k := range slices.Backward(slices.Sorted(maps.Keys(a.Env))) {
			cmd = k + "=" + quote(a.Env[k]) + " " + cmd // as a person would write it, and judged as such
		}
		sub := policy.Subject{Text: cmd}
		if restricted, _ := g.Policy.RestrictToWorkspace(); restricted && g.Workspace != "" {
			sub.Root = g.Workspace
			sub.Cwd = g.virtual(a.Cwd, "")
			if rel, inside := strings.CutPrefix(sub.Cwd+"/", policy.Workspace+"/"); inside {
				sub.Cwd = filepath.Join(g.Workspace, filepath.FromSlash(rel))
			}
		}
		return sub
	}
	if url, ok := a.URL.(string); ok {
		return policy.Subject{Text: url}
	}
	if p, ok := a.Path.(string); ok {
		return policy.Subject{Text: g.virtual(p, a.Cwd)}
	}
	return policy.Subject{}
}

// virtual writes a path as rules do: below /ws, whatever way the model wrote it.
func (g *Gate) virtual(p, cwd string) string {
	p, cwd = local(p), local(cwd)
	if !strings.HasPrefix(p, "/") && !filepath.IsAbs(p) {
		p = path.Join(cwd, p)
	}
	if g.Workspace != "" && filepath.IsAbs(p) {
		if rel, err := filepath.Rel(g.Workspace, p); err == nil && filepath.IsLocal(rel) {
			return path.Join(policy.Workspace, filepath.ToSlash(rel))
		}
	}
	if strings.HasPrefix(p, "/") {
		return path.Clean(p)
	}
	return path.Join(policy.Workspace, p)
}

// local takes the path out of a file URI.
func local(p string) string {
	rest, ok := strings.CutPrefix(p, "file://")
	if !ok {
		return p
	}
	if u, err := url.Parse(p); err == nil {
		return u.Path
	}
	return rest
}
