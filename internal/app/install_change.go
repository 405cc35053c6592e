package app

import (
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/scan"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// Change is how one version of a package differs from another.
type Change struct {
	From, To string   // versions
	Asks     []string // what only the new one asks for: "net.http https://a.test GET"
	Drops    []string // what it does not ask for any more
	Tools    []string // "+name", "-name", "~name" where texts or schemas changed
	Text     bool     // SKILL.md changed
	Signer   string   // "RWQ…a → RWQ…b"; "" is the same
	Unusual  []string // what is unusual about the new one alone
}

// Grew reports whether a person has to agree anew (HUB-08, HUB-09): it asks for
// more, tells the model something else, is another's, or became unusual.
func (c Change) Grew() bool {
	return len(c.Asks) > 0 || len(c.Tools) > 0 || c.Signer != "" || len(c.Unusual) > 0
}

// Lines are the difference in at most one line each of what it asks, what it
// tells the model, and whose it is.
func (c Change) Lines() (out []string) {
	var asks []string
	for _, a := range c.Asks {
		asks = append(asks, "+ "+a)
	}
	for _, d := range c.Drops {
		asks = append(asks, "- "+d)
	}
	add := func(label string, parts []string, none string) {
		text := none
		if len(parts) > 0 {
			text = strings.Join(parts, ", ")
		}
		out = append(out, label+text)
	}
	add("asks    ", asks, "as before")
	tools := slices.Clone(c.Tools)
	if c.Text {
		tools = append(tools, "~SKILL.md")
	}
	for _, u := range c.Unusual {
		tools = append(tools, "! "+u)
	}
	add("texts   ", tools, "as before")
	if c.Signer == "" {
		out = append(out, "signer  as before")
	} else {
		out = append(out, "signer  "+c.Signer)
	}
	return out
}

func changeOf(a keep.Pin, was keep.Pinned, b keep.Pin, is keep.Pinned) Change {
	c := Change{From: a.Version, To: b.Version, Text: a.Skill != b.Skill}
	old, now := needTexts(was.Manifest.Needs), needTexts(is.Manifest.Needs)
	for _, n := range now {
		if !slices.Contains(old, n) {
			c.Asks = append(c.Asks, n)
		}
	}
	for _, n := range old {
		if !slices.Contains(now, n) {
			c.Drops = append(c.Drops, n)
		}
	}
	c.Tools = toolChanges(was.Tools, is.Tools)
	if a.Signer != b.Signer {
		short := func(k string) string {
			if k == "" {
				return "nobody"
			}
			return sign.Signer{Key: k}.Short()
		}
		c.Signer = short(a.Signer) + " → " + short(b.Signer)
	}
	return c
}

func needTexts(needs []abi.Need) (out []string) {
	for _, n := range needs {
		for _, g := range eachScope(policy.Grant{Cap: n.Cap, Scope: n.Scope}) {
			out = append(out, g.String())
		}
	}
	return out
}

func toolChanges(was, is []abi.ToolDecl) (out []string) {
	find := func(in []abi.ToolDecl, name string) *abi.ToolDecl {
		i := slices.IndexFunc(in, func(t abi.ToolDecl) bool { return t.Name == name })
		if i < 0 {
			return nil
		}
		return &in[i]
	}
	for _, t := range is {
		o := find(was, t.Name)
		if o == nil {
			out = append(out, "+"+t.Name)
			continue
		}
		x, _ := skillhub.ToolsDigest([]abi.ToolDecl{*o}) // both came from JSON
		if y, _ := skillhub.ToolsDigest([]abi.ToolDecl{t}); x != y {
			out = append(out, "~"+t.Name)
		}
	}
	for _, t := range was {
		if find(is, t.Name) == nil {
			out = append(out, "-"+t.Name)
		}
	}
	return out
}

// storedTexts are the texts of an installed version; what cannot be read is
// not there.
func (a *App) storedTexts(p keep.Pin) []scan.Text {
	texts, _, err := textsOf(a.installs.store.FS(p.Digest))
	if err != nil {
		return nil
	}
	return texts
}
