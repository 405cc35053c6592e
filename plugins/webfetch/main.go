// WebFetch fetches a page and gives its article as Markdown. It is a plugin:
// the page's bytes are parsed in the sandbox, and the host makes the request.
package main

import (
	"context"
	_ "embed"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
)

const (
	fetchTime = 30 * time.Second
	maxBody   = 5 << 20 // bytes, decoded
	maxError  = 1_000   // bytes of an error page that are shown
)

//go:embed prompt.md
var description string

type args struct {
	URL    string `json:"url" desc:"The http or https address of the page."`
	Prompt string `json:"prompt,omitempty" desc:"What you want to know from the page. A small model answers it from the page's text. Leave it out to get the text itself, or a summary where it is long."`
	Raw    bool   `json:"raw,omitempty" desc:"Give the body as the server sent it, unconverted and unsummarised: for HTML source or data."`
}

func init() {
	pdk.Tool(pdk.Spec{Name: "WebFetch", Description: strings.TrimSpace(description), ReadOnly: true}, webFetch)
}

func main() { pdk.Main() }

func webFetch(ctx context.Context, in args) (abi.Result, error) {
	address, err := parseURL(in.URL)
	if err != nil {
		return abi.Result{}, err
	}
	pdk.Progress(ctx, abi.Progress{Message: "fetching " + address.Host})
	res, err := pdk.Fetch(ctx, pdk.Request{
		URL: address.String(), Timeout: fetchTime, MaxBytes: maxBody,
		Header: pdk.Header{"Accept": {"text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/json;q=0.8,*/*;q=0.5"}},
	})
	if err != nil {
		return abi.Result{}, failure(address, err)
	}
	d, err := newDocument(address, res)
	if err != nil {
		return abi.Result{}, err
	}
	if res.Status >= 400 {
		d.convert()
		d.notes, d.text = nil, clip(d.text, maxError)
		return abi.Errorf("The server answered with status %d.\n%s", res.Status, d.render()), nil
	}
	if !in.Raw {
		d.convert()
		pdk.Progress(ctx, abi.Progress{Message: "reading " + address.Host})
		d.summarise(ctx, in.Prompt)
	}
	return abi.Text(d.render()), nil
}

// parseURL forgives a missing scheme, as the address bar of a browser does.
func parseURL(s string) (*url.URL, error) {
	s = strings.TrimSpace(s)
	if s != "" && !strings.Contains(s, "://") && !strings.HasPrefix(s, "/") && !hasScheme(s) {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, pdk.Failf("WebFetch needs an http or https address with a host, such as https://example.org/page, and %q is none.", clip(s, 200))
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// hasScheme reports whether s begins like "mailto:x". A host with a port does not.
func hasScheme(s string) bool {
	scheme, rest, ok := strings.Cut(s, ":")
	return ok && !strings.ContainsAny(scheme, "./") && (rest == "" || rest[0] < '0' || rest[0] > '9')
}

// failure says in whole sentences why the host did not give a response.
func failure(u *url.URL, err error) error {
	detail := err.Error()
	var e *pdk.Error
	if errors.As(err, &e) && e.Detail != "" {
		detail = e.Detail
	}
	switch {
	case errors.Is(err, abi.ErrDenied):
		return pdk.Failf("The host did not allow the request to %s: %s", u, detail)
	case errors.Is(err, abi.ErrDeadline):
		return pdk.Failf("%s did not answer within %d seconds. Try again later, or another source.", u, int(fetchTime.Seconds()))
	case errors.Is(err, abi.ErrLimit), errors.Is(err, abi.ErrTooLarge):
		return pdk.Failf("%s is larger than a call may receive: %s", u, detail)
	}
	return pdk.Failf("%s could not be fetched: %s", u, detail)
}
