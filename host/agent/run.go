package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// run is one Run. Its methods are entered by the goroutine that ranges over
// the events; calls work in goroutines of their own, see calls.go.
type run struct {
	loop    *Loop
	session *Session
	yield   func(Event, error) bool

	cancel context.CancelCauseFunc
	gone   bool // nobody takes events any more
	step   int
	before Usage // of the session when the run began
	guard  guard
	packed int // compactions since the model last answered

	drafted bool // pieces of an answer are kept that have no record yet
}

// errOver is why the context of a run ends when the run does.
var errOver = errors.New("the run is over")

// start runs the steps and ends with KindDone.
func (r *run) start(ctx context.Context, prompt []abi.Content) {
	if err := r.session.acquire(); err != nil {
		r.yield(Event{Kind: KindDone, Stop: StopError}, err)
		return
	}
	defer r.session.release()
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(errOver)
	defer context.AfterFunc(ctx, func() { r.session.cancelled(context.Cause(ctx)) })()
	r.before = r.session.Usage()
	r.guard.limit = or(r.loop.Limits.Repeats, 3)

	done, err := r.steps(ctx, prompt)
	done.Kind, done.Step = KindDone, r.step
	if done.Stop == StopCancelled {
		err = nil // a person's wish is not a failure
	}
	usage := r.session.Usage()
	done.Usage = &usage
	if !r.gone {
		r.yield(done, err)
	}
}

// emit shows an event. When the front end has left, the run is cancelled but
// still brings its session into order.
func (r *run) emit(e Event) {
	if r.gone {
		return
	}
	e.Step = or(e.Step, r.step)
	if !r.yield(e, nil) {
		r.gone = true
		r.cancel(context.Canceled)
	}
}

// steps is the loop.
func (r *run) steps(ctx context.Context, prompt []abi.Content) (Event, error) {
	if len(prompt) > 0 {
		if err := r.say(ctx, prompt); err != nil {
			return Event{Stop: StopError}, err
		}
	} else if r.said() && !r.session.Steered() {
		// Providers refuse to continue their own words, or take them for a prefix.
		if err := r.remark(ctx, "Go on."); err != nil {
			return Event{Stop: StopError}, err
		}
	}
	for {
		if err := r.steer(ctx); err != nil {
			return Event{Stop: StopError}, err
		}
		if stop := r.exhausted(ctx); stop != "" {
			return Event{Stop: stop}, nil
		}
		r.step++
		turn, err := r.answer(ctx)
		if err != nil {
			return r.fail(ctx, turn, err)
		}
		r.packed = 0
		stop, text, err := r.act(ctx, turn)
		if err != nil {
			return Event{Stop: StopError}, err
		}
		if stop != "" && !(stop == StopEnd && r.session.Steered()) {
			return Event{Stop: stop, Text: text}, nil
		}
	}
}

// say commits a message of the person, which a cancellation does not lose.
func (r *run) say(ctx context.Context, content []abi.Content) error {
	m := model.User(content...)
	ctx, cancel := settling(ctx)
	defer cancel()
	return r.session.commit(ctx, Record{Kind: RecordMessage, Step: r.step, Message: &m})
}

// remark commits what the loop itself has to say to the model.
func (r *run) remark(ctx context.Context, text string) error {
	m := model.User(abi.Content{Type: abi.TypeText, Name: own, Text: text})
	ctx, cancel := settling(ctx)
	defer cancel()
	return r.session.commit(ctx, Record{Kind: RecordMessage, Step: r.step, Message: &m, Own: true})
}

// steer puts the queued messages of the person into the conversation.
func (r *run) steer(ctx context.Context) error {
	for {
		content, ok := r.session.unqueue()
		if !ok {
			return nil
		}
		said := content(ctx)
		if err := r.say(ctx, said); err != nil {
			return err
		}
		r.emit(Event{Kind: KindSteer, Text: spoken(said)})
	}
}

// said reports whether the model spoke last.
func (r *run) said() bool {
	messages := r.session.Messages()
	return len(messages) > 0 && messages[len(messages)-1].Role == model.RoleAssistant
}

// exhausted says which limit forbids a further request.
func (r *run) exhausted(ctx context.Context) Stop {
	switch {
	case ctx.Err() != nil:
		return StopCancelled
	case r.step >= or(r.loop.Limits.Steps, 100):
		return StopSteps
	}
	for up := r; up != nil; up = up.loop.up {
		if stop := up.spent(); stop != "" {
			return stop
		}
	}
	return ""
}

// spent says which budget is used up; what children used is in it.
func (r *run) spent() Stop {
	limits, used := r.loop.Limits, r.session.Usage()
	switch {
	case limits.Tokens > 0 && used.Total()-r.before.Total() >= limits.Tokens:
		return StopTokens
	case limits.Cost > 0 && used.Cost-r.before.Cost >= limits.Cost:
		return StopCost
	}
	return ""
}

// ask sends the conversation and shows the answer as it comes. The turn is
// never nil.
func (r *run) ask(ctx context.Context) (*model.Turn, error) {
	turn := &model.Turn{}
	if err := r.void(ctx); err != nil {
		return turn, err
	}
	r.emit(Event{Kind: KindStep})
	tools, err := r.loop.offer()
	if err != nil && r.step == 1 {
		r.emit(Event{Kind: KindNote, Text: fmt.Sprintf("The model is not offered every tool: %v", err)})
	}
	req := model.Request{
		System: r.loop.System, Messages: r.loop.shown(r.session.Messages()), Tools: tools,
		MaxTokens: r.loop.Limits.Answer, Effort: r.loop.Effort, Search: r.loop.search(),
		Schema: r.loop.Schema, CacheKey: r.session.ID,
	}
	for e, err := range r.loop.Retry.Wrap(r.loop.Model).Stream(ctx, req) {
		if err != nil {
			return turn, err
		}
		turn.Add(e)
		if err := r.draft(ctx, e); err != nil {
			return turn, err
		}
		r.show(e)
		if ctx.Err() != nil {
			return turn, model.Cancelled("", ctx)
		}
	}
	if turn.Stop == "" {
		return turn, &model.Error{Code: model.ErrTruncated}
	}
	return turn, nil
}

// draft keeps what is about to be shown.
func (r *run) draft(ctx context.Context, e model.Event) error {
	p := Piece{Text: e.Text}
	switch e.Kind {
	case model.KindRetry:
		return r.void(ctx)
	case model.KindText:
		p.Kind = KindText
	case model.KindThinking:
		p.Kind = KindThinking
	case model.KindRefusal:
		p.Kind = KindRefusal
	}
	if p.Kind == "" || p.Text == "" {
		return nil
	}
	r.drafted = true
	return r.session.draft(ctx, p)
}

// void drops what draft kept.
func (r *run) void(ctx context.Context) error {
	if !r.drafted {
		return nil
	}
	r.drafted = false
	return r.session.draft(ctx, Piece{})
}

// show passes on what a front end wants of the model's events.
func (r *run) show(e model.Event) {
	switch e.Kind {
	case model.KindText:
		r.emit(Event{Kind: KindText, Text: e.Text})
	case model.KindThinking:
		r.emit(Event{Kind: KindThinking, Text: e.Text})
	case model.KindRefusal:
		r.emit(Event{Kind: KindRefusal, Text: e.Text})
	case model.KindSearch:
		r.emit(Event{Kind: KindSearch, Text: e.Text})
	case model.KindCallStart:
		r.emit(Event{Kind: KindWriting, Call: e.Call})
	case model.KindRate:
		r.emit(Event{Kind: KindRate, Rate: e.Rate})
	case model.KindRetry:
		r.emit(Event{Kind: KindRetry, Retry: e.Retry})
	}
}

// fail ends a run whose request failed, and keeps the text that the person
// has already seen.
func (r *run) fail(ctx context.Context, turn *model.Turn, err error) (Event, error) {
	done := Event{Stop: StopError}
	if ctx.Err() != nil || errors.Is(err, model.ErrCancelled) {
		done.Stop = StopCancelled
	}
	if m, ok := turn.Partial(); ok {
		if jerr := r.keep(ctx, m, turn.Usage, ""); jerr != nil {
			return Event{Stop: StopError}, errors.Join(err, jerr)
		}
	}
	return done, err
}

// keep commits an answer of the model with why it stopped and what it cost.
func (r *run) keep(ctx context.Context, m model.Message, u model.Usage, stop model.StopReason) error {
	if u.Total() == 0 { // the server does not count
		u = model.Usage{Input: r.loop.filled(r.session), Output: estimate([]model.Message{m})}
	}
	ctx, cancel := settling(ctx)
	defer cancel()
	err := r.session.bill(ctx, Record{Kind: RecordMessage, Step: r.step, Message: &m, Model: r.loop.Info.ID, Stop: stop}, func(s *Usage) {
		s.Usage = s.Usage.Plus(u)
		s.Context = u.Total()
		s.Steps++
		if r.loop.Price != nil {
			s.Cost += r.loop.Price.Cost(u)
		}
	})
	if err == nil {
		r.drafted = false // the record took its place
		usage := r.session.Usage()
		r.emit(Event{Kind: KindUsage, Usage: &usage})
	}
	return err
}

// act commits the answer, runs its calls, and says whether the run is over.
func (r *run) act(ctx context.Context, turn *model.Turn) (Stop, string, error) {
	m := turn.Message
	m.Role = model.RoleAssistant
	if strings.TrimSpace(turn.Refusal) != "" { // it was shown, so it stays
		c := abi.TextBlock(turn.Refusal)
		m.Blocks = append(m.Blocks[:len(m.Blocks):len(m.Blocks)], model.Block{Content: &c})
	}
	m.Blocks = r.clean(m.Blocks)
	if len(m.Blocks) == 0 {
		if turn.Stop == model.StopRefusal {
			return StopRefusal, "", nil
		}
		r.emit(Event{Kind: KindNote, Text: "The model ended its answer without saying anything."})
		return StopEnd, "", nil
	}
	if err := r.keep(ctx, m, turn.Usage, turn.Stop); err != nil {
		return "", "", err
	}
	calls := m.Calls()
	if len(calls) > 0 {
		return r.calls(ctx, calls, turn.Stop)
	}
	switch turn.Stop {
	case model.StopPause:
		return "", "", nil
	case model.StopRefusal:
		return StopRefusal, turn.Refusal, nil
	case model.StopLength, model.StopWindow:
		return StopLength, "", nil
	}
	return StopEnd, "", nil
}

// clean drops blocks that say nothing, and gives calls an ID of their own
// where the model, or a server that imitates one, gave none or one twice.
func (r *run) clean(blocks []model.Block) []model.Block {
	here := map[string]bool{}
	var out []model.Block
	for i, b := range blocks {
		if empty(b) {
			continue
		}
		if b.Call != nil {
			c := *b.Call
			taken, n := r.session.used(c.ID)
			for ; c.ID == "" || taken || here[c.ID]; n++ {
				c.ID = fmt.Sprintf("call_%d_%d_%d", n, r.step, i)
				taken, _ = r.session.used(c.ID)
			}
			here[c.ID] = true
			b.Call = &c
		}
		out = append(out, b)
	}
	return out
}

// settling is a context for bringing a session into order after its run was
// cancelled: it outlives the cancellation, but not for long.
func settling(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
}

// or gives v, or its default where v is zero.
func or[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}
