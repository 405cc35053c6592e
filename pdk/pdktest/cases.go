package pdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
	"github.com/elfhost/elfhost/pdk/golden"
)

// Cases runs the golden cases of testdata/cases natively, each as a subtest.
// Recordings, and cases that are about rights, run in the sandbox alone:
// `elfhost plugin test` does that.
func Cases(t *testing.T) {
	t.Helper()
	cases, err := golden.Read(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if c.Recording != nil || c.SandboxOnly {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			h := New(t)
			if err := c.Lay(h.Dir); err != nil {
				t.Fatal(err)
			}
			h.answer(&c)
			args := c.Args
			if args == nil {
				args = json.RawMessage("{}")
			}
			if err := c.Compare(h.Call(c.Tool, []byte(args)), h.Dir); err != nil {
				t.Error(err)
			}
		})
	}
}

// answer makes the host answer as the case says.
func (h *Host) answer(c *golden.Case) {
	h.HTTP, h.Env, h.Secrets = roundTripper{c}, c.Env, c.Secrets
	for k, v := range c.KV {
		h.KV[k] = []byte(v)
	}
	if c.Model != nil {
		h.Model = func(context.Context, pdk.Prompt) (pdk.Completion, error) { return pdk.Completion{Text: *c.Model}, nil }
	}
	h.Tools = map[string]func(context.Context, json.RawMessage) (abi.Result, error){}
	for name, text := range c.Tools {
		h.Tools[name] = func(context.Context, json.RawMessage) (abi.Result, error) { return abi.Text(text), nil }
	}
}

// roundTripper is the network of a case.
type roundTripper struct{ c *golden.Case }

func (rt roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := rt.c.Answer(r.Method, r.URL.String())
	if !ok {
		return nil, fmt.Errorf(`the case has no answer in "http" for %s %s`, r.Method, r.URL)
	}
	res := &http.Response{StatusCode: a.Status, Request: r, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.Body)), ContentLength: int64(len(a.Body))}
	for k, v := range a.Headers {
		res.Header.Set(k, v)
	}
	return res, nil
}
