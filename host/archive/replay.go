package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
)

// Replay is what became of running a transcript again.
type Replay struct {
	Answers    int         `json:"answers"` // of the model, as far as it went
	Calls      int         `json:"calls"`
	Open       int         `json:"open,omitempty"`       // of the calls: they had no result yet when the transcript was taken
	Divergence *Divergence `json:"divergence,omitempty"` // nil: it went as recorded
}

// Divergence is the first place where a run was not as recorded.
type Divergence struct {
	Record   int64  `json:"record"` // the number of the record
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// Replay runs the transcript through the loop once more, in memory, with the
// model's recorded answers and the tools' recorded results: no model is asked
// and no tool is entered. What the loop makes of them by itself (which calls
// it lets through, what it says about broken arguments, when it warns and
// stops, the order of it all) must come out as recorded. The conversation is
// shortened where it was then, with the recorded minutes.
func (t *Transcript) Replay(ctx context.Context) (Replay, error) {
	p := newPlayer(t)
	if err := p.play(ctx); err != nil {
		return Replay{}, err
	}
	return Replay{Answers: p.asked, Calls: p.calls, Open: p.open, Divergence: p.diverged}, nil
}

// player holds a transcript against a session that is run anew.
type player struct {
	script  []*turn
	session *agent.Session
	loop    *agent.Loop

	at       int // the turn that is due
	said     int // messages of the session that were compared
	steps    int // answers in this run of the loop
	steered  int // turns before this one wait in the session's queue
	asked    int
	calls    int
	open     int
	diverged *Divergence

	mu      sync.Mutex
	entered map[string]bool // calls whose tool was entered this time
}

func newPlayer(t *Transcript) *player {
	p := &player{session: agent.New("replay", nil), entered: map[string]bool{}}
	tools := host.New(host.Options{Gate: &host.Gate{Mode: host.ModeAuto}})
	for _, k := range t.turns() {
		if k.message() == nil {
			continue
		}
		p.script = append(p.script, k)
		for _, c := range k.message().Calls() {
			if !tools.Has(c.Name) {
				_ = tools.Add(recorded{p, c.Name}) // a name that is none was refused then, too
			}
		}
	}
	p.loop = &agent.Loop{
		Model: p, Tools: tools, Learn: p.learn, Retry: model.Retry{Attempts: 1}, Compact: agent.Compaction{Off: true},
		Limits: agent.Limits{Steps: len(p.script) + 1},
	}
	return p
}

// errOver ends a run where the recorded one ended.
var errOver = &model.Error{Code: model.ErrRequest, Message: "the recorded run ended here"}

func (p *player) play(ctx context.Context) error {
	for p.at < len(p.script) && p.diverged == nil {
		before := p.at
		if p.shorten(ctx); p.at > before {
			continue
		}
		var prompt []abi.Content
		if k := p.script[p.at]; p.at >= p.steered && k.message().Role == model.RoleUser && !k.at.Own {
			prompt = contents(*k.message())
		}
		p.steps = 0
		for e, err := range p.loop.Run(ctx, p.session, prompt...) {
			if e.Kind == agent.KindDone && err != nil && !errors.Is(err, errOver) && !errors.Is(err, errCut) {
				return fmt.Errorf("replaying: %w", err)
			}
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		p.compare()
		if p.diverged == nil && p.at == before {
			k := p.script[p.at]
			p.diverge(k.at.Seq, "the loop goes no further", words(k.message()), "")
		}
	}
	return nil
}

// shorten does the recorded shortenings that are due.
func (p *player) shorten(ctx context.Context) {
	for p.diverged == nil && p.at < len(p.script) && p.script[p.at].at.Kind == agent.RecordCompact {
		k := p.script[p.at]
		if err := p.session.Shortened(ctx, *k.message(), k.at.Keep); err != nil {
			p.diverge(k.at.Seq, "the conversation cannot be shortened as it was: "+err.Error(), words(k.message()), "")
			return
		}
		p.at++
		p.said = 1 + k.at.Keep
	}
}

// compare holds the session's new messages against the transcript.
func (p *player) compare() {
	messages := p.session.Messages()
	for ; p.said < len(messages) && p.diverged == nil; p.said++ {
		m := messages[p.said]
		if m.Role == model.RoleTool {
			p.results(m)
			continue
		}
		if p.at == len(p.script) && p.open > 0 {
			return // it knows more than was recorded
		}
		if p.at == len(p.script) {
			p.diverge(p.script[p.at-1].at.Seq+1, "the loop adds a message", "", words(&m))
			return
		}
		k := p.script[p.at]
		if k.at.Kind == agent.RecordCompact {
			p.diverge(k.at.Seq, "the loop goes on where the conversation was shortened", words(k.message()), words(&m))
			return
		}
		if a, b := jsonOf(k.message()), jsonOf(m); a != b {
			p.diverge(k.at.Seq, "a message differs", words(k.message()), words(&m))
			return
		}
		p.at++
	}
}

// results compares the results of the answer before.
func (p *player) results(m model.Message) {
	k := p.script[p.at-1]
	if k.at.Kind == agent.RecordCompact {
		p.diverge(k.at.Seq, "the conversation was shortened between a call and its result", words(k.message()), "")
		return
	}
	for _, b := range m.Blocks {
		p.calls++
		was, ok := k.results[b.Result.ID]
		if !ok && p.at == len(p.script) { // at work, or killed, when it was taken
			p.open++
			continue
		}
		if !ok {
			p.diverge(k.at.Seq, fmt.Sprintf("the call %q of %s has no recorded result", b.Result.ID, b.Result.Name), "", b.Result.Text())
			return
		}
		p.mu.Lock()
		entered := p.entered[b.Result.ID]
		p.mu.Unlock()
		started := k.started[b.Result.ID]
		switch {
		case entered && !started && was.Outcome == agent.Failed:
			p.diverge(was.Seq, "the loop runs a call that it had refused", was.Result.Text(), b.Result.Text())
		case !entered && started:
			// The registry refuses it before its tool, as it may have done then for
			// reasons of the tool's own.
		case bare(was.Result.Result) != bare(b.Result.Result):
			p.diverge(was.Seq, fmt.Sprintf("the result of %s differs", b.Result.Name), was.Result.Text(), b.Result.Text())
		}
		if p.diverged != nil {
			return
		}
	}
}

func (p *player) diverge(record int64, what, recorded, replayed string) {
	p.diverged = &Divergence{Record: record, What: what, Recorded: recorded, Replayed: replayed}
}

// Stream implements model.Model with the recorded answers.
func (p *player) Stream(ctx context.Context, _ model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		p.compare()
		p.shorten(ctx)
		k := p.answer()
		if k == nil {
			yield(model.Event{}, errOver)
			return
		}
		p.asked++
		p.steps++
		for _, b := range k.message().Blocks {
			if !yield(model.Event{Kind: model.KindBlock, Block: &b}, nil) {
				return
			}
		}
		calls := k.message().Calls()
		if k.at.Stop == "" && len(calls) == 0 {
			yield(model.Event{}, errCut)
			return
		}
		stop := k.at.Stop
		if stop == "" {
			stop = model.StopCalls
		}
		p.steer()
		yield(model.Event{Kind: model.KindStop, Stop: stop}, nil)
	}
}

// errCut ends an answer that was cut off when it was recorded.
var errCut = &model.Error{Code: model.ErrTruncated, Message: "the recorded answer was cut off here"}

// answer is the turn that is due, if it is an answer within the same run.
func (p *player) answer() *turn {
	if p.diverged != nil || p.at >= len(p.script) {
		return nil
	}
	k := p.script[p.at]
	if k.message().Role != model.RoleAssistant || p.steps > 0 && k.at.Step == 1 {
		return nil
	}
	return k
}

// steer queues what a person said during the step that begins.
func (p *player) steer() {
	next := p.at + 1
	for ; next < len(p.script); next++ {
		k := p.script[next]
		if k.message().Role == model.RoleAssistant {
			break
		}
		if k.at.Own || k.at.Kind == agent.RecordCompact {
			continue
		}
		if k.at.Step == 0 {
			return // it opened the next run
		}
		p.session.Steer(contents(*k.message())...)
		p.steered = next + 1
	}
}

// learn gives the instruction files that were given after the calls of the
// answer that is due.
func (p *player) learn(context.Context, *agent.Session, []model.Call) []abi.Content {
	if p.at+1 >= len(p.script) || !p.script[p.at+1].at.Own {
		return nil
	}
	content := contents(*p.script[p.at+1].message())
	if len(content) == 0 || content[0].Name != agent.Noted {
		return nil
	}
	return content
}

// recorded is a tool that answers as it did.
type recorded struct {
	p    *player
	name string
}

func (r recorded) Spec() host.Spec {
	return host.Spec{
		Name: r.name, Description: "A recorded tool.", Input: json.RawMessage(`{"type":"object"}`),
		Origin: host.Origin{Source: host.Builtin}, Kind: host.KindThink, MaxOutput: -1,
	}
}

func (r recorded) Call(_ context.Context, c host.Call) (abi.Result, error) {
	r.p.mu.Lock()
	defer r.p.mu.Unlock()
	r.p.entered[c.ID] = true
	was, ok := r.p.script[r.p.at].results[c.ID]
	if !ok {
		return abi.Errorf("No result of this call was recorded."), nil
	}
	return was.Result.Result, nil
}

// bare is a result without what the registry adds to a failure.
func bare(r abi.Result) string {
	for r.IsError && len(r.Content) > 0 {
		last := r.Content[len(r.Content)-1]
		cut, found := strings.CutSuffix(last.Text, host.RetryHint)
		if last.Type != abi.TypeText || !found {
			break
		}
		r.Content = r.Content[:len(r.Content)-1]
		if cut = strings.TrimRight(cut, "\n"); cut != "" {
			last.Text = cut
			r.Content = append(r.Content[:len(r.Content):len(r.Content)], last)
		}
	}
	if len(r.Content) == 0 {
		r.Content = nil
	}
	return jsonOf(r)
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func contents(m model.Message) []abi.Content {
	var out []abi.Content
	for _, b := range m.Blocks {
		if b.Content != nil {
			out = append(out, *b.Content)
		}
	}
	return out
}

// words is a message as text.
func words(m *model.Message) string {
	s := m.Text()
	for _, c := range m.Calls() {
		s += fmt.Sprintf("\n%s %s", c.Name, c.Args)
	}
	return strings.TrimSpace(s)
}
