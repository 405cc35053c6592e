package pdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/pdk"
	"github.com/elfhost/elfhost/pdk/pdktest"
)

func TestFetch(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		default:
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("x-answer", r.Method+" "+r.Header.Get("Authorization"))
			_, _ = w.Write(body)
		}
	}))
	defer srv.Close()
	h := pdktest.New(t)
	h.Secrets = map[string]string{"key": "hunter2"}
	ctx := h.Context()
	secret, err := pdk.Secret(ctx, "key")
	if err != nil || secret == "hunter2" {
		t.Fatalf("placeholder %q, %v", secret, err)
	}
	header := pdk.Header{}
	header.Set("authorization", "Bearer "+secret)
	res, err := pdk.Fetch(ctx, pdk.Request{Method: "POST", URL: srv.URL, Header: header, Body: []byte("a\xff\x00b"), MaxBytes: 3})
	if err != nil || string(res.Body) != "a\xff\x00" || !res.Truncated || res.Header.Get("X-ANSWER") != "POST Bearer hunter2" {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := pdk.Fetch(ctx, pdk.Request{URL: srv.URL + "/moved"}); err != nil || res.URL != srv.URL+"/there" {
		t.Errorf("%+v, %v", res, err)
	}
	if res, err := pdk.Fetch(ctx, pdk.Request{URL: srv.URL + "/moved", NoRedirect: true}); err != nil || res.Status != 302 {
		t.Errorf("%+v, %v", res, err)
	}
	if _, err := pdk.Fetch(ctx, pdk.Request{URL: srv.URL + "/slow", Timeout: 20 * time.Millisecond}); !errors.Is(err, abi.ErrDeadline) {
		t.Errorf("slow: %v", err)
	}
	if _, err := pdk.Fetch(ctx, pdk.Request{URL: "file:///etc/passwd"}); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("file: %v", err)
	}
}

func TestWithoutHost(t *testing.T) {
	if _, err := pdk.Env(t.Context(), "LANG"); !errors.Is(err, abi.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

func TestEnv(t *testing.T) {
	h := pdktest.New(t)
	if _, err := pdk.Env(h.Context(), "LANG"); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("not granted: %v", err)
	}
	h.Env = map[string]string{"LANG": "C"}
	if v, err := pdk.Env(h.Context(), "LANG"); v != "C" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := pdk.Env(h.Context(), "HOME"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("not set: %v", err)
	}
}

func TestComplete(t *testing.T) {
	h := pdktest.New(t)
	if _, err := pdk.Complete(h.Context(), pdk.Prompt{Text: "x"}); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("no model: %v", err)
	}
	in := pdk.Prompt{
		System: "s", Messages: []pdk.Message{{Role: "user", Content: "look"}}, Text: "long", MaxTokens: 7,
		Images: []pdk.Image{{MIMEType: "image/png", Data: []byte{1, 2}}, {MIMEType: "image/gif", Data: []byte{3}}},
	}
	out := pdk.Completion{Text: "an answer", Stop: "end", Model: "m", TokensIn: 1, TokensOut: 2}
	h.Model = func(_ context.Context, p pdk.Prompt) (pdk.Completion, error) {
		if !reflect.DeepEqual(p, in) {
			t.Errorf("the model got %+v", p)
		}
		return out, nil
	}
	if c, err := pdk.Complete(h.Context(), in); err != nil || c != out {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestKV(t *testing.T) {
	ctx := pdktest.New(t).Context()
	if _, err := pdk.KVGet(ctx, "a"); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("%v", err)
	}
	for _, k := range []string{"b", "a", "c/1"} {
		if err := pdk.KVSet(ctx, k, []byte("v"+k)); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := pdk.KVGet(ctx, "a"); string(v) != "va" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if err := pdk.KVDelete(ctx, "b"); err != nil {
		t.Error(err)
	}
	if keys, err := pdk.KVKeys(ctx, ""); !reflect.DeepEqual(keys, []string{"a", "c/1"}) || err != nil {
		t.Errorf("%q, %v", keys, err)
	}
	if keys, err := pdk.KVKeys(ctx, "c/"); len(keys) != 1 || err != nil {
		t.Errorf("%q, %v", keys, err)
	}
	if err := pdk.KVSet(ctx, "", nil); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("an empty key: %v", err)
	}
}

func TestExec(t *testing.T) {
	h := pdktest.New(t)
	if _, err := pdk.Exec(h.Context(), pdk.Command{Argv: []string{"git", "log"}}); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("%v", err)
	}
	want := pdk.Finished{ExitCode: 2, Signal: "KILL", Stdout: []byte("out"), Stderr: []byte("err"), TimedOut: true}
	h.Exec = func(_ context.Context, c pdk.Command) (pdk.Finished, error) {
		if len(c.Argv) != 2 || string(c.Stdin) != "in" || c.Timeout != time.Second || c.Dir != "/ws/x" {
			t.Errorf("%+v", c)
		}
		return want, nil
	}
	got, err := pdk.Exec(h.Context(), pdk.Command{Argv: []string{"git", "log"}, Dir: "/ws/x", Stdin: []byte("in"), Timeout: time.Second})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCallTool(t *testing.T) {
	h := pdktest.New(t)
	h.Tools = map[string]func(context.Context, json.RawMessage) (abi.Result, error){
		"Read": func(_ context.Context, args json.RawMessage) (abi.Result, error) { return abi.Text(string(args)), nil },
		"Bad":  func(context.Context, json.RawMessage) (abi.Result, error) { return abi.Result{}, errors.New("no") },
	}
	if r, err := pdk.CallTool(h.Context(), "Read", map[string]string{"path": "a"}); err != nil || r.Text() != `{"path":"a"}` {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := pdk.CallTool(h.Context(), "Bad", struct{}{}); err != nil || !r.IsError {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := pdk.CallTool(h.Context(), "None", struct{}{}); !errors.Is(err, abi.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestLogAndProgress(t *testing.T) {
	h := pdktest.New(t)
	pdk.Log(h.Context(), pdk.LevelWarn, "half full")
	pdk.Progress(h.Context(), abi.Progress{Message: "m", Done: 1, Total: 2})
	if l := h.Logs(); len(l) != 1 || l[0] != "warn: half full" {
		t.Errorf("%q", l)
	}
	if p := h.Progress(); len(p) != 1 || p[0] != (abi.Progress{Message: "m", Done: 1, Total: 2}) {
		t.Errorf("%+v", p)
	}
}

func TestPath(t *testing.T) {
	h := pdktest.New(t)
	if err := os.WriteFile(pdk.Path(h.Context(), "/ws/a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(h.Dir + "/a.txt"); err != nil {
		t.Error(err)
	}
	for _, outside := range []string{"/etc/passwd", "/ws/../etc/passwd", "/wsx"} {
		if _, err := os.Stat(pdk.Path(h.Context(), outside)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s leads somewhere: %v", outside, err)
		}
	}
}

// TestPathOfAName: what a model names stays in the workspace; virtual paths stay as they are.
func TestPathOfAName(t *testing.T) {
	h := pdktest.New(t)
	for name, want := range map[string]string{
		"a.txt": "/ws/a.txt", "./d/../a.txt": "/ws/a.txt", "../../etc/passwd": "/ws/etc/passwd", "": "/ws", "/ws/a.txt": "/ws/a.txt", "/etc/passwd": "/etc/passwd",
	} {
		if got := pdk.Path(context.Background(), name); got != want {
			t.Errorf("%q is %q, not %q", name, got, want)
		}
		if got := pdk.Path(h.Context(), name); got != h.Path(want) {
			t.Errorf("%q is %q on the test's host, not %q", name, got, h.Path(want))
		}
	}
}
