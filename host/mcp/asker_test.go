package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/host"
)

// lasting serves Write, about which a person may say yes until the session ends.
func lasting(t *testing.T) *Bridge {
	t.Helper()
	ask := &Asker{Show: func(a host.Ask) (Question, bool) {
		q := Question{Text: "May it write?"}
		q.Choices, q.Answers = []string{"allow once"}, []host.Answer{{Allow: true, Scope: host.Once}}
		for _, r := range a.Rules {
			q.Choices = append(q.Choices, "allow "+r.Pattern+" until the session ends")
			q.Answers = append(q.Answers, host.Answer{Allow: true, Scope: host.Session, Rule: r})
		}
		q.Default = len(q.Choices)
		q.Choices, q.Answers = append(q.Choices, "no"), append(q.Answers, host.Answer{})
		return q, true
	}}
	reg := host.New(host.Options{Gate: &host.Gate{Approver: ask}})
	if err := reg.Add(tool{"Write", host.KindEdit, text("written")}); err != nil {
		t.Fatal(err)
	}
	return bridgeOf(t, ServeOptions{Registry: reg})
}

// deciding is a person who takes the first choice that has a word in it, and
// keeps what was shown.
type deciding struct {
	word  string
	asked []mcp.ElicitationParams
}

func (d *deciding) Elicit(_ context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	d.asked = append(d.asked, r.Params)
	for _, c := range choicesOf(r.Params) {
		if strings.Contains(c, d.word) {
			return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": c}}}, nil
		}
	}
	return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "decline"}}, nil
}

func choicesOf(p mcp.ElicitationParams) []string {
	var s struct {
		Properties struct {
			Answer struct{ Enum []string }
		}
	}
	b, err := json.Marshal(p.RequestedSchema)
	if err != nil || json.Unmarshal(b, &s) != nil {
		return nil
	}
	return s.Properties.Answer.Enum
}

// What one client's person says until the session ends counts for no other
// client of the server: it is offered to the only client of a session alone.
func TestUntilTheSessionEnds(t *testing.T) {
	for _, legacy := range []bool{true, false} {
		var opts []client.ClientOption
		if legacy {
			//lint:ignore SA1019 the older era of the protocol is what this measures
			opts = append(opts, client.WithLegacyProtocolOnly())
		}
		t.Run(fmt.Sprintf("stdio legacy %v", legacy), func(t *testing.T) {
			p := &deciding{word: "session"}
			c := serveStdio(t, lasting(t), append(opts, client.WithElicitationHandler(p))...)
			for range 2 {
				if r := callTool(t, c, "Write", `{"path":"a"}`); r.IsError {
					t.Fatal(textOf(r))
				}
			}
			if len(p.asked) != 1 {
				t.Errorf("asked %d times", len(p.asked))
			}
		})
		t.Run(fmt.Sprintf("HTTP legacy %v", legacy), func(t *testing.T) {
			s := web(t, lasting(t))
			one, two := &deciding{word: "session"}, &deciding{word: "once"}
			a := httpClient(t, s.URL, legacy, client.WithElicitationHandler(one))
			b := httpClient(t, s.URL, legacy, client.WithElicitationHandler(two))
			_ = callTool(t, a, "Write", `{"path":"a"}`)
			if r := callTool(t, b, "Write", `{"path":"a"}`); r.IsError || len(two.asked) != 1 {
				t.Errorf("the other client was asked %d times: %s", len(two.asked), textOf(r))
			}
			if got := choicesOf(two.asked[0]); !slices.Equal(got, []string{"allow once", "no"}) {
				t.Errorf("offered: %q", got)
			}
		})
	}
}

// A person sees the choices in words, whatever of a schema the client shows,
// and may give them by number where all there is is a line to type in.
func TestQuestionsShowTheirChoices(t *testing.T) {
	q := Question{Text: "May it?", Choices: []string{"allow once", "allow Write(docs/**) until the session ends", "no"},
		Answers: []host.Answer{{Allow: true, Scope: host.Once}, {Allow: true, Scope: host.Session}, {}}, Default: 2}
	f := form(q)
	if got := choicesOf(f); !slices.Equal(got, q.Choices) {
		t.Errorf("the schema has %q", got)
	}
	for i, c := range q.Choices {
		if line := fmt.Sprintf("\n  %d  %s", i+1, c); !strings.Contains(f.Message, line) {
			t.Errorf("%q is not in %q", line, f.Message)
		}
	}
	said := func(answer string) host.Answer {
		return q.read(&mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept", Content: map[string]any{"answer": answer}}})
	}
	for answer, want := range map[string]host.Answer{
		"allow once": q.Answers[0], "1": q.Answers[0], q.Choices[1]: q.Answers[1], "2": q.Answers[1],
		"no": {}, "3": {}, "0": {}, "4": {}, "01": {}, "Allow once": {}, "allow": {}, "": {},
	} {
		if got := said(answer); got.Allow != want.Allow || got.Scope != want.Scope {
			t.Errorf("%q is taken for %+v", answer, got)
		}
	}
}
