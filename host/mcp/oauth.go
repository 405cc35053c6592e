package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach"
)

// login is what is kept of a server's OAuth: the tokens, and as whom they were
// got, which refreshing them needs.
type login struct {
	Token  *transport.Token `json:"token"`
	URL    string           `json:"url"` // a token goes to no other
	Client string           `json:"client_id"`
	Secret string           `json:"client_secret,omitempty"`
	Method string           `json:"auth_method,omitempty"`
}

// tokens is mcp-go's TokenStore over a SecretStore.
type tokens struct {
	store reach.SecretStore
	name  string
	base  login
}

func secretName(server string) string { return "mcp-oauth-" + server }

func (t *tokens) load() (login, error) {
	text, err := t.store.Get(t.name)
	if err != nil {
		if errors.Is(err, abi.ErrNotFound) {
			err = transport.ErrNoToken
		}
		return login{}, err
	}
	var l login
	if err := json.Unmarshal([]byte(text), &l); err != nil || l.Token == nil || l.URL != t.base.URL {
		return login{}, transport.ErrNoToken
	}
	return l, nil
}

func (t *tokens) GetToken(ctx context.Context) (*transport.Token, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := t.load()
	return l.Token, err
}

func (t *tokens) SaveToken(ctx context.Context, token *transport.Token) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := t.base
	if old, err := t.load(); err == nil {
		l = old
	}
	l.Token = token
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return t.store.Set(t.name, string(b))
}

// oauth is set up only for servers that a person has logged in to.
func (l *link) oauth(web *http.Client) (transport.OAuthConfig, bool) {
	if l.s.Tokens == nil {
		return transport.OAuthConfig{}, false
	}
	t := &tokens{store: l.s.Tokens, name: secretName(l.s.Name), base: login{URL: l.s.URL}}
	have, err := t.load()
	if err != nil {
		return transport.OAuthConfig{}, false
	}
	return transport.OAuthConfig{
		ClientID: have.Client, ClientSecret: have.Secret, TokenEndpointAuthMethod: have.Method,
		TokenStore: t, PKCEEnabled: true, HTTPClient: web,
	}, true
}

// Login is an OAuth log-in that is under way: the person opens URL, the browser
// comes back to the redirect address, and Finish takes what it brought.
type Login struct {
	URL string

	handler  *transport.OAuthHandler
	got      transport.TokenStore
	store    reach.SecretStore
	name     string
	as       login
	verifier string
}

// BeginLogin finds the authorization server of s and registers with it. web
// must reach that too, which is often on another host.
func BeginLogin(ctx context.Context, s Server, web *http.Client, redirect string, scopes []string) (*Login, error) {
	if s.URL == "" || s.Tokens == nil {
		return nil, fmt.Errorf("the MCP server %q has no URL to log in to", s.Name)
	}
	l := &Login{store: s.Tokens, name: secretName(s.Name), got: transport.NewMemoryTokenStore()}
	t, err := transport.NewStreamableHTTP(s.URL, transport.WithHTTPBasicClient(web), transport.WithHTTPLogger(quiet),
		transport.WithHTTPOAuth(transport.OAuthConfig{
			RedirectURI: redirect, Scopes: scopes, PKCEEnabled: true, HTTPClient: web, TokenStore: l.got,
		}))
	if err != nil {
		return nil, err
	}
	l.handler = t.GetOAuthHandler()
	// The server's own 401 says where its metadata is (RFC 9728).
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, http.NoBody)
	if err != nil {
		return nil, err
	}
	if resp, err := web.Do(req); err == nil {
		if resp.StatusCode == http.StatusUnauthorized {
			l.handler.HandleUnauthorizedResponse(resp)
			if !strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), ","), "resource_metadata") {
				l.atRoot(ctx, web, s.URL)
			}
		}
		resp.Body.Close()
	}
	if err := l.handler.RegisterClient(ctx, "elfhost"); err != nil {
		return nil, fmt.Errorf("registering with the authorization server of %q: %w", s.Name, err)
	}
	state, err := transport.GenerateState()
	if err != nil {
		return nil, err
	}
	if l.verifier, err = transport.GenerateCodeVerifier(); err != nil {
		return nil, err
	}
	if l.URL, err = l.handler.GetAuthorizationURL(ctx, state, transport.GenerateCodeChallenge(l.verifier)); err != nil {
		return nil, err
	}
	l.as = login{URL: s.URL, Client: l.handler.GetClientID(), Secret: l.handler.GetClientSecret(), Method: l.handler.GetTokenEndpointAuthMethod()}
	return l, nil
}

// atRoot looks for metadata at the root of the server's origin where there is
// none for its path (RFC 9728 section 3.1 has the latter, servers the former).
func (l *Login) atRoot(ctx context.Context, web *http.Client, server string) {
	u, err := url.Parse(server)
	if err != nil {
		return
	}
	const known = "/.well-known/oauth-protected-resource"
	root := u.Scheme + "://" + u.Host + known
	for _, at := range []string{root + strings.TrimSuffix(u.Path, "/"), root} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return
		}
		resp, err := web.Do(req)
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			if at == root {
				l.handler.SetBaseURL(u.Scheme + "://" + u.Host) // what such metadata is about
			}
			l.handler.SetProtectedResourceMetadataURL(at)
			return
		}
	}
}

// Finish exchanges the code and state that the browser brought for tokens, and
// keeps them.
func (l *Login) Finish(ctx context.Context, code, state string) error {
	if err := l.handler.ProcessAuthorizationResponse(ctx, code, state, l.verifier); err != nil {
		return err
	}
	token, err := l.got.GetToken(ctx)
	if err != nil {
		return err
	}
	l.as.Token = token
	b, err := json.Marshal(l.as)
	if err != nil {
		return err
	}
	return l.store.Set(l.name, string(b))
}
