package app

import (
	"slices"
	"unicode/utf8"
)

// What one server may say to the person in a session without being asked.
const (
	maxHeard     = 5
	maxHeardText = 400 // bytes
)

// grave are the levels of the protocol that a person is told of.
var grave = []string{"warning", "error", "critical", "alert", "emergency"}

// heard passes on what an MCP server logs, or does wrong. It comes from
// strangers: whoever shows it escapes it.
func (a *App) heard(server, level, text string) {
	text = a.Secrets.Scrub.String(text)
	switch {
	case a.opt.Heard != nil:
		a.opt.Heard(server, level, text)
	case a.opt.Log != nil:
		a.opt.Log.Debug(text, "mcp", server, "level", level)
	}
	if !slices.Contains(grave, level) {
		return
	}
	a.mu.Lock()
	if a.mcpHeard == nil {
		a.mcpHeard = map[string]int{}
	}
	a.mcpHeard[server]++
	n := a.mcpHeard[server]
	a.mu.Unlock()
	switch {
	case n < maxHeard:
		if len(text) > maxHeardText {
			end := maxHeardText
			for end > 0 && !utf8.RuneStart(text[end]) {
				end--
			}
			text = text[:end] + "…"
		}
		a.note("the MCP server %s, %s: %s", server, level, text)
	case n == maxHeard:
		a.note("the MCP server %s says more; `elfhost mcp test %s --verbose` shows what it says", server, server)
	}
}
