package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/server"
)

// addressed refuses what a web page could send: another name for this address
// (DNS rebinding), or a page's origin.
func (g *guard) addressed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.named(r.Host) {
			g.refuse(w, http.StatusForbidden, "this server is not known under that name")
			return
		}
		if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !g.page(origins[0]) {
			g.refuse(w, http.StatusForbidden, "web pages may not speak to this server")
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && crossOrigin(w, r, origin) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// crossOrigin lets the browser give answers to a page that may have them, and
// answers its question of what the page may send (the Fetch standard's CORS).
// It brings no token; the request that follows does.
func crossOrigin(w http.ResponseWriter, r *http.Request, origin string) (answered bool) {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", server.HeaderKeySessionID+", WWW-Authenticate, Retry-After")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if want := r.Header.Values("Access-Control-Request-Headers"); len(want) > 0 {
		h.Set("Access-Control-Allow-Headers", strings.Join(want, ", "))
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// page allows the origins that were named, and pages of this machine, which
// need the token as everybody does.
func (g *guard) page(origin string) bool {
	if slices.Contains(g.o.Origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && loopback(u.Hostname())
}

func (g *guard) named(hostport string) bool {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return loopback(name) || slices.ContainsFunc(g.o.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// Loopback reports whether an address to listen on is reached from this machine
// alone.
func Loopback(hostport string) bool {
	name, _, err := net.SplitHostPort(hostport)
	return err == nil && loopback(name)
}

func loopback(name string) bool {
	a, err := netip.ParseAddr(name)
	return strings.EqualFold(name, "localhost") || err == nil && a.IsLoopback()
}
