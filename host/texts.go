package host

import (
	"fmt"
	"net/netip"
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
	if r.Plugin != "" {
		return fmt.Sprintf("elfhost grant add %s %s", quote(r.Plugin), quote(r.Pattern))
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

// model tells the model of a refusal: what, by whom, and what can change it,
// without the command, which is for a person.
func (d *Denied) model() string {
	what := fmt.Sprintf("The call of %s was not allowed", d.Call.Tool)
	if d.Use != nil {
		what = fmt.Sprintf("Denied: %s", useText(*d.Use))
	}
	by := ""
	if d.Where != "" || d.Layer != "person" && d.Layer != "nobody" && d.Layer != "mode" {
		by = " (" + strings.TrimSuffix(d.Layer+", "+d.Where, ", ") + ")"
	}
	tail := "A person can allow it; do not try to get round it."
	if d.Final {
		tail = "No answer can allow it in this session; find a way without it."
	}
	return fmt.Sprintf("%s%s: %s. %s", what, by, strings.TrimSuffix(d.Why, "."), tail)
}

// asAsked is the use without the address it was resolved to: people are asked
// about names, and one answer holds for both checks of a request.
func asAsked(u policy.Use) policy.Use {
	u.Addr = netip.Addr{}
	return u
}
