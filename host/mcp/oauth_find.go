package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const (
	maxMetadata  = 1 << 20 // bytes of one document
	maxHops      = 3       // of redirects to one
	maxAuthority = 3       // authorization servers that are looked at
)

// found is where to log in to a server, and for what.
type found struct {
	authority
	resource string   // RFC 8707
	scopes   []string // that it wants
}

// authority is an authorization server, as its metadata describe it (RFC 8414).
type authority struct {
	Issuer    string   `json:"issuer"`
	Authorize string   `json:"authorization_endpoint"`
	Token     string   `json:"token_endpoint"`
	Register  string   `json:"registration_endpoint"`
	Methods   []string `json:"token_endpoint_auth_methods_supported"`
	PKCE      []string `json:"code_challenge_methods_supported"`
	Iss       bool     `json:"authorization_response_iss_parameter_supported"` // RFC 9207
}

// find looks for the authorization server of s: by what its 401 says, then at
// the well-known places (RFC 9728), and last on its own origin, where servers
// before 2025-06-18 have it. plain are origins that may go without TLS.
func find(ctx context.Context, web *http.Client, s Server, plain []string) (found, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return found{}, err
	}
	origin := u.Scheme + "://" + u.Host
	hint, err := ask401(ctx, web, s)
	if err != nil {
		return found{}, err
	}
	var doc struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	const known = "/.well-known/oauth-protected-resource"
	places := []string{origin + known + strings.TrimSuffix(u.EscapedPath(), "/"), origin + known}
	named := hint["resource_metadata"]
	if m, err := url.Parse(named); err == nil && named != "" {
		if m.Scheme != u.Scheme || !strings.EqualFold(m.Host, u.Host) {
			return found{}, fmt.Errorf("the server's metadata are said to be at another host, %q", m.Host)
		}
		places = []string{named}
	}
	f := found{resource: s.URL, scopes: strings.Fields(hint["scope"])}
	got := false
	for _, at := range slices.Compact(places) {
		if err = getJSON(ctx, web, at, &doc); err == nil {
			got = true
			break
		}
	}
	switch {
	case !got && named != "":
		return found{}, fmt.Errorf("reading the server's metadata: %w", err)
	case !got:
		f.authority, err = legacy(ctx, web, origin)
	default:
		if !binds(doc.Resource, s.URL) {
			text, _ := told("", doc.Resource, 200)
			return found{}, fmt.Errorf("the server's metadata are about %q, not about it", text)
		}
		f.resource = doc.Resource
		if len(f.scopes) == 0 {
			f.scopes = doc.Scopes
		}
		f.authority, err = firstAuthority(ctx, web, doc.Servers)
	}
	if err != nil {
		return found{}, err
	}
	return f, f.check(append(plain, origin))
}

// ask401 asks the server for anything at all, without a token, and gives what
// its refusal says; nil where it refuses nothing.
func ask401(ctx context.Context, web *http.Client, s Server) (map[string]string, error) {
	method, body := http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if s.SSE {
		method, body = http.MethodGet, ""
	}
	req, err := http.NewRequestWithContext(ctx, method, s.URL, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if req.Header.Set("Accept", "application/json, text/event-stream"); !s.SSE {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		return nil, nil
	}
	return challenged(resp.Header), nil
}

var bearerScheme = regexp.MustCompile(`(?i)bearer`)

// challenged reads the parameters of the Bearer challenge of a refusal (RFC
// 9110 section 11.6.1, RFC 6750 section 3).
func challenged(h http.Header) map[string]string {
	out := map[string]string{}
	for _, line := range h.Values("Www-Authenticate") {
		at := bearerScheme.FindStringIndex(line)
		if at == nil {
			continue
		}
		for rest := line[at[1]:]; rest != ""; {
			key, after, ok := strings.Cut(rest, "=")
			if !ok {
				break
			}
			if words := strings.FieldsFunc(key, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' }); len(words) > 0 {
				key = strings.ToLower(words[len(words)-1])
			}
			var value strings.Builder
			if after = strings.TrimLeft(after, " \t"); strings.HasPrefix(after, `"`) {
				i := 1
				for ; i < len(after) && after[i] != '"'; i++ {
					if after[i] == '\\' && i+1 < len(after) {
						i++
					}
					value.WriteByte(after[i])
				}
				rest = after[min(i+1, len(after)):]
			} else {
				end := strings.IndexAny(after, ", \t")
				if end < 0 {
					end = len(after)
				}
				value.WriteString(after[:end])
				rest = after[end:]
			}
			if _, had := out[key]; !had && !strings.ContainsAny(key, ", \t") {
				out[key] = value.String()
			}
		}
	}
	return out
}

// binds reports whether a resource is the server or what it stands on: the same
// origin, and a path that it is at or below. Metadata about another would have
// a token made for that one, and sent to this.
func binds(resource, server string) bool {
	r, err := url.Parse(resource)
	s, serr := url.Parse(server)
	if err != nil || serr != nil || r.Scheme != s.Scheme || !strings.EqualFold(r.Host, s.Host) || r.User != nil || r.Fragment != "" || r.RawQuery != "" && r.RawQuery != s.RawQuery {
		return false
	}
	return strings.HasPrefix(strings.TrimSuffix(s.EscapedPath(), "/")+"/", strings.TrimSuffix(r.EscapedPath(), "/")+"/")
}

func firstAuthority(ctx context.Context, web *http.Client, issuers []string) (a authority, err error) {
	if len(issuers) == 0 {
		return a, errors.New("the server's metadata name no authorization server")
	}
	var errs []error
	for _, issuer := range issuers[:min(len(issuers), maxAuthority)] {
		if a, err = metadata(ctx, web, issuer); err == nil {
			return a, nil
		}
		errs = append(errs, err)
	}
	return authority{}, errors.Join(errs...)
}

// metadata reads the metadata of an issuer, which have to be about that issuer.
func metadata(ctx context.Context, web *http.Client, issuer string) (authority, error) {
	shown, _ := told("", issuer, 200)
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return authority{}, fmt.Errorf("%q is no authorization server", shown)
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	for _, at := range slices.Compact([]string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
		origin + path + "/.well-known/openid-configuration",
	}) {
		var a authority
		if err = getJSON(ctx, web, at, &a); err != nil {
			continue
		}
		if strings.TrimSuffix(a.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			other, _ := told("", a.Issuer, 200)
			return authority{}, fmt.Errorf("the metadata of the authorization server %q are about %q", shown, other)
		}
		return a, a.pkce()
	}
	return authority{}, fmt.Errorf("reading the metadata of the authorization server %q: %w", shown, err)
}

// legacy is what the specification of 2025-03-26 had: metadata on the server's
// own origin, else endpoints of fixed names.
func legacy(ctx context.Context, web *http.Client, origin string) (authority, error) {
	for _, at := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		var a authority
		if getJSON(ctx, web, origin+at, &a) == nil {
			return a, a.pkce()
		}
	}
	return authority{Issuer: origin, Authorize: origin + "/authorize", Token: origin + "/token", Register: origin + "/register"}, nil
}

// pkce holds to the specification: without proof of it, no log-in.
func (a authority) pkce() error {
	if !slices.Contains(a.PKCE, "S256") {
		return errors.New("the authorization server does not say that it protects the log-in with PKCE (code_challenge_methods_supported has no S256 in its metadata), " +
			"and the MCP specification forbids to log in without: ask whoever runs it to announce S256, or send a token that you have from there with --header-env Authorization=VARIABLE (\"Bearer …\") of `elfhost mcp add`")
	}
	return nil
}

// check refuses endpoints to which a code or token would go in the open, and
// those that are no pages.
func (a authority) check(plain []string) error {
	for what, at := range map[string]string{"authorization": a.Authorize, "token": a.Token, "registration": a.Register} {
		if at == "" && what == "registration" {
			continue
		}
		u, err := url.Parse(at)
		if err != nil || !webAddress(at) || u.Fragment != "" {
			return fmt.Errorf("the authorization server's %s endpoint is no address to go to", what)
		}
		if u.Scheme != "https" && !loopback(u.Hostname()) && !slices.Contains(plain, u.Scheme+"://"+u.Host) {
			return fmt.Errorf("the authorization server's %s endpoint %s is not protected by TLS", what, u.Host)
		}
	}
	return nil
}

// getJSON reads a document, over a few redirects, none of which leaves TLS.
func getJSON(ctx context.Context, web *http.Client, at string, v any) error {
	for range maxHops + 1 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Accept", "application/json")
		err = fetchJSON(web, req, v)
		var e *statusError
		if !errors.As(err, &e) || e.status/100 != 3 {
			return err
		}
		to, perr := req.URL.Parse(e.location)
		if perr != nil || e.location == "" || req.URL.Scheme == "https" && to.Scheme != "https" {
			return err
		}
		at = to.String()
	}
	return errors.New("it is redirected too often")
}

// readAtMost reads a body that has to end within so many bytes.
func readAtMost(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("an answer has more than %d bytes", most)
	}
	return b, err
}
