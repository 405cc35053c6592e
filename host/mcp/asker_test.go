package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
)

// lasting serves Write, about which a person may say yes until the session ends.
func lasting(t *testing.T, shared ...Shared) *Bridge {
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
	o := ServeOptions{Registry: reg}
	if len(shared) > 0 {
		o.Shared = shared[0]
	}
	return bridgeOf(t, o)
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

// The client of standard streams has the session for itself.
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
	}
}

// Over HTTP a server has several clients. What one's person says until the
// session ends counts for that client's session, at whichever server, and for no
// other; a client of 2026-07-28 has no session, and is not offered it.
func TestUntilTheSessionEndsOverHTTP(t *testing.T) {
	memory := new(local)
	at, other := web(t, lasting(t, memory)), web(t, lasting(t, memory))
	one, two, today := &deciding{word: "session"}, &deciding{word: "once"}, &deciding{word: "once"}
	a := httpClient(t, at.URL, true, client.WithElicitationHandler(one))
	b := httpClient(t, at.URL, true, client.WithElicitationHandler(two))
	c := httpClient(t, at.URL, false, client.WithElicitationHandler(today))
	for _, x := range []*client.Client{a, b, a, b, c, a} {
		if r := callTool(t, x, "Write", `{"path":"a"}`); r.IsError {
			t.Fatal(textOf(r))
		}
	}
	if len(one.asked) != 1 || len(two.asked) != 2 || len(today.asked) != 1 {
		t.Errorf("asked %d, %d and %d times", len(one.asked), len(two.asked), len(today.asked))
	}
	if got := choicesOf(two.asked[0]); !slices.Equal(got, []string{"allow once", "allow Write(a) until the session ends", "no"}) {
		t.Errorf("a client with a session is offered %q", got)
	}
	if got := choicesOf(today.asked[0]); !slices.Equal(got, []string{"allow once", "no"}) {
		t.Errorf("a client without is offered %q", got)
	}
	id := a.GetTransport().GetSessionId()
	write := func(url, id string) string {
		t.Helper()
		s := &session{t: t, url: url, id: id}
		r := s.send(http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"Write","arguments":{"path":"a"}}}`)
		defer r.Body.Close()
		text, _ := bufio.NewReader(r.Body).ReadString('}')
		return text
	}
	if got := write(other.URL, id); !strings.Contains(got, "written") {
		t.Errorf("another server asks again: %s", got)
	}
	if got := write(other.URL, b.GetTransport().GetSessionId()); !strings.Contains(got, "elicitation/create") {
		t.Errorf("another server does not ask the other client: %s", got)
	}
	if got := (&session{t: t, url: at.URL, id: id}).status(http.MethodDelete, ""); got != http.StatusOK {
		t.Fatalf("the session ends with %d", got)
	}
	if got := write(at.URL, id); strings.Contains(got, "written") {
		t.Errorf("after its end: %s", got)
	}
}

// What cannot be read back allows nothing, and answers without end are not kept.
func TestAnswersOfASession(t *testing.T) {
	memory := new(local)
	a, b := &answers{memory, "a", time.Now().Add(time.Hour)}, &answers{memory, "b", time.Now().Add(time.Hour)}
	grant := policy.Grant{Cap: abi.NetHTTP, Scope: []string{"https://a.example GET"}}
	for _, r := range []host.Rule{{Pattern: "Write"}, {Plugin: "acme", Grant: &grant}} {
		if err := a.Remember(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.Rules(); len(got) != 2 || got[0].Pattern != "Write" || got[1].String() != (host.Rule{Plugin: "acme", Grant: &grant}).String() || len(b.Rules()) != 0 {
		t.Errorf("kept: %+v and %+v", got, b.Rules())
	}
	if _, err := memory.Put(b.key(0), []byte("{"), b.until); err != nil {
		t.Fatal(err)
	}
	if err := b.Remember(t.Context(), host.Rule{Pattern: "Read"}); err != nil || len(b.Rules()) != 1 {
		t.Errorf("%v, %+v", err, b.Rules())
	}
	var err error
	for range maxAnswers {
		err = a.Remember(t.Context(), host.Rule{Pattern: "Edit"})
	}
	if err == nil || len(a.Rules()) != maxAnswers {
		t.Errorf("%d answers are kept: %v", len(a.Rules()), err)
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
