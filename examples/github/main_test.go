package main

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/pdk/pdktest"
)

// api imitates GitHub: answers by path and query.
type api struct {
	t     *testing.T
	token string
	pages map[string]string
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	want := ""
	if a.token != "" {
		want = "Bearer " + a.token
	}
	if got := r.Header.Get("Authorization"); got != want {
		a.t.Errorf("authorization %q, want %q", got, want)
	}
	if r.Method != "GET" || r.URL.Host != "api.github.com" {
		a.t.Errorf("%s %s", r.Method, r.URL)
	}
	key := r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		key += "?" + r.URL.RawQuery
	}
	res := &http.Response{StatusCode: 404, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(`{"message":"Not Found"}`))}
	if body, ok := a.pages[key]; ok {
		res.StatusCode, res.Body = 200, io.NopCloser(strings.NewReader(body))
	}
	switch r.URL.Path {
	case "/repos/o/limited/issues":
		res.StatusCode = 403
		res.Header.Set("X-RateLimit-Remaining", "0")
	case "/repos/o/broken/issues":
		res.StatusCode, res.Body = 200, io.NopCloser(strings.NewReader(`<html>`))
	case "/repos/o/down/issues":
		res.StatusCode, res.Body = 502, io.NopCloser(strings.NewReader(`<html>`))
	}
	return res, nil
}

const one = `{"number":7,"title":"It breaks","state":"open","body":"Steps","created_at":"2026-01-02T03:04:05Z","comments":2,"html_url":"https://github.com/o/r/issues/7","user":{"login":"ada"},"labels":[{"name":"bug"}]}`

func TestGithub(t *testing.T) {
	h := pdktest.New(t)
	h.Secrets = map[string]string{"github-token": "token-1"}
	h.HTTP = &api{t: t, token: "token-1", pages: map[string]string{
		"/repos/o/r/issues?page=1&per_page=30&state=open":                 "[" + one + "]",
		"/repos/o/r/issues?labels=bug%2Cp+1&page=2&per_page=30&state=all": "[]",
		"/repos/o/r/issues/7":                            one,
		"/repos/o/r/issues/7/comments?per_page=50":       `[{"user":{"login":"bob"},"created_at":"2026-01-03T00:00:00Z","body":"Same here"}]`,
		"/repos/o/r/contents/a%20b/c.md?ref=v1":          `{"type":"file","path":"a b/c.md","size":5,"encoding":"base64","content":"` + base64.StdEncoding.EncodeToString([]byte("# Hi\n")) + `"}`,
		"/repos/o/r/contents":                            `[{"name":"src","type":"dir","size":0},{"name":"go.mod","type":"file","size":9}]`,
		"/repos/o/r/contents/logo.png":                   `{"type":"file","path":"logo.png","size":3,"encoding":"base64","content":"/9j/"}`,
		"/repos/o/r/contents/huge":                       `{"type":"file","path":"huge","size":9000000,"encoding":"none"}`,
		"/search/issues?page=1&per_page=20&q=wasm":       `{"total_count":1,"items":[` + one + `]}`,
		"/search/repositories?page=1&per_page=20&q=wasm": `{"total_count":1,"items":[{"full_name":"o/r","description":"A thing","stargazers_count":3}]}`,
		"/search/code?page=1&per_page=20&q=wasm":         `{"total_count":1,"items":[{"path":"a.go","html_url":"https://github.com/o/r/a.go","repository":{"full_name":"o/r"}}]}`,
	}}
	for _, c := range []struct{ tool, args, want string }{
		{"github_issues", `{"owner":"o","repo":"r"}`, "#7 It breaks (issue, open, by ada, 2026-01-02, 2 comments, bug)"},
		{"github_issues", `{"owner":"o","repo":"r","state":"all","labels":["bug","p 1"],"page":2}`, "Nothing on this page."},
		{"github_issue", `{"owner":"o","repo":"r","number":7}`, "Steps\n\n--- bob, 2026-01-03\nSame here\n\n1 more comments are left out."},
		{"github_issue", `{"owner":"o","repo":"r","number":8}`, "no such thing, or it is private"},
		{"github_issue", `{"owner":"..","repo":"..","number":8}`, "no such thing"},
		{"github_file", `{"owner":"o","repo":"r","path":"a b/c.md","ref":"v1"}`, "# Hi\n"},
		{"github_file", `{"owner":"o","repo":"r"}`, "src/  0 bytes\ngo.mod  9 bytes"},
		{"github_file", `{"owner":"o","repo":"r","path":"/logo.png"}`, "not a text file"},
		{"github_file", `{"owner":"o","repo":"r","path":"huge"}`, "up to 1 MB"},
		{"github_search", `{"query":"wasm"}`, "1 found.\n#7 It breaks"},
		{"github_search", `{"query":"wasm","kind":"repositories"}`, "o/r (3 stars): A thing"},
		{"github_search", `{"query":"wasm","kind":"code"}`, "o/r a.go"},
		{"github_issues", `{"owner":"o","repo":"limited"}`, "limit on requests is reached. Try again later."},
		{"github_issues", `{"owner":"o","repo":"broken"}`, "reading GitHub's answer"},
		{"github_issues", `{"owner":"o","repo":"down"}`, "status 502"},
	} {
		if got := h.Call(c.tool, c.args).Text(); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}

func TestWithoutAToken(t *testing.T) {
	h := pdktest.New(t)
	h.HTTP = &api{t: t}
	if got := h.Call("github_issues", `{"owner":"o","repo":"limited"}`).Text(); !strings.Contains(got, "elfhost secret set github-token") {
		t.Errorf("%q does not say how to have a token", got)
	}
}

// TestCases runs testdata/cases natively.
func TestCases(t *testing.T) { pdktest.Cases(t) }
