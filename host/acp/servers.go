package acp

import (
	"strings"

	sdk "github.com/coder/acp-go-sdk"
)

// maxServers is how many MCP servers a client may bring along.
const maxServers = 64

// serversOf reads the MCP servers that a client wants its session to have.
func serversOf(list []sdk.McpServer) ([]Server, error) {
	if len(list) > maxServers {
		return nil, invalid("a session has %d MCP servers at the most", maxServers)
	}
	var out []Server
	for _, m := range list {
		s := Server{Headers: map[string]string{}}
		var headers []sdk.HttpHeader
		switch {
		case m.Stdio != nil:
			s.Name, s.Command, s.Args = m.Stdio.Name, m.Stdio.Command, m.Stdio.Args
			for _, e := range m.Stdio.Env {
				if e.Name == "" || strings.ContainsAny(e.Name, "=\x00") || strings.Contains(e.Value, "\x00") {
					return nil, invalid("%q is no name for a variable of the MCP server %q", clip(e.Name, 60), clip(s.Name, 60))
				}
				s.Env = append(s.Env, e.Name+"="+e.Value)
			}
		case m.Http != nil:
			s.Name, s.URL, headers = m.Http.Name, m.Http.Url, m.Http.Headers
		case m.Sse != nil:
			s.Name, s.URL, s.SSE, headers = m.Sse.Name, m.Sse.Url, true, m.Sse.Headers
		default:
			return nil, invalid("MCP servers are reached over stdio, http or sse")
		}
		for _, h := range headers {
			s.Headers[h.Name] = h.Value
		}
		out = append(out, s)
	}
	return out, nil
}
