package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/elfhost/elfhost/abi"
)

const (
	maxWaiting = 64        // calls that wait for a person between two requests
	maxState   = 256 << 10 // bytes of what a client keeps for us
)

var (
	errPending = errors.New("the question went to the client, which will call again with the answer")
	errWaiting = fmt.Errorf("more than %d calls wait for an answer", maxWaiting)
)

// rounds are the calls that wait here for their clients to call again. What
// waits is in no way needed by another server with the same key: that one
// carries the call out anew, if nothing was changed before the question.
type rounds struct {
	seal   seal
	shared Shared

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	waiting map[string]waiting // by the id of the question
}

type waiting struct {
	x      *exchange
	answer chan *mcp.ElicitationResult // has room for one
}

// exchange is one call of a client of 2026-07-28: a question is the result of
// a request, and its answer comes with the next one (SEP-2322).
type exchange struct {
	rounds *rounds
	call   string // the id of the call, as Invoke has it
	tool   string
	args   [sha256.Size]byte
	steps  *reporter

	cancel context.CancelFunc
	asked  chan *mcp.CallToolResult // to whichever request waits for the outcome
	over   chan struct{}            // closed when what follows is set
	result *mcp.CallToolResult

	turn sync.Mutex // one question at a time
	// given are the answers so far, by the digest of their questions; fresh are
	// those of them that nobody has asked for in this run.
	given, fresh map[string]*mcp.ElicitationResult

	mu      sync.Mutex
	pending *mcp.CallToolResult // a question before the call: it ends, and is made anew
}

// round carries out one request of such a client: from the begin, or on from
// the question that it brings the answer to.
func (b *Bridge) round(ctx context.Context, q request, p mcp.MultiRoundTripParams) *mcp.CallToolResult {
	x, err := b.take(ctx, q, p)
	if err != nil {
		return answerOf(abi.Errorf("The tool %s was not called: %v. Call it again without requestState and inputResponses: the person is then asked anew.", q.tool, err), nil)
	}
	select {
	case <-x.over:
		return x.result
	case r := <-x.asked:
		return r
	case <-ctx.Done():
		x.cancel()
		<-x.over
		return x.result
	}
}

// take finds the call that a request goes on with, or begins one.
func (b *Bridge) take(ctx context.Context, q request, p mcp.MultiRoundTripParams) (*exchange, error) {
	x := &exchange{
		rounds: &b.rounds, tool: q.tool, args: sha256.Sum256(q.args), asked: make(chan *mcp.CallToolResult),
		over: make(chan struct{}), given: map[string]*mcp.ElicitationResult{},
	}
	if p.RequestState == "" {
		return x, b.begin(ctx, x, q)
	}
	st, err := b.seal.answered(p.RequestState)
	switch {
	case err != nil:
		return nil, fmt.Errorf("its requestState cannot be taken: %w", err)
	case st.Tool != x.tool || !bytes.Equal(st.Args, x.args[:]):
		return nil, errors.New("the answer was given for a call with another tool or other arguments")
	}
	r := server.ElicitationResponse(p.InputResponses, st.ID)
	if r == nil {
		return nil, errors.New("the answer to the question is missing in inputResponses")
	}
	switch first, err := b.rounds.shared.Put("answer-"+st.ID, nil, time.Unix(st.Until, 0)); {
	case err != nil:
		return nil, fmt.Errorf("whether its answer was taken already cannot be known: %w", err)
	case !first:
		return nil, errors.New("this answer was taken already")
	}
	if w, ok := b.rounds.leave(st.ID); ok {
		w.x.steps.follow(ctx, q.token)
		w.answer <- r
		return w.x, nil
	}
	if !st.Anew {
		return nil, errors.New("it was begun by a server that does not wait for the answer any more, and may have had effects already: check before you repeat it")
	}
	maps.Copy(x.given, st.Given)
	x.given[string(st.Question)] = r
	x.fresh = maps.Clone(x.given)
	return x, b.begin(ctx, x, q)
}

// begin carries the call out beside its first request, whose end it may outlive.
func (b *Bridge) begin(ctx context.Context, x *exchange, q request) error {
	b.rounds.mu.Lock()
	defer b.rounds.mu.Unlock()
	if b.rounds.closed {
		return errors.New("the server is closing")
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	x.cancel = cancel
	x.steps = b.reporter(ctx, q.token)
	stop := context.AfterFunc(b.life, cancel)
	q.peer.exchange, q.steps = x, x.steps
	b.rounds.running.Go(func() {
		defer close(x.over)
		defer cancel()
		defer stop()
		res, refused := b.invoke(inner, q)
		if x.result = x.question(); x.result == nil {
			x.result = answerOf(res, refused)
		}
	})
	return nil
}

// beside runs f, which ends with the bridge, unless that is closed already.
func (r *rounds) beside(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.running.Go(f)
	}
	return !r.closed
}

// close ends what waits.
func (r *rounds) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.running.Wait()
}

// wait keeps a call until its question is answered, or leave is called.
func (r *rounds) wait(id string, x *exchange) (answer <-chan *mcp.ElicitationResult, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= maxWaiting {
		return nil, errWaiting
	}
	if r.waiting == nil {
		r.waiting = map[string]waiting{}
	}
	w := waiting{x, make(chan *mcp.ElicitationResult, 1)}
	r.waiting[id] = w
	return w.answer, nil
}

func (r *rounds) leave(id string) (w waiting, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, ok = r.waiting[id]
	delete(r.waiting, id)
	return w, ok
}

// ask has the client ask. The answer counts for this very question, within this
// very call. anew says that the call can be made once more from the begin, by
// whoever gets the answer; before, that nothing of it was done.
func (x *exchange) ask(ctx context.Context, form mcp.ElicitationParams, sum []byte, before, anew bool) (*mcp.ElicitationResult, error) {
	x.turn.Lock()
	defer x.turn.Unlock()
	if r := x.fresh[string(sum)]; r != nil {
		delete(x.fresh, string(sum))
		return r, nil
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(answerLife)
	}
	st := pendingState{ID: rand.Text(), Tool: x.tool, Args: x.args[:], Question: sum, Anew: anew, Until: until.Unix()}
	if anew {
		st.Given = x.given
	}
	state := x.rounds.seal.question(st)
	if len(state) > maxState {
		return nil, errors.New("the answers that were given before are too long to be kept")
	}
	result := server.NewInputRequestBuilder(state).Elicit(st.ID, form).ToolResult()
	if before {
		x.mu.Lock()
		x.pending = result
		x.mu.Unlock()
		return nil, errPending
	}
	answer, err := x.rounds.wait(st.ID, x)
	if err != nil {
		return nil, err
	}
	defer x.rounds.leave(st.ID)
	x.steps.pause()
	select {
	case x.asked <- result:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case r := <-answer:
		x.given[string(sum)] = r
		return r, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// question is the one for which the call ended before it began, or nil.
func (x *exchange) question() *mcp.CallToolResult {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.pending
}
