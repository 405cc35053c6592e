package host

import "strings"

// The tables of who is asked and what a child inherits, each once. To change
// one, change it here and in TestTables, and say why in the change: what is in
// the safe set is never asked about.

// safe names the tools that change nothing outside a session, by the sources
// from which the name is trusted. A module or server that calls itself Read
// is not Read.
var safe = map[string]Source{
	"Read": Builtin, "ListDir": Builtin, "Glob": Builtin, "Grep": Builtin,
	"WebSearch": Bundled, "WebFetch": Bundled, "ImageAnalysis": Bundled,
	"list_skills": Builtin, "read_skill": Builtin, "skillhub_search": Builtin,
	"Notify": Builtin, "SessionsYield": Builtin, "SessionsHistory": Builtin, "SessionsList": Builtin,
	"subagent_list": Builtin, "subagent_status": Builtin,
	"ReadFile": Builtin, "search": Builtin, "rg": Builtin, "file_outline": Builtin, "Plan": Builtin,
	// The same under the names of the built-in MCP providers.
	"mcp__search__search": Builtin, "mcp__search__rg": Builtin, "mcp__search__file_outline": Builtin,
	"mcp__skills__list_skills": Builtin, "mcp__skills__read_skill": Builtin,
}

// edits are the tools that acceptEdits frees; what they may write is bounded
// by the session's grants as ever.
var edits = map[string]bool{"Write": true, "Edit": true, "WriteFile": true, "EditFile": true}

// inheritable names what a sub-agent gets from its parent, beside every mcp__*.
var inheritable = map[string]bool{"list_skills": true, "read_skill": true, "slash_command": true}

// reserved are our other tools whose names rules are written for.
var reserved = map[string]bool{"Bash": true, "Shell": true, "Subagent": true, spawner: true,
	"SessionsSpawn": true, "SessionsSend": true, "skillhub_install": true}

// deferring names the tools which, without a person's answer, prepare what they
// are about and leave it unused until a person agrees by a command. Where nobody
// is there to ask they are called for that.
var deferring = map[string]Source{"skillhub_install": Builtin}

// Reserved reports whether a name means one of our own tools, or one of an MCP
// server's: a package's tool is not registered under it.
func Reserved(name string) bool {
	_, known := safe[name]
	return known || edits[name] || inheritable[name] || reserved[name] || strings.HasPrefix(name, "mcp__")
}

// ReservedPackage reports whether a package of this name would be called like one
// of our own tools, in whatever case: nobody could tell them apart.
func ReservedPackage(name string) bool {
	like := func(own string) bool { return strings.EqualFold(own, name) }
	for own := range safe {
		if like(own) {
			return true
		}
	}
	for _, set := range []map[string]bool{edits, inheritable, reserved} {
		for own := range set {
			if like(own) {
				return true
			}
		}
	}
	return false
}

// spawner is the one tool that plan mode offers beside the safe set, for
// children that plan.
const spawner = "spawn_agent"

// Safe reports whether a tool is in the safe set: never asked about.
func (s Spec) Safe() bool {
	src, ok := safe[s.Name]
	return ok && src == s.Origin.Source
}

// Inheritable reports whether a sub-agent gets the tool from its parent.
func Inheritable(s Spec) bool {
	if s.Origin.Source == MCP {
		return strings.HasPrefix(s.Name, "mcp__")
	}
	return s.Origin.Source == Builtin && (inheritable[s.Name] || strings.HasPrefix(s.Name, "mcp__"))
}

// impostor reports whether a tool carries a name that means another's: of our
// own tools, or of an MCP server's. Rules that name tools do not allow it.
func impostor(s Spec) bool {
	switch s.Origin.Source {
	case Builtin:
		return false
	case MCP:
		return !strings.HasPrefix(s.Name, "mcp__")
	}
	if strings.HasPrefix(s.Name, "mcp__") || edits[s.Name] || inheritable[s.Name] || reserved[s.Name] {
		return true
	}
	src, known := safe[s.Name]
	return known && src != s.Origin.Source
}

// Offers reports whether a registry in mode m shows the tool at all; use it
// with Filter. The gate says the same at each call.
func (m Mode) Offers(s Spec) bool {
	return m != ModePlan || s.Safe() || s.Name == spawner && s.Origin.Source == Builtin
}

// looseness orders the modes; an unknown one is the tightest.
var looseness = map[Mode]int{ModePlan: 0, ModeAsk: 1, ModeAcceptEdits: 2, ModeAuto: 3}

// tighter is the mode to fall back to where one is forbidden.
var tighter = map[Mode]Mode{ModeAuto: ModeAcceptEdits, ModeAcceptEdits: ModeAsk, ModeAsk: ModePlan}

// Narrower returns the tighter of two modes; an empty one leaves the other.
func (m Mode) Narrower(o Mode) Mode {
	switch {
	case m == "":
		return o
	case o == "" || looseness[m] < looseness[o]:
		return m
	}
	return o
}
