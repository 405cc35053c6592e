package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
)

// login is what is kept of a server's OAuth: the tokens, as whom they were got
// and from where. They are renewed there and nowhere else, whatever the
// server's metadata say later.
type login struct {
	Token    token  `json:"token"`
	URL      string `json:"url"` // a token goes to no other
	Resource string `json:"resource,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	Endpoint string `json:"token_endpoint,omitempty"`
	Client   string `json:"client_id"`
	Secret   string `json:"client_secret,omitempty"`
	Method   string `json:"auth_method,omitempty"` // of the client at the endpoint
}

type token struct {
	Access  string    `json:"access_token"`
	Refresh string    `json:"refresh_token,omitempty"`
	Scope   string    `json:"scope,omitempty"`
	Until   time.Time `json:"expires_at,omitzero"` // zero: not known
}

// leeway is how long before its end a token is not used any more.
const leeway = 10 * time.Second

func (t token) expired() bool { return !t.Until.IsZero() && time.Now().Add(leeway).After(t.Until) }

// hide keeps what must not be seen out of logs and errors.
func (l login) hide(s Server) {
	if s.Hide == nil {
		return
	}
	for _, v := range []string{l.Token.Access, l.Token.Refresh, l.Secret} {
		if v != "" {
			s.Hide(v)
		}
	}
}

func secretName(server string) string { return "mcp-oauth-" + server }

// loadLogin gives abi.ErrNotFound where nobody logged in to exactly this server.
func loadLogin(s Server) (login, error) {
	if s.Tokens == nil {
		return login{}, abi.ErrNotFound
	}
	text, err := s.Tokens.Get(secretName(s.Name))
	if err != nil {
		return login{}, err
	}
	var l login
	if json.Unmarshal([]byte(text), &l) != nil || l.Token.Access == "" || l.URL != s.URL {
		return login{}, abi.ErrNotFound
	}
	l.hide(s)
	return l, nil
}

func (l login) save(s Server) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	l.hide(s)
	return s.Tokens.Set(secretName(s.Name), string(b))
}

// Logout forgets the log-in to a server of this name. It reports whether there
// was one.
func Logout(store secret.Store, server string) (bool, error) {
	err := store.Delete(secretName(server))
	if errors.Is(err, abi.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// bearer sends the token of a log-in along, and says in words what the server
// wants that refuses a request.
type bearer struct {
	next http.RoundTripper
	l    *link
}

// renewTime bounds renewing a token. It goes on when the request that needed
// it ends: the old one may be of no use any more.
const renewTime = 30 * time.Second

func (b *bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := url.Parse(b.l.s.URL)
	if err != nil || req.URL.Scheme != u.Scheme || req.URL.Host != u.Host {
		return b.next.RoundTrip(req)
	}
	if req.Header.Get("Authorization") != "" {
		return b.judge(b.next.RoundTrip(req))(refusal{own: true})
	}
	used, err := b.l.token(req.Context(), "")
	if err != nil {
		return nil, err
	}
	if used == "" {
		return b.judge(b.next.RoundTrip(req))(refusal{})
	}
	resp, err := b.next.RoundTrip(carrying(req, used))
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return b.judge(resp, err)(refusal{had: true})
	}
	// It ended earlier than was said, or was taken back.
	resp.Body.Close()
	fresh, err := b.l.token(req.Context(), used)
	if err != nil {
		return nil, err
	}
	again := carrying(req, fresh)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return b.judge(b.next.RoundTrip(again))(refusal{had: true})
}

func carrying(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return req
}

// refusal is a 401 or 403 of a server.
type refusal struct {
	server   string
	status   int
	scope    string // that it wants
	own, had bool   // a header of the configuration, a token of a log-in was sent
}

func (r refusal) Error() string {
	again := fmt.Sprintf("`elfhost mcp login %s`", r.server)
	switch {
	case r.own:
		return fmt.Sprintf("it refuses the Authorization header that its configuration sets (status %d)", r.status)
	case r.status == http.StatusForbidden && r.scope != "":
		return fmt.Sprintf("the log-in does not cover this (status 403); %s --scope %q asks for more", again, strings.Join(strings.Fields(r.scope), ","))
	case r.status == http.StatusForbidden:
		return "it refuses access (status 403)"
	case r.had:
		return "it does not take the log-in any more (status 401); log in again with " + again
	}
	return "it wants a log-in (status 401): " + again
}

// judge makes an error of a refusal: mcp-go would take some for an old server's
// way of saying that it speaks another transport.
func (b *bearer) judge(resp *http.Response, err error) func(refusal) (*http.Response, error) {
	return func(r refusal) (*http.Response, error) {
		if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		resp.Body.Close()
		r.server, r.status = b.l.s.Name, resp.StatusCode
		r.scope, _ = told("", challenged(resp.Header)["scope"], 300)
		return nil, r
	}
}

// token gives the token of the log-in, renewed when it has ended or is the one
// that was refused; "" where nobody logged in.
func (l *link) token(ctx context.Context, refused string) (string, error) {
	select {
	case l.renewing <- struct{}{}: // a token to renew with may count once
		defer func() { <-l.renewing }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	have, err := loadLogin(l.s)
	switch {
	case errors.Is(err, abi.ErrNotFound):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading its log-in: %w", err)
	case have.Token.Access != refused && !have.Token.expired():
		return have.Token.Access, nil
	case have.Token.Refresh == "" || have.Endpoint == "" || l.s.Renew == nil:
		return "", refusal{server: l.s.Name, status: http.StatusUnauthorized, had: true}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	defer cancel()
	web := l.c.opt.HTTP.Client(l.s.Renew(have.Endpoint), reach.HTTPLimits{Body: maxMetadata, Redirects: -1}, nil)
	fresh, err := have.exchange(ctx, web, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {have.Token.Refresh}})
	if err != nil {
		// Another process may have been faster.
		if now, lerr := loadLogin(l.s); lerr == nil && now.Token.Access != have.Token.Access && !now.Token.expired() {
			return now.Token.Access, nil
		}
		return "", fmt.Errorf("its log-in could not be renewed (%w); log in again with `elfhost mcp login %s`", err, l.s.Name)
	}
	if fresh.Refresh == "" {
		fresh.Refresh = have.Token.Refresh
	}
	have.Token = fresh
	if err := have.save(l.s); err != nil {
		return "", fmt.Errorf("keeping its renewed log-in: %w", err)
	}
	return fresh.Access, nil
}
