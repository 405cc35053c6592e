package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// LoginOptions say how to log in.
type LoginOptions struct {
	// Redirect is where the browser comes back to: an address of this machine.
	Redirect string
	Scopes   []string // nil: those that the server wants
	// ClientID and ClientSecret are those that the authorization server gave a
	// person. "": this program registers itself (RFC 7591).
	ClientID, ClientSecret string
	// Plain is an origin that may go without TLS beside this machine's and the
	// server's own.
	Plain string
}

// Login is an OAuth log-in that is under way: the person opens URL, the browser
// comes back to the redirect address, and Finish takes what it brought.
type Login struct {
	URL string
	// Issuer is the authorization server, which the person gives a password to.
	Issuer string
	Scopes []string

	s               Server
	web             *http.Client
	as              login
	iss             bool // the answer has to say whose it is
	state, verifier string
	redirect        string
}

// Login begins a log-in: it finds the authorization server and registers with it.
// web must reach that too, which is often on another host, and follow no redirects.
func (s Server) Login(ctx context.Context, web *http.Client, o LoginOptions) (*Login, error) {
	if s.URL == "" || s.Tokens == nil {
		return nil, fmt.Errorf("the MCP server %q has no URL to log in to", s.Name)
	}
	if u, err := url.Parse(o.Redirect); err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
		return nil, fmt.Errorf("the browser comes back to this machine only, not to %q", o.Redirect)
	}
	f, err := find(ctx, web, s, []string{o.Plain})
	if err != nil {
		return nil, fmt.Errorf("finding where to log in to %q: %w", s.Name, err)
	}
	l := &Login{s: s, web: web, redirect: o.Redirect, Issuer: f.Issuer, Scopes: o.Scopes, iss: f.Iss}
	if l.Scopes == nil {
		l.Scopes = f.scopes
	}
	l.as = login{URL: s.URL, Resource: f.resource, Issuer: f.Issuer, Endpoint: f.Token, Client: o.ClientID, Secret: o.ClientSecret}
	if o.ClientID == "" {
		if err := l.register(ctx, f.authority); err != nil {
			return nil, fmt.Errorf("registering with the authorization server of %q: %w", s.Name, err)
		}
	}
	if l.as.Method == "" {
		l.as.Method = f.method(l.as.Secret != "")
	}
	l.state, l.verifier = rand.Text(), rand.Text()+rand.Text() // of 43 to 128 characters (RFC 7636)
	return l, l.address(f.Authorize)
}

// address makes the URL for the browser.
func (l *Login) address(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(l.verifier))
	q := u.Query() // an endpoint may bring parameters (RFC 6749 section 3.1)
	for k, v := range map[string]string{
		"response_type": "code", "client_id": l.as.Client, "redirect_uri": l.redirect, "state": l.state, "resource": l.as.Resource,
		"code_challenge": base64.RawURLEncoding.EncodeToString(sum[:]), "code_challenge_method": "S256",
	} {
		q.Set(k, v)
	}
	if len(l.Scopes) > 0 {
		q.Set("scope", strings.Join(l.Scopes, " "))
	}
	u.RawQuery = q.Encode()
	l.URL = u.String()
	return nil
}

// method is how a client says who it is, where the registration did not say.
func (a authority) method(secret bool) string {
	switch {
	case !secret:
		return secretNone
	case slices.Contains(a.Methods, secretBasic) && !slices.Contains(a.Methods, secretPost):
		return secretBasic
	}
	return secretPost
}

var errNoRegistration = errors.New("it takes no registrations: register this program there by hand, and log in with --client-id")

func (l *Login) register(ctx context.Context, a authority) error {
	if a.Register == "" {
		return errNoRegistration
	}
	ask := map[string]any{
		"client_name": "elfhost", "redirect_uris": []string{l.redirect}, "application_type": "native",
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": secretNone,
	}
	if len(a.Methods) > 0 && !slices.Contains(a.Methods, secretNone) {
		ask["token_endpoint_auth_method"] = a.method(true)
	}
	if len(l.Scopes) > 0 {
		ask["scope"] = strings.Join(l.Scopes, " ")
	}
	b, err := json.Marshal(ask)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.Register, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	var got struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Method string `json:"token_endpoint_auth_method"`
	}
	if err := fetchJSON(l.web, req, &got); err != nil {
		var e *statusError
		if errors.As(err, &e) && (e.status == http.StatusNotFound || e.status == http.StatusForbidden || e.status == http.StatusMethodNotAllowed) {
			return fmt.Errorf("%w (%w)", errNoRegistration, err)
		}
		return err
	}
	if got.ID == "" || len(got.ID) > 4<<10 || len(got.Secret) > 4<<10 {
		return errors.New("it gave no client id")
	}
	l.as.Client, l.as.Secret = got.ID, got.Secret
	if slices.Contains([]string{secretBasic, secretPost, secretNone}, got.Method) {
		l.as.Method = got.Method
	}
	return nil
}

// Ours reports whether what came to the redirect address belongs to this
// log-in. Whatever else comes there is not its answer.
func (l *Login) Ours(back url.Values) bool {
	return subtle.ConstantTimeCompare([]byte(back.Get("state")), []byte(l.state)) == 1
}

// Finish exchanges what the browser brought for tokens, and keeps them.
func (l *Login) Finish(ctx context.Context, back url.Values) error {
	if !l.Ours(back) {
		return errors.New("the answer belongs to no log-in that was begun here (its state is another)")
	}
	// RFC 9207: an answer of another authorization server is not this one's.
	if iss := back.Get("iss"); iss != l.Issuer && (iss != "" || l.iss) {
		return errors.New("the answer is not that of the authorization server that was asked (its issuer is another)")
	}
	if fail := back.Get("error"); fail != "" {
		text, _ := told("", strings.Join(strings.Fields(fail+" "+back.Get("error_description")), " "), 300)
		return fmt.Errorf("the authorization server refused: %s", text)
	}
	if back.Get("code") == "" {
		return errors.New("the authorization server answered without a code")
	}
	t, err := l.as.exchange(ctx, l.web, url.Values{
		"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "redirect_uri": {l.redirect}, "code_verifier": {l.verifier},
	})
	if err != nil {
		return err
	}
	l.as.Token = t
	return l.as.save(l.s)
}
