package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach/secret"
)

// guarded is an MCP server that wants a token, and an authorization server on
// another port that gives one.
type guarded struct {
	api, auth *httptest.Server

	mu       sync.Mutex
	valid    string            // the token that is taken
	refresh  string            // what renews it, once
	forms    []url.Values      // that came to the token endpoint
	asked    []url.Values      // that came to the authorization endpoint
	registry []map[string]any  // registrations
	as       map[string]any    // metadata; nil members are left out
	prm      map[string]any    // of the server
	header   string            // its challenge; "": that of its metadata
	reply    map[string]any    // of the token endpoint, over the usual
	back     map[string]string // what the browser brings, over the usual
	leaked   atomic.Int64      // requests that came where none should
	n        int
}

func newGuarded(t *testing.T) *guarded {
	g := &guarded{}
	api, auth := http.NewServeMux(), http.NewServeMux()
	g.api, g.auth = httptest.NewServer(api), httptest.NewServer(auth)
	t.Cleanup(g.api.Close)
	t.Cleanup(g.auth.Close)
	g.prm = map[string]any{"resource": g.api.URL + "/mcp", "authorization_servers": []string{g.auth.URL}, "scopes_supported": []string{"read", "write"}}
	g.as = map[string]any{
		"issuer": g.auth.URL, "authorization_endpoint": g.auth.URL + "/authorize?tenant=t", "token_endpoint": g.auth.URL + "/token",
		"registration_endpoint": g.auth.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
	}
	put := func(m *http.ServeMux, at string, v func() any) {
		m.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(v()) })
	}
	put(api, "/.well-known/oauth-protected-resource/mcp", func() any { return g.prm })
	put(auth, "/.well-known/oauth-authorization-server", func() any { return g.as })
	auth.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var m map[string]any
		_ = json.NewDecoder(r.Body).Decode(&m)
		g.registry = append(g.registry, m)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"client_id":"c1"}`))
	})
	auth.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		g.asked = append(g.asked, q)
		back := url.Values{"code": {"k1"}, "state": {q.Get("state")}}
		for k, v := range g.back {
			back.Set(k, v)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	})
	auth.HandleFunc("/token", g.token)
	auth.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { g.leaked.Add(1) })
	api.HandleFunc("/mcp", g.serve)
	return g
}

func (g *guarded) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = r.ParseForm()
	if u, p, ok := r.BasicAuth(); ok {
		r.PostForm.Set("basic", u+":"+p)
	}
	g.forms = append(g.forms, r.PostForm)
	if r.PostForm.Get("grant_type") == "refresh_token" && r.PostForm.Get("refresh_token") != g.refresh {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"used \u001b[31malready"}`))
		return
	}
	g.n++
	g.valid, g.refresh = fmt.Sprintf("access-%d", g.n), fmt.Sprintf("renew-%d", g.n)
	out := map[string]any{"access_token": g.valid, "refresh_token": g.refresh, "token_type": "Bearer", "expires_in": 3600}
	for k, v := range g.reply {
		out[k] = v
	}
	if to, ok := out["redirect"].(string); ok {
		http.Redirect(w, r, to, http.StatusTemporaryRedirect)
		return
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (g *guarded) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	ok := g.valid != "" && r.Header.Get("Authorization") == "Bearer "+g.valid
	g.mu.Unlock()
	if !ok {
		h := g.header
		if h == "" {
			h = `Basic realm="x", Bearer error="invalid_token", resource_metadata="` + g.api.URL + `/.well-known/oauth-protected-resource/mcp"`
		}
		w.Header().Set("WWW-Authenticate", h)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var q fakeRequest
	_ = json.NewDecoder(r.Body).Decode(&q)
	w.Header().Set("Content-Type", "application/json")
	result := map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"g","version":"1"}}`,
		"tools/list": `{"tools":[` + fakeTool("echo") + `]}`, "tools/call": `{"content":[{"type":"text","text":"in"}]}`,
	}[q.Method]
	switch {
	case len(q.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
	case result == "":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, q.ID)
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
	}
}

// server is the configured one. Its rights reach the MCP server and nothing else.
func (g *guarded) server(t *testing.T, hidden *[]string) Server {
	s := Server{Name: "g", URL: g.api.URL + "/mcp", Tokens: &memory{m: map[string]string{}}, Hide: func(v string) { *hidden = append(*hidden, v) }}
	rights := func(at string) policy.Rights {
		grant, ok := (Server{URL: at}).Grant()
		grants, err := policy.New("test", grant)
		if !ok || err != nil {
			t.Fatal(at, err)
		}
		return policy.Rights{Grants: grants}
	}
	s.Rights, s.Renew = rights(s.URL), rights
	return s
}

func (g *guarded) web() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// browser logs in as one whose person says yes.
func (g *guarded) browser(l *Login) (url.Values, error) {
	resp, err := g.web().Get(l.URL)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	to, err := url.Parse(resp.Header.Get("Location"))
	return to.Query(), err
}

func (g *guarded) login(s Server, o LoginOptions) error {
	if o.Redirect == "" {
		o.Redirect = "http://127.0.0.1:45678/callback"
	}
	l, err := s.Login(context.Background(), g.web(), o)
	if err != nil {
		return err
	}
	back, err := g.browser(l)
	if err != nil {
		return err
	}
	return l.Finish(context.Background(), back)
}

func TestLogin(t *testing.T) {
	g := newGuarded(t)
	var hidden []string
	s := g.server(t, &hidden)
	r := newRig(t, Options{})
	r.add(t, s)
	if err := r.Connect(context.Background(), "g"); err == nil || !strings.Contains(err.Error(), "elfhost mcp login g") || strings.Contains(err.Error(), "http://") {
		t.Fatalf("before: %v", err)
	}
	if err := g.login(s, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	q, form := g.asked[0], g.forms[0]
	for k, want := range map[string]string{"tenant": "t", "response_type": "code", "client_id": "c1", "code_challenge_method": "S256", "scope": "read write", "resource": s.URL} {
		if q.Get(k) != want || len(q[k]) != 1 {
			t.Errorf("the browser is sent with %s=%q", k, q[k])
		}
	}
	if form.Get("resource") != s.URL || len(form.Get("code_verifier")) < 43 || form.Get("code_verifier") == q.Get("code_challenge") || len(q.Get("state")) < 20 || form.Get("client_id") != "c1" {
		t.Errorf("%v", form)
	}
	if reg := g.registry[0]; fmt.Sprint(reg["redirect_uris"]) != "[http://127.0.0.1:45678/callback]" || reg["application_type"] != "native" {
		t.Errorf("%v", reg)
	}
	again := newRig(t, Options{})
	again.add(t, s)
	again.connect(t, "g")
	if got := again.do(t, "mcp__g__echo", `{}`); got != "in" {
		t.Fatal(got)
	}
	if all := strings.Join(hidden, " "); !strings.Contains(all, "access-1") || !strings.Contains(all, "renew-1") {
		t.Errorf("logs may hold the tokens: %q", all)
	}
	// A token goes to no other address of that name.
	o := s
	o.URL = s.URL + "2"
	if _, err := loadLogin(o); err == nil {
		t.Error("another server gets the token")
	}
	if was, err := Logout(s.Tokens, "g"); !was || err != nil {
		t.Errorf("%v %v", was, err)
	}
	if was, err := Logout(s.Tokens, "g"); was || err != nil {
		t.Errorf("%v %v", was, err)
	}
}

// Tokens are renewed, once for all who need one, at the endpoint that gave them,
// which is on another host than the server.
func TestLoginRenewed(t *testing.T) {
	g := newGuarded(t)
	s := g.server(t, new([]string))
	g.reply = map[string]any{"expires_in": "5"} // within the leeway
	if err := g.login(s, LoginOptions{}); err != nil {
		t.Fatal(err)
	}
	g.reply = nil
	// The server names another authorization server later.
	g.prm["authorization_servers"] = []string{g.auth.URL + "/elsewhere"}
	r := newRig(t, Options{})
	r.add(t, s)
	r.connect(t, "g")
	if len(g.forms) != 2 || g.forms[1].Get("refresh_token") != "renew-1" || g.forms[1].Get("resource") != s.URL {
		t.Fatalf("%v", g.forms)
	}
	// Taken back before its time: eight calls, one renewal.
	g.mu.Lock()
	g.valid = "none"
	g.mu.Unlock()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if res := r.call(context.Background(), "mcp__g__echo", `{}`); res.IsError {
				t.Error(res.Text())
			}
		})
	}
	wg.Wait()
	if len(g.forms) != 3 {
		t.Errorf("%d times at the token endpoint", len(g.forms))
	}
	// It cannot be renewed any more.
	g.mu.Lock()
	g.valid, g.refresh = "none", "none"
	g.mu.Unlock()
	res := r.call(context.Background(), "mcp__g__echo", `{}`)
	if !res.IsError || !strings.Contains(res.Text(), "elfhost mcp login g") || !strings.Contains(res.Text(), "invalid_grant") || strings.Contains(res.Text(), "\x1b") || strings.Contains(res.Text(), "renew-") {
		t.Errorf("%q", res.Text())
	}
	if g.leaked.Load() != 0 {
		t.Error("tokens went elsewhere")
	}
	// Another process was faster.
	l, _ := r.link("g")
	have, _ := loadLogin(s)
	have.Token.Until = time.Now().Add(-time.Hour)
	_ = have.save(s)
	s.Tokens.(*memory).once = func() {
		have.Token = token{Access: "theirs", Until: time.Now().Add(time.Hour)}
		_ = have.save(s)
	}
	if got, err := l.token(context.Background(), ""); got != "theirs" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

func TestLoginByHand(t *testing.T) {
	g := newGuarded(t)
	s := g.server(t, new([]string))
	delete(g.as, "registration_endpoint")
	if err := g.login(s, LoginOptions{}); err == nil || !strings.Contains(err.Error(), "--client-id") {
		t.Errorf("%v", err)
	}
	if err := g.login(s, LoginOptions{ClientID: "mine", ClientSecret: "a b", Scopes: []string{"one"}}); err != nil {
		t.Fatal(err)
	}
	if f := g.forms[0]; f.Get("client_id") != "mine" || f.Get("client_secret") != "a b" || g.asked[0].Get("scope") != "one" {
		t.Errorf("%v", f)
	}
	g.as["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
	if err := g.login(s, LoginOptions{ClientID: "mine", ClientSecret: "a b"}); err != nil {
		t.Fatal(err)
	}
	if f := g.forms[1]; f.Has("client_secret") || f.Get("basic") != "mine:a+b" {
		t.Errorf("%v", f)
	}
}

// Servers before 2025-06-18 have no metadata of their own.
func TestLoginLegacy(t *testing.T) {
	g := newGuarded(t)
	s := g.server(t, new([]string))
	g.header = "Bearer"
	s.URL = g.api.URL + "/sse"
	f, err := find(context.Background(), g.web(), s, nil)
	if err != nil || f.Token != g.api.URL+"/token" || f.resource != s.URL || f.Issuer != g.api.URL {
		t.Errorf("%+v, %v", f, err)
	}
	g.api.Close()
	if _, err := find(context.Background(), g.web(), s, nil); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("of a server that is not there: %v", err)
	}
}

func TestHostileAuthorization(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*guarded)
		want string
	}{
		"metadata at another host":     {func(g *guarded) { g.header = `Bearer resource_metadata="` + g.auth.URL + `/elsewhere"` }, "at another host"},
		"metadata about another":       {func(g *guarded) { g.prm["resource"] = "https://victim.test/mcp" }, `about "https://victim.test/mcp"`},
		"metadata about a neighbour":   {func(g *guarded) { g.prm["resource"] = g.api.URL + "/mc" }, "not about it"},
		"metadata about nothing":       {func(g *guarded) { delete(g.prm, "resource") }, "not about it"},
		"no authorization server":      {func(g *guarded) { delete(g.prm, "authorization_servers") }, "no authorization server"},
		"another issuer":               {func(g *guarded) { g.as["issuer"] = "https://bank.test" }, `about "https://bank.test"`},
		"no PKCE":                      {func(g *guarded) { delete(g.as, "code_challenge_methods_supported") }, "ask whoever runs it to announce S256, or send a token"},
		"plain PKCE":                   {func(g *guarded) { g.as["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE"},
		"a script as page":             {func(g *guarded) { g.as["authorization_endpoint"] = "javascript:alert(1)" }, "no address"},
		"a file as page":               {func(g *guarded) { g.as["authorization_endpoint"] = "file:///etc/passwd" }, "no address"},
		"a person in the page":         {func(g *guarded) { g.as["authorization_endpoint"] = "https://a:b@bank.test/" }, "no address"},
		"tokens in the open":           {func(g *guarded) { g.as["token_endpoint"] = "http://evil.test/token" }, "not protected by TLS"},
		"registration in the open":     {func(g *guarded) { g.as["registration_endpoint"] = "http://evil.test/r" }, "not protected by TLS"},
		"a redirect of the code":       {func(g *guarded) { g.reply = map[string]any{"redirect": g.auth.URL + "/elsewhere"} }, "status 307"},
		"a token with a line break":    {func(g *guarded) { g.reply = map[string]any{"access_token": "a\r\nX: y"} }, "no token that can be sent"},
		"a token that is none":         {func(g *guarded) { g.reply = map[string]any{"access_token": ""} }, "no token"},
		"a token of another kind":      {func(g *guarded) { g.reply = map[string]any{"token_type": "DPoP"} }, `type "DPoP"`},
		"an error that looks well":     {func(g *guarded) { g.reply = map[string]any{"error": "nope", "error_description": "\x1b[2Jgo away"} }, "nope [2Jgo away"},
		"a huge answer":                {func(g *guarded) { g.reply = map[string]any{"scope": strings.Repeat("x", 2<<20)} }, "more than"},
		"another state":                {func(g *guarded) { g.back = map[string]string{"state": "x"} }, "state is another"},
		"another issuer in the answer": {func(g *guarded) { g.back = map[string]string{"iss": "https://bank.test"} }, "issuer is another"},
		"no issuer in the answer":      {func(g *guarded) { g.as["authorization_response_iss_parameter_supported"] = true }, "issuer is another"},
		"a refusal":                    {func(g *guarded) { g.back = map[string]string{"error": "access_denied", "error_description": "a\x1bb"} }, "refused: access_denied ab"},
		"no code":                      {func(g *guarded) { g.back = map[string]string{"code": ""} }, "without a code"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			s := g.server(t, new([]string))
			c.set(g)
			err := g.login(s, LoginOptions{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\x1b") || len(err.Error()) > 1000 {
				t.Errorf("%v", err)
			}
			if _, err := loadLogin(s); err == nil {
				t.Error("a token is kept")
			}
			if g.leaked.Load() != 0 {
				t.Error("something went elsewhere")
			}
		})
	}
	g := newGuarded(t)
	for _, at := range []string{"http://evil.test/callback", "https://127.0.0.1:1/callback", "myapp://x", "http://10.0.0.1:1/callback"} {
		if _, err := g.server(t, new([]string)).Login(context.Background(), g.web(), LoginOptions{Redirect: at}); err == nil {
			t.Errorf("the browser may come back to %s", at)
		}
	}
}

// What a server refuses is told in words that a person can act on.
func TestRefusals(t *testing.T) {
	status, header := http.StatusForbidden, `Bearer error="insufficient_scope", scope="files:read files:write"`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", header)
		w.WriteHeader(status)
	}))
	defer srv.Close()
	try := func(headers map[string]string, sse bool) string {
		r := newRig(t, Options{})
		s := Server{Name: "g", URL: srv.URL, Headers: headers, SSE: sse}
		grant, _ := s.Grant()
		grants, err := policy.New("test", grant)
		if err != nil {
			t.Fatal(err)
		}
		s.Rights = policy.Rights{Grants: grants}
		r.add(t, s)
		return fmt.Sprint(r.Connect(context.Background(), "g"))
	}
	if got := try(nil, false); !strings.Contains(got, "elfhost mcp login g` --scope \"files:read,files:write\"") {
		t.Error(got)
	}
	status, header = http.StatusUnauthorized, "Bearer"
	for _, sse := range []bool{false, true} {
		if got := try(nil, sse); !strings.Contains(got, "wants a log-in") {
			t.Error(got)
		}
		if got := try(map[string]string{"Authorization": "Bearer x"}, sse); !strings.Contains(got, "refuses the Authorization header") {
			t.Error(got)
		}
	}
	if status = http.StatusMethodNotAllowed; !strings.Contains(try(nil, false), `its transport is "sse"`) {
		t.Error(try(nil, false))
	}
}

func FuzzChallenged(f *testing.F) {
	f.Add(`Bearer realm="a\"b", scope=x y, resource_metadata="https://a.test/"`)
	f.Add(`Bearer a="`)
	f.Add("\x8dBeArer")
	f.Fuzz(func(t *testing.T, line string) {
		for k := range challenged(http.Header{"Www-Authenticate": {line}}) {
			if strings.ContainsAny(k, "=,") {
				t.Fatalf("%q", k)
			}
		}
	})
}

var _ secret.Store = (*memory)(nil)
