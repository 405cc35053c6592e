package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/elfhost/elfhost/host/model"
)

func readAll(r io.Reader) (events []Event, err error) {
	rd := NewReader(r)
	for {
		e, err := rd.Next()
		if err != nil {
			return events, err
		}
		events = append(events, Event{e.Name, bytes.Clone(e.Data)})
	}
}

func TestReader(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []Event
		err  error
	}{
		"plain":         {"event: a\ndata: 1\n\ndata: 2\n\n", []Event{{"a", []byte("1")}, {"", []byte("2")}}, io.EOF},
		"crlf":          {"event: a\r\ndata: 1\r\ndata: 2\r\n\r\n", []Event{{"a", []byte("1\n2")}}, io.EOF},
		"cr":            {"data: 1\r\rdata: 2\r\r", []Event{{"", []byte("1")}, {"", []byte("2")}}, io.EOF},
		"bom, comments": {"\ufeffdata:1\n: ping\n\n: ping\n\ndata:2\n\n", []Event{{"", []byte("1")}, {"", []byte("2")}}, io.EOF},
		"no data":       {"event: a\n\ndata: 1\n\n", []Event{{"", []byte("1")}}, io.EOF},
		"one space":     {"data:  1\n\n", []Event{{"", []byte(" 1")}}, io.EOF},
		"bare field":    {"data\n\n", []Event{{"", nil}}, io.EOF},
		"cut in event":  {"data: 1\n\ndata: 2\n", []Event{{"", []byte("1")}}, io.ErrUnexpectedEOF},
		"cut in line":   {"data: 1\n\ndat", []Event{{"", []byte("1")}}, io.ErrUnexpectedEOF},
	} {
		for kind, r := range map[string]io.Reader{"whole": strings.NewReader(c.in), "bytes": iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := readAll(r)
			if !errors.Is(err, c.err) || cmp.Diff(c.want, got) != "" {
				t.Errorf("%s, %s: %v %s", name, kind, err, cmp.Diff(c.want, got))
			}
		}
	}
}

func TestReaderIsBounded(t *testing.T) {
	long := io.MultiReader(strings.NewReader("data: "), io.LimitReader(zeros{}, maxEvent+10))
	if _, err := readAll(long); !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("a line without end: %v", err)
	}
	lines := strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 9))
	if _, err := readAll(lines); !errors.Is(err, model.ErrTooLarge) {
		t.Errorf("an event without end: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\n\n: c\ndata: 2\r\r"), 1)
	f.Add([]byte("\ufeffdata"), 3)
	f.Fuzz(func(t *testing.T, in []byte, n int) {
		whole, err := readAll(bytes.NewReader(in))
		split, err2 := readAll(chunks{bytes.NewReader(in), n})
		if cmp.Diff(whole, split) != "" || !errors.Is(err2, err) {
			t.Fatalf("the chunks matter: %v %v", err, err2)
		}
		// What the filter writes reads back as the same events.
		fl := Transport{}.filter(io.NopCloser(bytes.NewReader(in)), "", nil)
		again, _ := io.ReadAll(fl)
		back, _ := readAll(bytes.NewReader(again))
		if len(back) > len(whole) {
			t.Fatalf("%d events became %d", len(whole), len(back))
		}
	})
}

type chunks struct {
	r io.Reader
	n int
}

func (c chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), 1+(c.n&7))]) }

func TestErrorsAreSorted(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		code   model.Code
		text   string
	}{
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.ErrAuth, "invalid x-api-key"},
		{401, `{"error":{"message":"Incorrect API key provided: sk-abcd************wxyz.","type":"invalid_request_error","code":"invalid_api_key"}}`, model.ErrAuth, "[key]"},
		{400, `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`, model.ErrAuth, "not valid"},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, model.ErrQuota, ""},
		{429, `{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}`, model.ErrRateLimit, ""},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}`, model.ErrQuota, ""},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, model.ErrWindow, ""},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, model.ErrWindow, ""},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, model.ErrWindow, ""},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.ErrOverload, ""},
		{503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, model.ErrOverload, ""},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, model.ErrOverload, ""},
		{404, `{"error":"model \"nope\" not found, try pulling it first"}`, model.ErrNotFound, "try pulling"},
		{400, `{"object":"error","message":"bad top_p","type":"BadRequestError","code":400}`, model.ErrRequest, "top_p"},
		{422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`, model.ErrRequest, "field required"},
		{402, `{"error":{"code":402,"message":"Insufficient credits"}}`, model.ErrQuota, ""},
		{502, `<html><body>Bad gateway</body></html>`, model.ErrServer, ""},
		{500, "", model.ErrServer, ""},
		{403, `{"code":"The caller does not have permission","error":"team has no credits"}`, model.ErrAuth, "no credits"},
		{302, ``, model.ErrRequest, ""},
	} {
		e := Transport{Provider: "p", Secrets: []string{"topsecret"}}.Parse(c.status, []byte(c.body))
		if e.Code != c.code || !strings.Contains(e.Message, c.text) || strings.Contains(e.Message, "sk-a") {
			t.Errorf("%d %s\n  is %q: %s", c.status, c.body, e.Code, e)
		}
	}
	e := Transport{Secrets: []string{"topsecret"}}.Parse(400, []byte("{\"error\":\"no topsecret\x1b[2J Bearer abc.def \\n\\nhere\"}"))
	if strings.Contains(e.Error(), "topsecret") || strings.ContainsAny(e.Error(), "\x1b\n") || strings.Contains(e.Error(), "abc.def") {
		t.Errorf("not cleaned: %q", e.Error())
	}
}

// serve answers one streaming request and returns what its body reads as.
func serve(t *testing.T, h http.HandlerFunc, tr Transport) (string, *Notes, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	tr.Provider = "p"
	ctx, notes := WithNotes(context.Background())
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := Client(nil, tr).Do(req)
	if err != nil {
		return "", notes, Err(context.Background(), "p", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), notes, err
}

func sse(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, p := range parts {
			fmt.Fprint(w, p)
			w.(http.Flusher).Flush()
		}
	}
}

func TestErrorsInTheStream(t *testing.T) {
	for name, c := range map[string]struct {
		last string
		code model.Code
	}{
		"anthropic":        {"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n", model.ErrOverload},
		"openai":           {"data: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\"}}\n\n", model.ErrServer},
		"behind a comment": {": OPENROUTER PROCESSING\n\ndata: {\"error\":{\"code\":429,\"message\":\"slow\"},\"choices\":[]}\n\n", model.ErrRateLimit},
		"cut":              {"data: {\"choi", model.ErrTruncated},
	} {
		body, _, err := serve(t, sse("data: {\"a\":1,\"error\":null}\n\n", c.last), Transport{})
		if !errors.Is(err, c.code) || body != "data: {\"a\":1,\"error\":null}\n\n" {
			t.Errorf("%s: %q %v", name, body, err)
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for name, c := range map[string]struct {
		kind, body string
		code       model.Code
	}{
		"a page":             {"text/html", "<html>", model.ErrMalformed},
		"json, not a stream": {"application/json", `{"id":"x"}`, model.ErrMalformed},
		"an error with 200":  {"application/json", `{"error":{"message":"no credits","code":402}}`, model.ErrQuota},
	} {
		_, _, err := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			fmt.Fprint(w, c.body)
		}, Transport{})
		if !errors.Is(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHeaders(t *testing.T) {
	_, _, err := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Request-Id", "req_1")
		w.WriteHeader(429)
	}, Transport{})
	var e *model.Error
	if !errors.As(err, &e) || e.Code != model.ErrRateLimit || e.RetryAfter != 7*time.Second || e.RequestID != "req_1" {
		t.Errorf("%+v", e)
	}
	_, notes, err := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ratelimit-Remaining-Tokens", "99")
		w.Header().Set("X-Ratelimit-Reset-Tokens", "1m30s")
		sse("data: 1\n\n")(w, r)
	}, Transport{})
	if r := notes.Rate(); err != nil || r == nil || r.Tokens != 99 || r.Requests != -1 || time.Until(r.TokensReset) < time.Minute {
		t.Errorf("%+v %v", r, err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := http.Header{"Retry-After": {now.Add(time.Minute).Format(http.TimeFormat)}}
	if d := retryAfter(h, now); d != time.Minute {
		t.Errorf("a date: %s", d)
	}
}

func TestRedirectsAreRefused(t *testing.T) {
	hit := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hit = true }))
	defer other.Close()
	_, _, err := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}, Transport{})
	if !errors.Is(err, model.ErrRequest) || hit {
		t.Errorf("followed %v: %v", hit, err)
	}
}

func TestSilence(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sse("data: 1\n\n")(w, r)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	var b []byte
	var err error
	idle := 50 * time.Millisecond
	// On a busy machine the first words, too, may be late.
	for ; len(b) == 0 && idle < time.Minute; idle *= 4 {
		ctx, _ := WithNotes(context.Background())
		req, _ := http.NewRequestWithContext(ctx, "GET", srv.URL, nil)
		var res *http.Response
		if res, err = Client(nil, Transport{Provider: "p", Idle: idle}).Do(req); err != nil {
			continue
		}
		b, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if string(b) != "data: 1\n\n" || !errors.Is(err, model.ErrTruncated) || !strings.Contains(err.Error(), "nothing came for "+(idle/4).String()) {
		t.Errorf("%q %v", b, err)
	}
}

func TestUnreachable(t *testing.T) {
	ctx := context.Background()
	req, _ := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:1/v1?key=topsecret", nil)
	_, err := Client(nil, Transport{Provider: "p"}).Do(req)
	err = Err(ctx, "p", err)
	if !errors.Is(err, model.ErrUnavailable) || !model.Retryable(err) || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("%v", err)
	}
}
