package host

import (
	"encoding/json"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// effect is what a policy says about a call.
type effect int

const (
	silent effect = iota
	allows
	asks
	forbids
)

// ruling is the word of a policy about a call.
type ruling struct {
	effect                  effect
	layer, rule, where, why string
}

func ceiling(p *policy.Policy, s Spec, c Call) ruling { return ruling{} }

func autoForbidden(p *policy.Policy) (string, bool) { return "", false }

// limits meets what was given with the policy.
func limits(p *policy.Policy, g policy.Grants) policy.Grants { return g }

func risks(s Spec, c Call) []string { return nil }

// covered finds a rule that covers the call.
func covered(rules []Rule, s Spec, c Call) (string, bool) {
	for _, r := range rules {
		if matches(r.Pattern, s, c) {
			return r.Pattern, true
		}
	}
	return "", false
}

func matches(pattern string, s Spec, c Call) bool {
	name, arg, has := strings.Cut(strings.TrimSuffix(pattern, ")"), "(")
	if !has {
		prefix, star := strings.CutSuffix(name, "*")
		return name == s.Name || star && strings.HasPrefix(prefix, "mcp__") && strings.HasPrefix(s.Name, prefix)
	}
	return name == s.Name && arg == argument(c)
}

// argument is the part of a call that a pattern is about.
func argument(c Call) string {
	var a struct{ Command, Path string }
	if json.Unmarshal(c.Args, &a) != nil {
		return ""
	}
	return a.Command + a.Path
}

// suggest offers what could be remembered of a call, narrowest first.
func suggest(s Spec, c Call) []Rule {
	pattern := s.Name
	if arg := argument(c); arg != "" {
		pattern += "(" + arg + ")"
	}
	return []Rule{{Pattern: pattern, Plugin: c.Caller.Plugin}}
}

// covers reports whether one grant allows a use.
func covers(g policy.Grant, u policy.Use) bool { return false }

// granted lists the scopes of a capability.
func scopes(g policy.Grants, c abi.Capability) []string { return nil }
