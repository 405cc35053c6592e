package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/internal/fault"
	"github.com/elfhost/elfhost/internal/term"
	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/keep"
	"github.com/elfhost/elfhost/skillhub/sign"
)

// maxScreen is the longest screen that anybody is asked to agree to, in bytes.
const maxScreen = 24 << 10

// Screen is all that a person is told before they agree. The packages' own
// texts are escaped in it. The same package under the same policy gives the
// same text, so that its digest is what scripts accept.
func (c *Candidate) Screen() (string, error) { return c.screen(c.Vouched) }

func (c *Candidate) screen(vouched string) (string, error) {
	var s screen
	if c.Old != nil && c.Old.Digest != c.Pin.Digest {
		s.head("update %s %s → %s", term.Line(c.Manifest.Name), term.Line(c.Change.From), term.Line(c.Change.To))
		for i, l := range c.Change.Lines() {
			s.row(first(i, "changes"), term.Line(l))
		}
	} else {
		s.head("install %s %s", term.Line(c.Manifest.Name), term.Line(c.Manifest.Version))
	}
	if c.Manifest.Description != "" {
		s.row("", term.Line(clip(c.Manifest.Description, 200)))
	}
	c.origin(&s, vouched)
	c.code(&s)
	c.needs(&s)
	c.brings(&s)
	for i, f := range c.Findings {
		s.row(first(i, "unusual"), "! "+term.Line(f.Says)+" ("+term.Line(f.Where)+")")
	}
	for i, n := range append(slices.Clone(c.Notes), c.Left...) {
		s.row(first(i, "left out"), term.Line(n))
	}
	s.row("goes to", "the package store and "+keep.LockName)
	s.row("undo", "elfhost plugin remove "+c.Manifest.Name)
	if s.Len() > maxScreen {
		return "", fault.New("E1320", "", "what %s asks for takes more than %d kB to tell: nobody could read that", c.Manifest.Name, maxScreen>>10)
	}
	return s.String(), nil
}

// Accept is the digest of the screen, which scripts agree with. What a hub says
// of its own metadata is not in it: that changes from day to day.
func (c *Candidate) Accept() (skillhub.Digest, error) {
	text, err := c.screen("")
	return skillhub.DigestOf([]byte(text)), err
}

func (c *Candidate) origin(s *screen, vouched string) {
	from := c.Pin.Source
	if vouched != "" {
		from += " (" + vouched + ")"
	}
	s.row("from", term.Line(from))
	signer := sign.Signer{Publisher: c.Pin.Publisher, Key: c.Pin.Signer}
	publisher := term.Line(c.Pin.Publisher)
	switch {
	case c.Pin.Signer == "" && publisher == "":
		s.row("signed", "by nobody, and it names no publisher")
	case c.Pin.Signer == "":
		s.row("signed", "by nobody; that it is of "+publisher+" is a claim")
	case c.FirstKey:
		s.row("signed", fmt.Sprintf("%s, key %s (%s), seen for the first time: it is pinned for this publisher", publisher, signer.Short(), signer.KeyID()))
	default:
		s.row("signed", fmt.Sprintf("%s, key %s (%s), as before", publisher, signer.Short(), signer.KeyID()))
	}
	s.row("digest", fmt.Sprintf("%s (%s, %d files)", c.Pin.Digest, kilo(c.Pin.Size), len(c.contents.Files)))
}

// code says what the module could do at most, by its imports.
func (c *Candidate) code(s *screen) {
	in := c.Inspection
	if in == nil {
		s.row("code", "none: it is a text for the model")
		return
	}
	kind := "WebAssembly in the sandbox"
	if c.Format != "" {
		kind = "a plugin of another format (" + term.Line(c.Format) + ") in the sandbox"
	}
	var can []string
	for _, x := range in.Capabilities {
		can = append(can, string(x))
	}
	if in.Files {
		can = append(can, "files")
	}
	if len(can) == 0 {
		can = []string{"compute, and nothing else"}
	}
	s.row("code", kind+"; with everything granted it can: "+strings.Join(can, ", "))
}

// needs is what is asked for, why, and what the policy lets anybody give.
func (c *Candidate) needs(s *screen) {
	if len(c.Manifest.Needs) == 0 {
		s.row("asks", "for nothing")
		return
	}
	n := 0
	for _, need := range c.Manifest.Needs {
		for _, g := range eachScope(policy.Grant{Cap: need.Cap, Scope: need.Scope}) {
			s.row(first(n, "asks"), fmt.Sprintf("%d  %s", n+1, term.Line(g.String())))
			n++
		}
		s.row("", "   why: "+orElse(term.Line(need.Reason), "no reason is given"))
		s.row("", "   policy allows: "+term.Line(c.app.Policy.DescribePlugin(need.Cap)))
	}
}

// brings lists the tools, with what telling a model of each costs, and the skill.
func (c *Candidate) brings(s *screen) {
	for i, t := range c.Tools {
		s.row(first(i, "tools"), fmt.Sprintf("%s (about %d tokens)  %s", term.Line(t.Name), tokens(t), term.Line(clip(opening(t.Description), 120))))
	}
	if c.Pin.Skill != "" {
		s.row("skill", term.Line(c.Manifest.Name)+", offered to the model as: "+orElse(term.Line(clip(c.told, 300)), "its first words"))
	}
}

// opening is the first line of a text.
func opening(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// tokens is about what a tool's definition costs in each request: four bytes a
// token, as English and JSON mostly are.
func tokens(t abi.ToolDecl) int {
	b, err := json.Marshal(struct {
		Name, Description string
		Input             json.RawMessage
	}{t.Name, t.Description, t.Input})
	if err != nil {
		return 0
	}
	return (len(b) + 3) / 4
}

// screen is a text of labelled rows.
type screen struct{ strings.Builder }

func (s *screen) head(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

func (s *screen) row(label, text string) { fmt.Fprintf(s, "  %-9s%s\n", label, text) }

func first(i int, label string) string {
	if i > 0 {
		return ""
	}
	return label
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// clip shortens a text to about n bytes, at a rune's boundary.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func kilo(n int64) string {
	if n < 10<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d KB", n>>10)
}
