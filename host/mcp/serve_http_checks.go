package mcp

import (
	"bytes"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// sessioned reports whether a request shows a session, begins one, or is of a
// version that has none; or answers that it has to (the transport of 2025-11-25).
func (g *guard) sessioned(w http.ResponseWriter, r *http.Request, m message) bool {
	if r.Header.Get(server.HeaderKeySessionID) != "" || m.method == string(mcp.MethodInitialize) || ofToday(r, m) {
		return true
	}
	g.refuse(w, http.StatusBadRequest, "a session is missing: initialize first, and send the "+server.HeaderKeySessionID+" that it gives")
	return false
}

// ofToday reports a request of 2026-07-28 or later, or one that says wrongly that
// it is: mcp-go knows what to answer.
func ofToday(r *http.Request, m message) bool {
	return mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) || bytes.Contains(m.params, []byte(mcp.MetaKeyProtocolVersion))
}

// accepted reports whether a client takes an answer of one of the types, or
// answers that there is none that it takes. One that says nothing takes all.
func (g *guard) accepted(w http.ResponseWriter, r *http.Request, types ...string) bool {
	all := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(all) == "" {
		return true
	}
	for part := range strings.SplitSeq(all, ",") {
		kind, with, err := mime.ParseMediaType(part)
		if err != nil || with["q"] == "0" {
			continue
		}
		if slices.ContainsFunc(types, func(t string) bool {
			group, _, _ := strings.Cut(t, "/")
			return kind == t || kind == group+"/*" || kind == "*/*"
		}) {
			return true
		}
	}
	g.refuse(w, http.StatusNotAcceptable, "the answer is "+strings.Join(types, " or ")+", which the header Accept leaves out")
	return false
}
