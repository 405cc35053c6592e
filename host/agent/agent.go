// Package agent runs a conversation between a person, a model and tools: the
// Loop takes steps, the Session is what was said, the Journal is where each
// part of it is committed before the next step acts on it.
//
// The loop keeps one promise above all: every call that a model makes gets
// exactly one result, whatever happens in between (an error, a cancellation,
// the end of the process), so that a session can always go on.
package agent

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/model"
)

// Loop is an agent: a model with tools and limits. It holds no state of a
// conversation, so that one Loop may serve many sessions at once. Its fields
// must not change while it runs.
type Loop struct {
	Model   model.Model
	Info    model.Info // of Model; Window bounds the context, 0: not known
	Tools   *host.Registry
	System  string      // see Surroundings.Prompt
	Format  host.Format // of the tools' schemas, as the provider wants it; default FormatAnthropic, which most take
	Agent   string      // the name that calls carry; "" for the main agent
	Limits  Limits
	Effort  model.Effort
	Search  *model.Search   // the provider's own web search, in the place of Stands
	Stands  string          // the tool that is not offered where Search is; "": none
	Schema  json.RawMessage // JSON Schema of the final answer, see model.Request
	Compact Compaction
	Retry   model.Retry  // how failed requests are repeated
	Price   *model.Price // nil: costs are not known, and Limits.Cost stops nothing
	// Learn gives what the model is to know of the files that these calls, which
	// ended well, were about: the loop adds it as its own words, see
	// Session.Instruct. Nil: nothing.
	Learn func(ctx context.Context, s *Session, calls []model.Call) []abi.Content
	// Release ends what Runs.Open opened for a sub-agent's loop. Runs calls it
	// once, after the last call has ended. Nil: nothing.
	Release func()
	// Brought are the tools that Runs.Open brought for a sub-agent beside its
	// parent's: of servers that its definition declares. Nil: none.
	Brought func(host.Spec) bool

	depth int  // of sub-agents
	up    *run // the parent's, whose budget this one shares
}

// Limits bound one Run. A zero field means its default.
type Limits struct {
	Steps    int     // requests to the model; default 100
	Parallel int     // calls at once; default 8
	Repeats  int     // identical calls before the model is told; it is stopped at twice as many; default 3
	Answer   int64   // tokens of one answer; default: the provider's
	Tokens   int64   // of all requests together; default: no bound
	Cost     float64 // in US dollars, all requests together; default: no bound
}

// Run adds the prompt to the session and works until the model has nothing
// more to do. An empty prompt goes on where the session stopped.
//
// The last event is KindDone, and only it may come with an error; what the
// session holds then is whole and can be gone on with. Leaving the range
// cancels the run. A session runs once at a time (ErrBusy).
func (l *Loop) Run(ctx context.Context, s *Session, prompt ...abi.Content) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		r := &run{loop: l, session: s, yield: yield}
		r.start(ctx, prompt)
	}
}

// search is the provider's own search, as long as every call of the tool in
// whose place it stands would go ahead: it can do no more than that tool.
func (l *Loop) search() *model.Search {
	if l.Search == nil || l.Stands == "" {
		return l.Search
	}
	if s, ok := l.spec(l.Stands); ok && l.Tools.Gate().Unasked(s) {
		return l.Search
	}
	return nil
}

// offer lists the tools that the model is shown: those that the mode of the
// moment offers, without the one whose place Search takes. A tool whose schema cannot be told is left out; err names it.
func (l *Loop) offer() (out []model.Tool, err error) {
	if l.Tools == nil {
		return nil, nil
	}
	gate, native := l.Tools.Gate(), l.search() != nil
	shown := l.Tools.Filter(func(s host.Spec) bool {
		return !s.Defer && gate.Offers(s) && !(native && s.Name == l.Stands)
	})
	defs, err := shown.Definitions(or(l.Format, host.FormatAnthropic))
	for _, d := range defs {
		out = append(out, model.Tool{Name: d.Name, Description: d.Description, Input: d.Input})
	}
	return out, err
}

// unseen stands in the place of an image, for a model that takes none.
const unseen = "(An image is here, which you cannot be shown. A tool that describes images may help.)"

// shown are the messages as the model can take them. One that takes no images
// would refuse the whole conversation for a single one.
func (l *Loop) shown(messages []model.Message) []model.Message {
	if !l.Info.TextOnly {
		return messages
	}
	out := slices.Clone(messages)
	for i, m := range out {
		if !slices.ContainsFunc(m.Blocks, pictured) {
			continue
		}
		out[i].Blocks = slices.Clone(m.Blocks)
		for k, b := range m.Blocks {
			switch {
			case !pictured(b):
			case b.Result != nil:
				res := *b.Result
				res.Content = slices.Clone(res.Content)
				for n := range res.Content {
					res.Content[n] = blind(res.Content[n])
				}
				out[i].Blocks[k].Result = &res
			default:
				c := blind(*b.Content)
				out[i].Blocks[k].Content = &c
			}
		}
	}
	return out
}

func pictured(b model.Block) bool {
	return b.Content != nil && b.Content.Type == abi.TypeImage ||
		b.Result != nil && slices.ContainsFunc(b.Result.Content, func(c abi.Content) bool { return c.Type == abi.TypeImage })
}

func blind(c abi.Content) abi.Content {
	if c.Type != abi.TypeImage {
		return c
	}
	return abi.TextBlock(unseen)
}

// parallel says whether a call may run beside its neighbours: those that say
// so, and those that only look.
func (l *Loop) parallel(name string) bool {
	s, ok := l.spec(name)
	return !ok || s.Parallel || looks(s) || s.Kind == host.KindFetch
}

func (l *Loop) spec(name string) (host.Spec, bool) {
	if l.Tools == nil {
		return host.Spec{}, false
	}
	return l.Tools.Spec(name)
}

// looks reports a tool that changes nothing.
func looks(s host.Spec) bool {
	return s.Kind == host.KindRead || s.Kind == host.KindSearch || s.Kind == host.KindThink
}
