package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/elfhost/elfhost/pdk"
)

// maxText is how much of one body is shown, in bytes.
const maxText = 20_000

// path is the API's path of something of a repository. Each part is one
// segment, whatever it holds.
func (r repo) path(parts ...string) string {
	all := append([]string{r.Owner, r.Repo}, parts...)
	for i, p := range all {
		if p == "." || p == ".." { // dots are not escaped, and would climb
			p = "%2E" + strings.Repeat("%2E", len(p)-1)
		} else {
			p = url.PathEscape(p)
		}
		all[i] = p
	}
	return "repos/" + strings.Join(all, "/")
}

func get(ctx context.Context, path string, q url.Values, v any) error {
	body, err := ask(ctx, path, q)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("reading GitHub's answer: %w", err)
	}
	return nil
}

// getEither reads an object into one, or a list into many.
func getEither(ctx context.Context, path string, q url.Values, one, many any) error {
	body, err := ask(ctx, path, q)
	if err != nil {
		return err
	}
	v := one
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		v = many
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("reading GitHub's answer: %w", err)
	}
	return nil
}

func ask(ctx context.Context, path string, q url.Values) ([]byte, error) {
	header := pdk.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}}
	token, err := pdk.Secret(ctx, "github-token")
	if err == nil {
		header.Set("Authorization", "Bearer "+token)
	}
	address := "https://api.github.com/" + path
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	res, err := pdk.Fetch(ctx, pdk.Request{URL: address, Header: header, Timeout: 8 * time.Second, MaxBytes: 8 << 20})
	switch {
	case err != nil:
		return nil, err
	case res.Truncated:
		return nil, pdk.Failf("GitHub's answer is too long. Ask for less.")
	case res.Status == 200:
		return res.Body, nil
	}
	return nil, refused(res, token != "")
}

// refused says what GitHub's answer means for whoever asked.
func refused(res pdk.Response, token bool) error {
	var said struct{ Message string }
	_ = json.Unmarshal(res.Body, &said) // a page instead of JSON has no message
	hint := ""
	if !token {
		hint = " A token would help: a person can set it with `elfhost secret set github-token`."
	}
	switch {
	case res.Status == 404:
		return pdk.Failf("GitHub has no such thing, or it is private. Check the spelling.%s", hint)
	case (res.Status == 403 || res.Status == 429) && res.Header.Get("X-Ratelimit-Remaining") == "0":
		return pdk.Failf("GitHub's limit on requests is reached. Try again later.%s", hint)
	case res.Status == 401, res.Status == 403:
		return pdk.Failf("GitHub refused: %s.%s", said.Message, hint)
	case res.Status == 422:
		return pdk.Failf("GitHub does not understand the request: %s. Check the query.", said.Message)
	}
	return pdk.Failf("GitHub answered with status %d. Try again later.", res.Status)
}

func page(lines []string, n, size int) string {
	if len(lines) == 0 {
		return "Nothing on this page."
	}
	out := strings.Join(lines, "\n")
	if len(lines) == size {
		out += fmt.Sprintf("\n\nMore may be on page %d.", max(n, 1)+1)
	}
	return out
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + fmt.Sprintf("\n… (%d bytes are left out)", len(s)-maxText)
}

func day(timestamp string) string {
	d, _, _ := strings.Cut(timestamp, "T")
	return d
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
