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
)

// How a client says who it is at a token endpoint (RFC 6749 section 2.3.1, RFC
// 7591 section 2).
const (
	secretBasic = "client_secret_basic"
	secretPost  = "client_secret_post"
	secretNone  = "none"
)

// maxLife is the longest life of a token that is believed.
const maxLife = 10 * 365 * 24 * time.Hour

// exchange asks the token endpoint. No redirect is followed: it would carry a
// code, or a token to renew with, somewhere else.
func (l login) exchange(ctx context.Context, web *http.Client, form url.Values) (token, error) {
	if l.Resource != "" {
		form.Set("resource", l.Resource) // RFC 8707
	}
	if l.Method != secretBasic {
		form.Set("client_id", l.Client)
	}
	if l.Method == secretPost {
		form.Set("client_secret", l.Secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.Endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return token{}, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if l.Method == secretBasic {
		req.SetBasicAuth(url.QueryEscape(l.Client), url.QueryEscape(l.Secret))
	}
	var got struct {
		Access  string      `json:"access_token"`
		Type    string      `json:"token_type"`
		Refresh string      `json:"refresh_token"`
		Scope   string      `json:"scope"`
		Life    json.Number `json:"expires_in"`
	}
	if err := fetchJSON(web, req, &got); err != nil {
		return token{}, err
	}
	t := token{Access: got.Access, Refresh: got.Refresh, Scope: got.Scope}
	switch {
	case t.Access == "" || strings.ContainsFunc(t.Access, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return token{}, errors.New("the authorization server gave no token that can be sent")
	case got.Type != "" && !strings.EqualFold(got.Type, "bearer"):
		kind, _ := told("", got.Type, 40)
		return token{}, fmt.Errorf("the authorization server gave a token of the type %q, which is not known here", kind)
	}
	if n, err := got.Life.Float64(); err == nil && n > 0 {
		t.Until = time.Now().Add(time.Duration(min(n, maxLife.Seconds()) * float64(time.Second)))
	}
	return t, nil
}

// statusError is an answer of an authorization server that is none.
type statusError struct {
	status   int
	text     string // what it said, cleaned
	location string
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("the authorization server answered with status %d", e.status)
	}
	return fmt.Sprintf("the authorization server answered with status %d: %s", e.status, e.text)
}

// fetchJSON reads an answer of at most maxMetadata bytes into v. Of an error it
// repeats only what RFC 6749 section 5.2 has.
func fetchJSON(web *http.Client, req *http.Request, v any) error {
	resp, err := web.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := readAtMost(resp.Body, maxMetadata)
	if err != nil {
		return err
	}
	var fail struct {
		Error, Text string
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) == nil {
		_ = json.Unmarshal(raw["error"], &fail.Error)
		_ = json.Unmarshal(raw["error_description"], &fail.Text)
	}
	if resp.StatusCode/100 != 2 || fail.Error != "" {
		text, _ := told("", strings.TrimSpace(strings.Join(strings.Fields(fail.Error+" "+fail.Text), " ")), 300)
		return &statusError{resp.StatusCode, text, resp.Header.Get("Location")}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return errors.New("the authorization server's answer is not the JSON that it should be")
	}
	return nil
}
