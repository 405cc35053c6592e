package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/internal/plugintest"
)

// The key goes to its service, and the guest never has it; SearXNG at a
// private address needs a grant that names it.
func TestInSandbox(t *testing.T) {
	const key = "tvly-very-secret"
	p := plugintest.Load(t, ".")
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "api.tavily.com" || r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": list{{"title": "One", "url": "https://one.test/", "content": "you sent " + r.Header.Get("Authorization")}}})
	}))
	defer srv.Close()
	searx := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply(200, map[string]any{"results": list{{"title": "Two", "url": "https://two.test/"}}})(w, r)
	}))
	defer searx.Close()
	p.Loader.HTTP.TLS = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	p.Loader.HTTP.TLS.ServerName = ""
	p.Loader.HTTP.TLS.InsecureSkipVerify = true
	p.Loader.HTTP.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.215.14")}, nil
	}
	p.Loader.HTTP.Dial = func(ctx context.Context, network, at string) (net.Conn, error) {
		var d net.Dialer
		if strings.HasPrefix(at, "93.") {
			at = srv.Listener.Addr().String()
		}
		return d.DialContext(ctx, network, at)
	}
	if err := p.Loader.HTTP.Secrets.Set("tavily-api-key", key); err != nil {
		t.Fatal(err)
	}
	p.Loader.Env = func(name string) (string, bool) { return searx.URL, name == "SEARXNG_URL" }

	tavily := []string{"net.http https://api.tavily.com/search POST", "secret tavily-api-key@api.tavily.com"}
	r, _, err := p.Call("WebSearch", args{Query: "x"}, tavily...)
	if err != nil || !strings.Contains(r.Text(), "Provider used: Tavily") || !strings.Contains(r.Text(), "https://one.test/") {
		t.Fatalf("%s, %v", r.Text(), err)
	}
	if strings.Contains(r.Text(), key) {
		t.Errorf("the key came back: %s", r.Text())
	}
	env := "env SEARXNG_URL"
	r, _, err = p.Call("WebSearch", args{Query: "x"}, env, "net.http public GET")
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "SearXNG: not allowed by the host") {
		t.Errorf("a private address under a public grant: %s, %v", r.Text(), err)
	}
	r, _, err = p.Call("WebSearch", args{Query: "x"}, env, "net.http "+searx.URL+" GET")
	if err != nil || !strings.Contains(r.Text(), "Provider used: SearXNG") {
		t.Errorf("%s, %v", r.Text(), err)
	}
	r, _, err = p.Call("WebSearch", args{Query: "x"})
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "Web search is unavailable: no service is configured") {
		t.Errorf("%s, %v", r.Text(), err)
	}
}
