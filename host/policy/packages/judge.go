package packages

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Judge asks every layer about a package. Each layer only narrows: one refusal
// of any is enough, and a list of what is allowed binds whoever else says.
func Judge(layers []Rules, f Facts) Ruling {
	var out []Finding
	for i := range layers {
		out = append(out, layers[i].judge(&f)...)
	}
	rank := map[Effect]int{Deny: 0, Open: 1, Allow: 2}
	slices.SortStableFunc(out, func(a, b Finding) int { return rank[a.Effect] - rank[b.Effect] })
	return Ruling{out}
}

func (l *Rules) judge(f *Facts) (out []Finding) {
	say := func(e Effect, where, format string, args ...any) {
		out = append(out, Finding{e, l.Layer, where, fmt.Sprintf(format, args...)})
	}
	for _, k := range []Kind{Name, Publisher, Key, Hub} {
		l.list(k, f, say)
	}
	switch {
	case l.Least == Unsigned:
	case f.Key == "" && f.Partial:
		say(Open, l.Where, "a package has to be signed; whether this one is, is not known")
	case f.Key == "":
		say(Deny, l.Where, "a package has to be signed, and this one is not")
	case l.Least == Pinned && !f.Pinned && !l.namesKey(f):
		say(Deny, l.Where, "a package has to be signed by a key that was known before, and nobody pinned %s", f.Key)
	}
	for _, a := range l.Apart {
		if holdsAll(f.Needs, a.Caps) {
			say(Deny, a.Where, "no one package may ask for %s together", and(a.Caps))
		}
	}
	return out
}

// list applies the rules of one kind.
func (l *Rules) list(k Kind, f *Facts, say func(Effect, string, string, ...any)) {
	var first, hit, open *Rule // of what is allowed
	for i := range l.Rules {
		r := &l.Rules[i]
		switch {
		case r.Kind != k:
		case r.unknown(f) && r.Deny:
			say(Open, r.Where, "%s is denied; whether this package is, cannot be said without its %s", r.text, r.wants())
		case r.Deny && r.hits(f):
			say(Deny, r.Where, "the rule %q denies %s", r.text, r.shown(f))
		case r.Deny:
		default:
			if first == nil {
				first = r
			}
			if r.unknown(f) {
				open = r
			} else if hit == nil && r.hits(f) {
				hit = r
			}
		}
	}
	switch {
	case first == nil:
	case hit != nil:
		say(Allow, hit.Where, "the rule %q allows %s", hit.text, hit.shown(f))
	case open != nil:
		say(Open, open.Where, "only some packages are allowed; whether this one is, cannot be said without its %s", open.wants())
	case k == Publisher && f.Key == "" && f.Publisher != "":
		say(Deny, first.Where, "only some publishers are allowed, and that this package is %s's is a claim: it is not signed", f.Publisher)
	default:
		say(Deny, first.Where, "%s is not among what is allowed", first.shown(f))
	}
}

// namesKey reports whether a list of this layer allows the package's key.
func (l *Rules) namesKey(f *Facts) bool {
	return slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Kind == Key && !r.Deny && r.hits(f) })
}

// shown is the fact that a rule of this kind is about.
func (r *Rule) shown(f *Facts) string {
	named := func(what, s string) string {
		if s == "" {
			return "a package without a " + what
		}
		return "the " + what + " " + s
	}
	switch r.Kind {
	case Publisher:
		return named("publisher", f.Publisher)
	case Key:
		return named("key", f.Key)
	case Hub:
		return named("source", f.Hub)
	}
	if r.digest != "" && r.Deny {
		return "the package " + f.Digest
	}
	return strings.TrimSpace("the package " + f.Name + " " + f.Version)
}

// wants names the fact that a rule of this kind asks for.
func (r *Rule) wants() string {
	switch {
	case r.Kind == Publisher:
		return "publisher and its signature"
	case r.Kind == Key:
		return "signature"
	case r.Kind == Hub:
		return "source"
	case r.digest != "":
		return "digest"
	}
	return "name and version"
}

func holdsAll(needs []abi.Need, caps []abi.Capability) bool {
	for _, c := range caps {
		if !slices.ContainsFunc(needs, func(n abi.Need) bool { return n.Cap == c }) {
			return false
		}
	}
	return len(caps) > 0
}

func and(caps []abi.Capability) string {
	words := make([]string, len(caps))
	for i, c := range caps {
		words[i] = string(c)
	}
	return strings.Join(words, " and ")
}
