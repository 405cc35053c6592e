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
}

// edits are the tools that acceptEdits frees; what they may write is bounded
// by the session's grants as ever.
var edits = map[string]bool{"Write": true, "Edit": true, "WriteFile": true, "EditFile": true}

// inheritable names what a sub-agent gets from its parent, beside every mcp__*.
var inheritable = map[string]bool{"list_skills": true, "read_skill": true, "slash_command": true}

// spawner is the one tool that plan mode offers beside the safe set, for
// children that plan.
const spawner = "spawn_agent"

// Safe reports whether a tool is in the safe set: never asked about.
func Safe(s Spec) bool {
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

// Offers reports whether a registry in mode m shows the tool at all; use it
// with Filter. The gate says the same at each call.
func (m Mode) Offers(s Spec) bool {
	return m != ModePlan || Safe(s) || s.Name == spawner && s.Origin.Source == Builtin
}

// looseness orders the modes; an unknown one is the tightest.
var looseness = map[Mode]int{ModePlan: 0, ModeAsk: 1, ModeAcceptEdits: 2, ModeAuto: 3}

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
