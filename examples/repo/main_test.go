package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

// github imitates the API and counts the requests.
type github struct {
	t    *testing.T
	hits int
}

func (g *github) RoundTrip(r *http.Request) (*http.Response, error) {
	g.hits++
	res := &http.Response{StatusCode: 404, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader("{}"))}
	if r.URL.String() == "https://api.github.com/repos/golang/go" {
		if got := r.Header.Get("Authorization"); got != "Bearer token-1" {
			g.t.Errorf("authorization %q", got)
		}
		res.StatusCode = 200
		res.Body = io.NopCloser(strings.NewReader(`{"full_name":"golang/go","description":"The Go language","stargazers_count":9}`))
	}
	return res, nil
}

func TestRepo(t *testing.T) {
	h, g := pdktest.New(t), &github{t: t}
	h.HTTP, h.Secrets = g, map[string]string{"github-token": "token-1"}
	for range 2 {
		if got := h.Call("repo", `{"owner":"golang","name":"go"}`).Text(); got != "golang/go: The Go language (9 stars)" {
			t.Error(got)
		}
	}
	if g.hits != 1 {
		t.Errorf("%d requests: the second answer was to come from the cache", g.hits)
	}
	if r := h.Call("repo", `{"owner":"golang","name":"../x"}`); !r.IsError || !strings.Contains(r.Text(), "no public repository") {
		t.Errorf("%+v", r)
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
