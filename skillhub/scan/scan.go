// Package scan lists what is unusual in a package, for the screen on which a
// person decides: what it asks for together, texts that speak to the model
// rather than to people, characters that nobody sees, downloads that are run.
//
// It finds what is common, not what is clever. Nothing depends on it: no text
// gives a right, and a package without findings is not a safe one.
package scan

import (
	"cmp"
	"slices"

	"github.com/elfhost/elfhost/abi"
)

// Limits of one scan. What is past them is told as a finding.
const (
	MaxText     = 1 << 20 // bytes of one text
	MaxAll      = 8 << 20 // bytes of all texts
	MaxFindings = 64
)

// Level is how much a finding weighs.
type Level int

// The levels, the heaviest first.
const (
	Alarm Level = iota // made to deceive, or made to harm; hardly ever seen in an honest package
	Look               // a person should look at it before they agree
)

func (l Level) String() string {
	if l == Alarm {
		return "alarm"
	}
	return "look"
}

// MarshalText writes the level's word.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// Finding is one unusual thing.
type Finding struct {
	Rule  string `json:"rule"`  // a stable name: "files-and-network", "hidden-tags"
	Level Level  `json:"level"` // see there
	Where string `json:"where"` // "needs", "tool fetch", "SKILL.md:12"
	Says  string `json:"says"`  // one clause, without hidden characters; quotes at most 80 of the package's own
}

// Text is a text of a package that a model or a person may read.
type Text struct {
	Name string // "SKILL.md"
	Body string
}

// Input is what is scanned. Every part may be absent.
type Input struct {
	Manifest abi.Manifest
	Tools    []abi.ToolDecl // as the module or the manifest declares them
	Texts    []Text         // Folder reads those of a package
	// Allowed are the allowed-tools of its SKILL.md, where somebody has read them
	// already. Nil: they are looked for in the text.
	Allowed []string
}

// Package scans all that a package brings. Findings come with the heaviest
// first, each rule once for each place, MaxFindings at the most.
func Package(in Input) []Finding {
	var c collector
	c.needs(in.Manifest.Needs)
	c.prose("elf.toml", in.Manifest.Description, false)
	for _, n := range in.Manifest.Needs {
		c.prose("the reason for "+string(n.Cap), n.Reason, false)
	}
	for _, t := range in.Tools {
		c.tool(t)
	}
	if in.Allowed == nil {
		for _, t := range in.Texts {
			if t.Name == "SKILL.md" {
				in.Allowed = append(in.Allowed, allowedIn(t.Body)...)
			}
		}
	}
	c.allowed(in.Allowed)
	left := MaxAll
	for _, t := range in.Texts {
		if len(t.Body) > MaxText || len(t.Body) > left {
			c.add("unread", Look, t.Name, "it is too long to be looked through")
			continue
		}
		left -= len(t.Body)
		c.text(t)
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int { return cmp.Compare(a.Level, b.Level) })
	return c.found
}

// Skill scans the text of one SKILL.md and what it names as allowed tools.
func Skill(body string, allowed []string) []Finding {
	return Package(Input{Texts: []Text{{"SKILL.md", body}}, Allowed: allowed})
}

type collector struct{ found []Finding }

func (c *collector) add(rule string, level Level, where, says string) {
	if len(c.found) < MaxFindings {
		c.found = append(c.found, Finding{rule, level, line(where, 120), says})
	}
}
