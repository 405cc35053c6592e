package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/host"
)

// Question is a question of the gate as a person is shown it.
type Question struct {
	Text    string
	Choices []string
	Answers []host.Answer // of each choice
	Default int           // the refusal
}

// Asker is the Approver of a registry that is served: it asks through the MCP
// client that made the call, as elicitation, where the client has that. It is
// safe for concurrent use.
type Asker struct {
	// Show makes the question; ok is false when it cannot be shown whole.
	Show func(host.Ask) (q Question, ok bool)
	// Expire is when an unanswered question is a no; 0 is 10 minutes.
	Expire time.Duration
}

var errNobody = errors.New("this client cannot ask a person (it has no elicitation)")

// Approve implements host.Approver.
func (a *Asker) Approve(ctx context.Context, ask host.Ask) (host.Answer, error) {
	p, ok := ctx.Value(askKey{}).(*peer)
	if !ok || !p.elicits {
		return host.Answer{}, errNobody
	}
	q, ok := a.Show(ask)
	if !p.alone && p.memory == nil {
		q = q.without(host.Session)
	}
	if !ok || len(q.Choices) == 0 {
		return host.Answer{}, errors.New("the question is too long to be shown whole")
	}
	ctx, cancel := context.WithTimeout(ctx, a.life())
	defer cancel()
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q", q.Text, q.Choices)))
	// A sub-agent's or a plugin's question comes after whatever those did.
	own := p.exchange != nil && ask.Call.ID == p.exchange.call && ask.Call.Caller.Plugin == "" && ask.Call.Caller.Depth == 0
	res, err := p.ask(ctx, form(q), sum[:], own && ask.Use == nil, own && !ask.Acted)
	if err != nil {
		return host.Answer{}, err
	}
	return q.read(res), nil
}

// without leaves out the choices that would hold for a time that means nothing
// to the one who is asked.
func (q Question) without(s host.Scope) Question {
	out := Question{Text: q.Text}
	for i, a := range q.Answers {
		if a.Allow && a.Scope == s {
			continue
		}
		if i == q.Default {
			out.Default = len(out.Choices)
		}
		out.Choices, out.Answers = append(out.Choices, q.Choices[i]), append(out.Answers, a)
	}
	return out
}

// form is the question as the flat object that elicitation knows. The choices
// are the values themselves: what else could name them (enumNames, oneOf) comes
// and goes with the protocol's versions, and many clients show none of it. The
// message lists them for clients that show a line to type in.
func form(q Question) mcp.ElicitationParams {
	text := q.Text + "\n"
	for i, c := range q.Choices {
		text += fmt.Sprintf("\n  %d  %s", i+1, c)
	}
	return mcp.ElicitationParams{Message: text, RequestedSchema: map[string]any{
		"type": "object", "required": []string{"answer"},
		"properties": map[string]any{"answer": map[string]any{
			"type": "string", "title": "Answer", "enum": q.Choices, "default": q.Choices[q.Default],
		}},
	}}
}

// read takes an answer, the words of a choice or its number; everything else is a no.
func (q Question) read(r *mcp.ElicitationResult) host.Answer {
	if r == nil || r.Action != mcp.ElicitationResponseActionAccept {
		return host.Answer{}
	}
	fields, _ := r.Content.(map[string]any)
	text, _ := fields["answer"].(string)
	if i := slices.Index(q.Choices, text); i >= 0 {
		return q.Answers[i]
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(q.Answers) || strconv.Itoa(n) != text {
		return host.Answer{}
	}
	return q.Answers[n-1]
}

// Elicit has the client's person answer a question of an MCP server or a
// plugin that a call of the client's is using. text says whose question it is.
func (a *Asker) Elicit(ctx context.Context, text string, e Elicitation) (Reply, error) {
	p, ok := ctx.Value(askKey{}).(*peer)
	if !ok || !p.elicits {
		return Reply{}, errNobody
	}
	ctx, cancel := context.WithTimeout(ctx, a.life())
	defer cancel()
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s", text, e.Schema))
	res, err := p.ask(ctx, mcp.ElicitationParams{Message: text, RequestedSchema: e.Schema}, sum[:], false, false)
	if err != nil || res.Action != mcp.ElicitationResponseActionAccept {
		return Reply{}, err
	}
	content, _ := res.Content.(map[string]any)
	if content == nil {
		content = map[string]any{}
	}
	return Reply{Accept: true, Content: content}, nil
}

func (a *Asker) life() time.Duration { return cmp.Or(a.Expire, answerLife) }

// askKey is for the *peer of a call in its context.
type askKey struct{}

// peer is the client behind one call: how a person is reached through it.
type peer struct {
	srv      *server.MCPServer
	elicits  bool
	alone    bool      // nobody else has this session: what its person says of it holds
	memory   *answers  // what the person said until the client's own session ends; nil: it has none
	exchange *exchange // nil: the client answers within a request
}

func (p *peer) ask(ctx context.Context, form mcp.ElicitationParams, sum []byte, before, anew bool) (*mcp.ElicitationResult, error) {
	if p.exchange != nil {
		return p.exchange.ask(ctx, form, sum, before, anew)
	}
	res, err := p.srv.RequestElicitation(ctx, mcp.ElicitationRequest{Params: form})
	if err == nil && res == nil {
		err = errNobody
	}
	return res, err
}
