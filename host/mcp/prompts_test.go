package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// showing serves prompts and resources over HTTP.
func showing(t *testing.T, own ...host.Tool) Server {
	t.Helper()
	reg := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	if err := reg.Add(append(own, tool{"Read", host.KindRead, text("read")})...); err != nil {
		t.Fatal(err)
	}
	b := NewBridge(ServeOptions{
		Registry: reg, Version: "1",
		Prompts: []Prompt{{Name: "review", Description: "Re\u202eviews", Args: []PromptArg{{Name: "file", Required: true}, {Name: "how"}},
			Render: func(_ context.Context, args map[string]string) ([]Message, error) {
				return []Message{{Role: "user", Content: []abi.Content{abi.TextBlock("Review " + args["file"] + " " + args["how"])}}}, nil
			}}},
		Resources: []Resource{
			{URI: "note://one", Name: "one", Description: "The first", MIMEType: "text/plain", Read: func(context.Context) (abi.Resource, error) {
				return abi.Resource{URI: "note://one", MIMEType: "text/plain", Text: "what it says"}, nil
			}},
			{URI: "note://bad", Name: "bad", Read: func(context.Context) (abi.Resource, error) { return abi.Resource{}, errors.New("it is torn") }},
		},
	})
	t.Cleanup(b.Close)
	return overHTTP(t, b)
}

// overHTTP serves a bridge over HTTP, and is the way there.
func overHTTP(t *testing.T, b *Bridge) Server {
	t.Helper()
	h, err := b.Handler(HTTPOptions{Token: "letmein"})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() }) // streams do not end by themselves
	m := Server{Name: "web", URL: s.URL + "/mcp", Headers: map[string]string{"Authorization": "Bearer letmein"}}
	g, _ := m.Grant()
	grants, err := policy.New("test", g)
	if err != nil {
		t.Fatal(err)
	}
	m.Rights = policy.Rights{Grants: grants}
	return m
}

func TestPromptsOfAServer(t *testing.T) {
	pins, s := t.TempDir(), showing(t)
	r := newRig(t, Options{Pins: pins})
	r.add(t, s)
	if got := r.Prompts(); len(got) != 0 {
		t.Fatalf("before it was ever started: %v", got)
	}
	r.connect(t, "web")
	got := r.Prompts()
	if len(got) != 1 || got[0].Name != "mcp__web__review" || got[0].Description != "Reviews" || len(got[0].Args) != 2 || !got[0].Args[0].Required {
		t.Fatalf("%+v", got)
	}
	msgs, err := r.Prompt(context.Background(), "mcp__web__review", map[string]string{"file": "a.go", "how": "well"})
	if err != nil || len(msgs) != 1 || msgs[0].Role != "user" || msgs[0].Content[0].Text != "Review a.go well" {
		t.Errorf("%v %v", msgs, err)
	}
	if _, err := r.Prompt(context.Background(), "mcp__web__review", nil); err == nil || !strings.Contains(err.Error(), `"file"`) {
		t.Errorf("without what it needs: %v", err)
	}
	if _, err := r.Prompt(context.Background(), "mcp__web__other", nil); err == nil {
		t.Error("a prompt that is not there")
	}
	// The next session knows them without starting the server.
	again := newRig(t, Options{Pins: pins})
	again.add(t, s)
	if got := again.Prompts(); len(got) != 1 || again.Status()[0].State != "idle" {
		t.Errorf("%v, %s", got, again.Status()[0].State)
	}
	if !again.reg.Has("mcp__web__read_resource") {
		t.Error("its resources are not readable before it is started")
	}
}

// A listing that fails halfway does not lose the prompts that were known.
func TestPromptsOutlastAnError(t *testing.T) {
	pins := t.TempDir()
	s := fakeServer(t, "fake", "prompts")
	r := newRig(t, Options{Pins: pins})
	r.add(t, s)
	r.connect(t, "fake")
	for range 2 { // the server answers an error, then ends
		r.do(t, "mcp__fake__echo", `{"do":"shrink"}`)
		if got := r.Prompts(); len(got) != 1 {
			t.Fatalf("%v", got)
		}
	}
	again := newRig(t, Options{Pins: pins})
	again.add(t, s)
	if got := again.Prompts(); len(got) != 1 {
		t.Errorf("the next session has %v", got)
	}
}

// Prompts that a server announces are there without a new start.
func TestNewPrompts(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, fakeServer(t, "fake", "fresh prompts"))
	r.connect(t, "fake")
	r.do(t, "mcp__fake__echo", `{"do":"prompt"}`)
	wait(t, func() bool { return len(r.Prompts()) == 2 })
}

// So they are with a server of 2026-07-28, which tells only who subscribed, and
// with one that has prompts and no tools.
func TestNewPromptsOverHTTP(t *testing.T) {
	reg := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	var mu sync.Mutex
	offered := []Prompt{{Name: "one"}}
	changed := make(chan struct{})
	b := NewBridge(ServeOptions{
		Registry: reg, Version: "1",
		Changed: func() <-chan struct{} {
			mu.Lock()
			defer mu.Unlock()
			return changed
		},
		Offers: func(context.Context) ([]Prompt, []Resource) {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(offered), nil
		},
	})
	t.Cleanup(b.Close)
	r := newRig(t, Options{})
	r.add(t, overHTTP(t, b))
	r.connect(t, "web")
	if st := r.Status()[0]; !mcp.IsModernProtocol(st.Version) || len(r.Prompts()) != 1 {
		t.Fatalf("%+v, %v", st, r.Prompts())
	}
	// One of them may come with the list that follows the subscription itself.
	for n, name := range []string{"two", "three"} {
		mu.Lock()
		offered = append(offered, Prompt{Name: name})
		close(changed)
		changed = make(chan struct{})
		mu.Unlock()
		wait(t, func() bool { return len(r.Prompts()) == n+2 })
	}
}

func TestResourcesOfAServer(t *testing.T) {
	r := newRig(t, Options{})
	r.add(t, showing(t))
	r.connect(t, "web")
	const name = "mcp__web__read_resource"
	if s, ok := r.reg.Spec(name); !ok || s.Origin.Source != host.MCP || s.Safe() {
		t.Fatalf("%+v", s)
	}
	if got := r.do(t, name, `{}`); !strings.Contains(got, "note://one · text/plain · one · The first") {
		t.Errorf("%q", got)
	}
	res := r.call(context.Background(), name, `{"uri":"note://one"}`)
	if res.IsError || len(res.Content) != 1 || res.Content[0].Resource == nil || res.Content[0].Resource.Text != "what it says" {
		t.Errorf("%+v", res)
	}
	for uri, want := range map[string]string{"note://bad": "torn", "note://none": "not found"} {
		if res := r.call(context.Background(), name, `{"uri":"`+uri+`"}`); !res.IsError || !strings.Contains(res.Text(), want) {
			t.Errorf("%s: %q", uri, res.Text())
		}
	}
	// A server with a tool of that name keeps it.
	own := newRig(t, Options{})
	own.add(t, showing(t, tool{"read_resource", host.KindRead, text("its own")}))
	own.connect(t, "web")
	if got := own.do(t, name, `{}`); got != "its own" {
		t.Errorf("%q", got)
	}
}

func FuzzPrompts(f *testing.F) {
	f.Add([]byte(`{"name":"a","description":"b","arguments":[{"name":"x","required":true}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range prompts("s", []json.RawMessage{b, b}) {
			if len(p.Name) > maxName {
				t.Fatalf("%q", p.Name)
			}
		}
	})
}
