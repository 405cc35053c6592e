package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/host"
)

// A person may take longer than a call has time.
func TestCallWaitsForThePerson(t *testing.T) {
	pace := 300 * time.Millisecond
	r := newRig(t, Options{Elicit: func(context.Context, Elicitation) (Reply, error) {
		time.Sleep(3 * pace)
		return Reply{Accept: true, Content: map[string]any{"name": "Ada"}}, nil
	}})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	l, _ := r.link("fake")
	// The rest of the call has the time of one pace, which a busy machine wants slower.
	var got string
	for ; pace < time.Minute && !strings.Contains(got, "Ada"); pace *= 4 {
		l.s.Timeout = pace
		got = r.call(context.Background(), "mcp__fake__echo", `{"do":"ask","n":1}`).Text()
	}
	if !strings.Contains(got, "Ada") {
		t.Fatalf("%q", got)
	}
	l.s.Timeout = 300 * time.Millisecond
	if res := r.call(context.Background(), "mcp__fake__echo", `{"do":"never"}`); !strings.Contains(res.Text(), "did not answer within") {
		t.Fatalf("the clock stands still for ever: %q", res.Text())
	}
}

// A server that asks without end gets a few answers, one after the other.
func TestQuestionFlood(t *testing.T) {
	const flood = 100
	var asked, now, most atomic.Int64
	end := time.Now().Add(time.Minute)
	var r *rig
	r = newRig(t, Options{Elicit: func(context.Context, Elicitation) (Reply, error) {
		asked.Add(1)
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		// The person thinks until the server knows of all the others.
		for ; !r.logged(fmt.Sprintf("refused %d;", flood-maxAsking)); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return Reply{}, errors.New("the others still wait")
			}
		}
		return Reply{}, nil
	}})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	got := r.do(t, "mcp__fake__echo", fmt.Sprintf(`{"do":"ask","n":%d}`, flood))
	if asked.Load() != maxAsking || most.Load() != 1 {
		t.Errorf("a person was asked %d times, %d at once", asked.Load(), most.Load())
	}
	if !strings.Contains(got, "waiting already") || !strings.Contains(got, `"decline"`) {
		t.Errorf("%.300q", got)
	}
}

// A question ends with the call that it is asked for.
func TestCancelWithdrawsTheQuestion(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	r := newRig(t, Options{Elicit: func(ctx context.Context, _ Elicitation) (Reply, error) {
		close(began)
		<-ctx.Done()
		close(ended)
		return Reply{}, ctx.Err()
	}})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-began; cancel() }()
	r.call(ctx, "mcp__fake__echo", `{"do":"ask","n":1}`)
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it is still asked")
	}
}

// Who can be asked about a model's answer belongs to the call, as for forms.
func TestSampleBehindTheCall(t *testing.T) {
	type key struct{}
	r := newRig(t, Options{Sample: func(ctx context.Context, q Sampling) (Sampled, error) {
		who, _ := ctx.Value(key{}).(string)
		return Sampled{Text: who + " says " + q.Messages[0].Content[0].Text, Model: "m"}, nil
	}})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	res := r.reg.Invoke(context.WithValue(context.Background(), key{}, "Ada"), host.Call{ID: "c", Tool: "mcp__fake__echo", Args: json.RawMessage(`{"do":"sample","n":1}`)})
	if res.IsError || !strings.Contains(res.Text(), "Ada says hi") {
		t.Fatalf("%s", res.Text())
	}
}

// A server that wants the model to call tools is refused: nobody would ask
// about those calls.
func TestSampleWithTools(t *testing.T) {
	r := newRig(t, Options{Sample: func(context.Context, Sampling) (Sampled, error) {
		t.Error("the model was asked")
		return Sampled{Text: "yes"}, nil
	}})
	r.add(t, fakeServer(t, "fake", "plain"))
	r.connect(t, "fake")
	if got := r.do(t, "mcp__fake__echo", `{"do":"agent","n":1}`); !strings.Contains(got, "tools is not offered") {
		t.Errorf("%s", got)
	}
}

// mcp-go gives a question over HTTP half a minute; an answer that comes later
// is sent all the same.
func TestPatient(t *testing.T) {
	got := make(chan *http.Request, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		got <- r
	}))
	defer srv.Close()
	inner, err := transport.NewStreamableHTTP(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	answer := make(chan struct{}) // closed when the person has answered
	tap := &httpTap{inner, poster{
		web: srv.Client(), headers: map[string]string{"X-Key": "k"}, where: func() string { return srv.URL },
		session: inner.GetSessionId, version: func() string { return "2025-11-25" },
	}, t.Context()}
	slow := tap.patient(func(ctx context.Context, q transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		select {
		case <-answer:
			return transport.NewJSONRPCResultResponse(q.ID, json.RawMessage(`{"action":"accept"}`)), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	q := transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcp.NewRequestId("e1"), Method: "elicitation/create"}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	context.AfterFunc(ctx, func() { close(answer) })
	if r, err := slow(ctx, q); r != nil || err != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	r := <-got
	if b, _ := io.ReadAll(r.Body); !strings.Contains(string(b), `"id":"e1"`) || !strings.Contains(string(b), "accept") || r.Header.Get("X-Key") != "k" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
		t.Errorf("%s %v", b, r.Header)
	}
	// In time, mcp-go answers; a question that is withdrawn is not answered.
	if r, err := slow(context.Background(), q); r == nil || err != nil {
		t.Errorf("%+v, %v", r, err)
	}
	answer = nil
	ctx, cancel = context.WithCancel(context.Background())
	time.AfterFunc(50*time.Millisecond, cancel)
	if r, err := slow(ctx, q); r != nil || err == nil {
		t.Errorf("%+v, %v", r, err)
	}
	if len(got) != 0 {
		t.Error("it was posted")
	}
}
