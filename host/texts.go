package host

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/policy"
)

// subject is under whose name grants for a tool are kept.
func subject(s Spec) string {
	if s.Origin.Name != "" {
		return s.Origin.Name
	}
	return s.Name
}

func useText(u policy.Use) string {
	target := strings.ReplaceAll(u.Target, "\x00", " ")
	return strings.Join(strings.Fields(string(u.Cap)+" "+u.Verb+" "+target), " ")
}

// command is what a person types to allow a rule.
func command(r Rule) string {
	if r.Grant != nil {
		return fmt.Sprintf("elfhost grant add %s %s", quote(r.Plugin), quote(r.Grant.String()))
	}
	return "elfhost grant add " + quote(r.Pattern)
}

// quote writes a word for a POSIX shell.
func quote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@,+=", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// asAsked is the use without the address it was resolved to: people are asked
// about names, and one answer holds for both checks of a request.
func asAsked(u policy.Use) policy.Use {
	u.Addr = netip.Addr{}
	return u
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
