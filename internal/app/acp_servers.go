package app

import (
	"slices"
	"strings"

	"github.com/elfhost/elfhost/host/acp"
	"github.com/elfhost/elfhost/host/mcp"
)

// editorServers are the MCP servers that the editor brought along. The person
// put them into the editor, so they count like those of the user's
// configuration, which come first where a name is taken. Nothing in them is expanded.
func (a *App) editorServers(have []mcp.Server) []mcp.Server {
	var out []mcp.Server
	for _, s := range a.opt.Servers {
		name := serverName(s.Name)
		same := func(m mcp.Server) bool { return strings.EqualFold(m.Name, name) }
		if slices.ContainsFunc(have, same) || slices.ContainsFunc(out, same) {
			a.note("the MCP server %s of the editor is left out: there is one of that name already", name)
			continue
		}
		m, err := a.editorServer(name, s)
		if err != nil {
			a.note("the MCP server %s of the editor is left out: %v", name, err)
			continue
		}
		out = append(out, m)
	}
	return out
}

func (a *App) editorServer(name string, s acp.Server) (mcp.Server, error) {
	m := mcp.Server{
		Name: name, Command: s.Command, Args: s.Args, Dir: a.Dir, Env: s.Env, URL: s.URL, SSE: s.SSE, Headers: s.Headers, Tokens: a.Secrets.Store,
	}
	for _, v := range s.Headers {
		a.Secrets.Scrub.Add(v)
	}
	for _, kv := range s.Env {
		if k, v, _ := strings.Cut(kv, "="); secretly(k) {
			a.Secrets.Scrub.Add(v)
		}
	}
	return m, a.entitle(&m)
}

// secretly reports a variable whose name says that its value is nobody's business.
func secretly(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CREDENTIAL"}, func(s string) bool { return strings.Contains(name, s) })
}

// serverName makes a name for tools of what an editor shows to people.
func serverName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '_'
	}, s)
	for strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "__", "_")
	}
	if s = strings.Trim(s, "_"); s == "" {
		return "editor"
	}
	return s[:min(len(s), 64)]
}
