package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"sync"
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

var (
	errNobody  = errors.New("this client cannot ask a person (it has no elicitation)")
	errPending = errors.New("the question went to the client, which will call again with the answer")
)

// Approve implements host.Approver.
func (a *Asker) Approve(ctx context.Context, ask host.Ask) (host.Answer, error) {
	p, ok := ctx.Value(askKey{}).(*peer)
	if !ok || !p.elicits {
		return host.Answer{}, errNobody
	}
	q, ok := a.Show(ask)
	if !ok || len(q.Choices) == 0 {
		return host.Answer{}, errors.New("the question is too long to be shown whole")
	}
	life := a.Expire
	if life == 0 {
		life = 10 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	if p.modern {
		return p.roundTrip(ask, q)
	}
	res, err := p.srv.RequestElicitation(ctx, mcp.ElicitationRequest{Params: form(q)})
	if err != nil {
		return host.Answer{}, err
	}
	return q.read(res), nil
}

// form is the question as the flat object that elicitation knows.
func form(q Question) mcp.ElicitationParams {
	values := make([]string, len(q.Choices))
	for i := range values {
		values[i] = strconv.Itoa(i + 1)
	}
	return mcp.ElicitationParams{Message: q.Text, RequestedSchema: map[string]any{
		"type": "object", "required": []string{"answer"},
		"properties": map[string]any{"answer": map[string]any{
			"type": "string", "title": "Answer", "enum": values, "enumNames": q.Choices, "default": strconv.Itoa(q.Default + 1),
		}},
	}}
}

// read takes an answer; everything that is not one of the choices is a no.
func (q Question) read(r *mcp.ElicitationResult) host.Answer {
	if r == nil || r.Action != mcp.ElicitationResponseActionAccept {
		return host.Answer{}
	}
	fields, _ := r.Content.(map[string]any)
	text, _ := fields["answer"].(string)
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > len(q.Answers) || strconv.Itoa(n) != text {
		return host.Answer{}
	}
	return q.Answers[n-1]
}

// askKey is for the *peer of a call in its context.
type askKey struct{}

// peer is the client behind one call: how a person is reached through it.
type peer struct {
	srv     *server.MCPServer
	seal    seal
	elicits bool
	modern  bool // 2026-07-28: a question is a result, its answer comes with a new call

	tool string
	args [sha256.Size]byte
	// state and responses are what a new call brought back.
	state     string
	responses mcp.InputResponses

	mu      sync.Mutex
	pending *mcp.CallToolResult
}

const questionID = "consent"

// roundTrip answers from what the call brought along, or leaves the question
// for the result. Uses inside a call are not asked about in this way: the call
// would have to be carried out twice.
func (p *peer) roundTrip(ask host.Ask, q Question) (host.Answer, error) {
	if ask.Use != nil {
		return host.Answer{}, errors.New("with this client's protocol a person can be asked before a call only, not during it")
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q", q.Text, q.Choices)))
	if p.state != "" {
		st, err := p.seal.answered(p.state)
		if err == nil && st.Tool == p.tool && bytes.Equal(st.Args, p.args[:]) && bytes.Equal(st.Question, sum[:]) {
			if r := server.ElicitationResponse(p.responses, questionID); r != nil {
				return q.read(r), nil
			}
		}
	}
	state := p.seal.question(pendingState{Tool: p.tool, Args: p.args[:], Question: sum[:], Until: time.Now().Add(answerLife).Unix()})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pending = server.NewInputRequestBuilder(state).Elicit(questionID, form(q)).ToolResult()
	return host.Answer{}, errPending
}

func (p *peer) result() *mcp.CallToolResult {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pending
}
