package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/model"
)

// idle is how long a stream may say nothing. Providers send pings; a local
// server may think over a long prompt before it sends its header, which is
// not counted.
const idle = 5 * time.Minute

// maxBody bounds an answer that is no stream: a list of models, an error.
const maxBody = 4 << 20

// Transport makes every answer either good or a *model.Error.
type Transport struct {
	Provider string
	Secrets  []string          // never to appear in an error
	Base     http.RoundTripper // nil: http.DefaultTransport
	Idle     time.Duration     // zero: five minutes
	// Keep hands each event to the request's Notes, and ends a stream that
	// failed as if it were over, the error in the Notes: for a library that
	// loses digits of numbers and writes errors to the standard logger.
	Keep bool
}

// Client is base with the transport in between. Redirects are refused: a
// model's address is configured, and a key must not travel on.
func Client(base *http.Client, t Transport) *http.Client {
	c := &http.Client{}
	if base != nil {
		*c = *base
	}
	t.Base = c.Transport
	if t.Base == nil {
		t.Base = http.DefaultTransport
	}
	c.Transport = t
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Notes is what a request learns from the headers of its answer.
type Notes struct {
	mu     sync.Mutex
	rate   *model.RateLimit
	events [][]byte
	err    error
}

// Next gives the oldest event that was kept and not given yet.
func (n *Notes) Next() ([]byte, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.events) == 0 {
		return nil, false
	}
	e := n.events[0]
	n.events = n.events[1:]
	return e, true
}

// Err is how a kept stream failed.
func (n *Notes) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

type notesKey struct{}

// WithNotes gives a context for a request that streams, which fills the notes.
func WithNotes(ctx context.Context) (context.Context, *Notes) {
	n := &Notes{}
	return context.WithValue(ctx, notesKey{}, n), n
}

// Rate is what the headers said of limits, nil if nothing.
func (n *Notes) Rate() *model.RateLimit {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rate
}

type patchKey struct{}

// WithPatch gives a context whose request's JSON body is changed before it is
// sent: fields that the vendor's library does not know.
func WithPatch(ctx context.Context, patch func(body map[string]json.RawMessage) error) context.Context {
	return context.WithValue(ctx, patchKey{}, patch)
}

// patched applies the patch of the request's context.
func patched(req *http.Request) (*http.Request, error) {
	patch, ok := req.Context().Value(patchKey{}).(func(map[string]json.RawMessage) error)
	if !ok || req.Body == nil {
		return req, nil
	}
	defer req.Body.Close()
	data, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	body := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, err
	}
	if err := patch(body); err != nil {
		return nil, err
	}
	if data, err = json.Marshal(body); err != nil {
		return nil, err
	}
	out := req.Clone(req.Context())
	out.ContentLength = int64(len(data))
	out.Body = io.NopCloser(bytes.NewReader(data))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return out, nil
}

// RoundTrip sends a request. An answer that streams is filtered: what the
// library above reads is one line of data per event, without comments, and an
// error in the stream is an error of Read.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	req, err := patched(req)
	if err != nil {
		return nil, err
	}
	res, err := t.Base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	id := requestID(res.Header)
	n, streams := req.Context().Value(notesKey{}).(*Notes)
	if streams {
		n.mu.Lock()
		n.rate = rate(res.Header, time.Now())
		n.mu.Unlock()
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer res.Body.Close()
		return nil, t.refused(res, id)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if streams && kind != "application/json" && kind != "text/html" { // some servers forget to name the kind
		res.Body = t.filter(res.Body, id, n)
		return res, nil
	}
	return t.whole(res, kind, streams, id)
}

// refused reads an answer with a bad status.
func (t Transport) refused(res *http.Response, id string) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	e := t.Parse(res.StatusCode, body)
	e.RequestID = id
	if e.RetryAfter == 0 {
		e.RetryAfter = retryAfter(res.Header, time.Now())
	}
	if res.StatusCode >= 300 && res.StatusCode < 400 {
		e.Message = "it redirects elsewhere, which is not followed; correct the base URL"
	}
	return e
}

// whole passes on a JSON answer, bounded. Some servers put an error into one
// with a good status; other kinds of content are no answer of a model at all.
func (t Transport) whole(res *http.Response, kind string, streams bool, id string) (*http.Response, error) {
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	if err != nil {
		return nil, &model.Error{Code: model.ErrTruncated, Provider: t.Provider, Status: res.StatusCode, RequestID: id, Err: err}
	}
	if len(body) > maxBody {
		return nil, &model.Error{Code: model.ErrTooLarge, Provider: t.Provider, Status: res.StatusCode, RequestID: id}
	}
	if e := t.inStream(body); e != nil {
		e.RequestID = id
		return nil, e
	}
	if streams || !json.Valid(body) {
		return nil, &model.Error{
			Code: model.ErrMalformed, Provider: t.Provider, Status: res.StatusCode, RequestID: id,
			Message: fmt.Sprintf("it answered with %q, not with a model's answer; is the base URL right?", kind),
		}
	}
	res.Body = io.NopCloser(bytes.NewReader(body))
	return res, nil
}

// filter is the reading side of a stream.
func (t Transport) filter(body io.ReadCloser, id string, n *Notes) io.ReadCloser {
	f := &filter{transport: t, body: body, id: id, wait: t.Idle, notes: n}
	if f.wait == 0 {
		f.wait = idle
	}
	f.events = NewReader(timed{f})
	return f
}

type filter struct {
	transport Transport
	body      io.ReadCloser
	id        string
	wait      time.Duration
	notes     *Notes
	events    *Reader
	out       bytes.Buffer
	err       error
}

// timed reads the body, and closes it when it says nothing for too long.
type timed struct{ *filter }

func (r timed) Read(p []byte) (int, error) {
	t := time.AfterFunc(r.wait, func() { _ = r.body.Close() })
	n, err := r.body.Read(p)
	if !t.Stop() && err != nil {
		err = &model.Error{Code: model.ErrTruncated, Message: fmt.Sprintf("nothing came for %s", r.wait)}
	}
	return n, err
}

func (f *filter) Read(p []byte) (int, error) {
	for f.out.Len() == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.fill()
	}
	return f.out.Read(p)
}

// fill takes one event.
func (f *filter) fill() {
	e, err := f.events.Next()
	if err != nil {
		f.fail(err)
		return
	}
	if bad := f.transport.inStream(e.Data); bad != nil {
		f.fail(bad)
		return
	}
	if f.transport.Keep {
		f.notes.mu.Lock()
		f.notes.events = append(f.notes.events, e.Data)
		f.notes.mu.Unlock()
	} else if e.Name != "" {
		fmt.Fprintf(&f.out, "event: %s\n", e.Name)
	}
	f.out.WriteString("data: ")
	f.out.Write(bytes.ReplaceAll(e.Data, []byte("\n"), []byte(" ")))
	f.out.WriteString("\n\n")
}

func (f *filter) fail(err error) {
	var e *model.Error
	switch {
	case errors.As(err, &e):
		e.Provider, e.RequestID = f.transport.Provider, f.id
	case errors.Is(err, io.EOF):
		f.err = io.EOF // whether the answer was whole, its reader knows
		return
	default:
		e = &model.Error{Code: model.ErrTruncated, Provider: f.transport.Provider, RequestID: f.id, Err: err}
	}
	f.err = e
	if f.transport.Keep {
		f.notes.mu.Lock()
		f.notes.err, f.err = e, io.EOF
		f.notes.mu.Unlock()
	}
}

func (f *filter) Close() error { return f.body.Close() }
