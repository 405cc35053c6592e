package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// mark is what a script leaves in the transcript: its place, as the native
// part of the first block of each answer.
type mark struct {
	Turn int               `json:"turn"` // next one in the order
	Vars map[string]string `json:"vars,omitempty"`
}

// Stream plays the turn that is due.
func (s *Script) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		t, m, err := s.next(r)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		p := player{ctx: ctx, request: r, turn: t, mark: m, yield: yield}
		if err := p.play(); err != nil {
			yield(model.Event{}, err)
		}
	}
}

// next finds the due turn, and the place after it.
func (s *Script) next(r model.Request) (*turn, mark, error) {
	m := place(r.Messages)
	seen := look(r.Messages)
	pick := -1
	for i := range s.turns {
		if s.turns[i].Always && s.turns[i].When.holds(r, seen) {
			pick = i
			break
		}
	}
	for i := m.Turn; i < len(s.turns) && pick < 0; i++ {
		if !s.turns[i].Always && s.turns[i].When.holds(r, seen) {
			pick, m.Turn = i, i+1
		}
	}
	if pick < 0 {
		return nil, mark{}, s.fail("no turn after turn %d fits; the last results were: %.300s", m.Turn, or(seen.text(""), "(none)"))
	}
	t := &s.turns[pick]
	for name, re := range t.captures {
		found := re.FindStringSubmatch(seen.text(""))
		if found == nil {
			return nil, mark{}, s.fail("turn %d: capture %q finds nothing in the last results: %.300s", pick+1, name, seen.text(""))
		}
		m.Vars[name] = found[min(1, len(found)-1)]
	}
	return t, m, nil
}

func (s *Script) fail(format string, args ...any) error {
	return &model.Error{Code: model.ErrRequest, Provider: "scripted", Message: fmt.Sprintf("script %q: "+format, append([]any{s.name}, args...)...)}
}

// place reads the newest mark of a conversation.
func place(messages []model.Message) mark {
	m := mark{}
	for i := len(messages) - 1; i >= 0; i-- {
		for _, b := range messages[i].Blocks {
			if b.Native != nil && b.Native.Provider == "scripted" && json.Unmarshal(b.Native.Data, &m) == nil {
				i = 0
				break
			}
		}
	}
	vars := map[string]string{}
	for k, v := range m.Vars {
		vars[k] = v
	}
	m.Vars = vars
	return m
}

// sight is what conditions look at.
type sight struct {
	results []model.CallResult // since the last answer
	prompt  string             // the newest text of a person
}

func look(messages []model.Message) sight {
	var s sight
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role == model.RoleUser && s.prompt == "" {
			s.prompt = m.Text()
		}
		if m.Role == model.RoleTool && s.results == nil {
			s.results = []model.CallResult{}
			for _, b := range m.Blocks {
				s.results = append(s.results, *b.Result)
			}
		}
		if m.Role == model.RoleAssistant && s.results == nil {
			s.results = []model.CallResult{}
		}
	}
	return s
}

// text joins the results of one tool, or of all.
func (s sight) text(tool string) string {
	var parts []string
	for _, r := range s.results {
		if tool == "" || r.Name == tool {
			parts = append(parts, r.Text())
		}
	}
	return strings.Join(parts, "\n")
}

func (w when) holds(r model.Request, s sight) bool {
	text := s.text(w.Tool)
	has, failed, offered := false, false, false
	for _, res := range s.results {
		if w.Tool == "" || res.Name == w.Tool {
			has = true
			failed = failed || res.IsError
		}
	}
	for _, t := range r.Tools {
		offered = offered || t.Name == w.Offered
	}
	return (w.Tool == "" || has) &&
		(w.Contains == "" || strings.Contains(text, w.Contains)) &&
		(w.Lacks == "" || !strings.Contains(text, w.Lacks)) &&
		(w.matches == nil || w.matches.MatchString(text)) &&
		(w.Error == nil || *w.Error == failed) &&
		(w.Prompt == "" || strings.Contains(s.prompt, w.Prompt)) &&
		(w.System == "" || strings.Contains(r.System, w.System)) &&
		(w.Offered == "" || offered) &&
		(w.Effort == "" || w.Effort == string(r.Effort)) &&
		(w.Images == 0 || w.Images == images(r.Messages))
}

// images counts those that the model is shown.
func images(messages []model.Message) (n int) {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Content != nil && b.Content.Type == abi.TypeImage {
				n++
			}
			if b.Result == nil {
				continue
			}
			for _, c := range b.Result.Content {
				if c.Type == abi.TypeImage {
					n++
				}
			}
		}
	}
	return n
}

// player streams one turn.
type player struct {
	ctx     context.Context
	request model.Request
	turn    *turn
	mark    mark
	yield   func(model.Event, error) bool
	marked  bool
	written int
	left    bool // nobody listens
}

func (p *player) play() error {
	t := p.turn
	if err := p.pieces(model.KindThinking, p.fill(t.Thinking)); err != nil {
		return err
	}
	if t.Thinking != "" {
		p.block(model.Block{Thinking: &model.Thinking{Text: p.fill(t.Thinking)}})
	}
	if err := p.pieces(model.KindText, p.fill(t.Text)); err != nil {
		return err
	}
	if t.Error != "" {
		return &model.Error{Code: codes[t.Error], Provider: "scripted", Message: "as the script says"}
	}
	if t.Text != "" {
		c := abi.TextBlock(p.fill(t.Text))
		p.block(model.Block{Content: &c})
	}
	for i, c := range t.Call {
		args := p.args(c)
		made := model.Call{ID: fmt.Sprintf("call_%d_%d", len(p.request.Messages), i), Name: c.Tool}
		p.send(model.Event{Kind: model.KindCallStart, Call: &model.Call{ID: made.ID, Name: made.Name}})
		p.send(model.Event{Kind: model.KindCallArgs, Call: &model.Call{ID: made.ID, Name: made.Name}, Text: args})
		made.Args = args
		p.block(model.Block{Call: &made})
	}
	p.send(model.Event{Kind: model.KindUsage, Usage: p.usage()})
	p.send(model.Event{Kind: model.KindStop, Stop: p.stop()})
	return nil
}

func (p *player) stop() model.StopReason {
	if s, ok := stops[p.turn.Stop]; ok {
		return s
	}
	if len(p.turn.Call) > 0 {
		return model.StopCalls
	}
	return model.StopEnd
}

// usage is as the script says, or a quarter token a byte.
func (p *player) usage() *model.Usage {
	if u := p.turn.Usage; u != nil {
		return &model.Usage{Input: u.Input, Output: u.Output}
	}
	in, _ := json.Marshal(p.request.Messages)
	return &model.Usage{Input: int64(len(in)+len(p.request.System)) / 4, Output: int64(p.written/4 + 1)}
}

func (p *player) args(c call) string {
	if c.Raw != nil {
		return p.fill(*c.Raw)
	}
	if c.Args == nil {
		return ""
	}
	b, err := json.Marshal(p.deep(c.Args))
	if err != nil {
		return err.Error() // not JSON, and so reported by the loop
	}
	return string(b)
}

// deep replaces in every string of a value.
func (p *player) deep(v any) any {
	switch v := v.(type) {
	case string:
		return p.fill(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.deep(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = p.deep(v[k])
		}
		return out
	}
	return v
}

func (p *player) fill(s string) string {
	if !strings.Contains(s, "{{") {
		return s
	}
	seen := look(p.request.Messages)
	pairs := []string{"{{result}}", seen.text(""), "{{prompt}}", seen.prompt}
	for k, v := range p.mark.Vars {
		pairs = append(pairs, "{{"+k+"}}", v)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// pieces streams a text word by word.
func (p *player) pieces(k model.Kind, s string) error {
	for _, w := range strings.SplitAfter(s, " ") {
		if p.left {
			return nil
		}
		if err := p.pause(); err != nil {
			return err
		}
		if w != "" {
			p.send(model.Event{Kind: k, Text: w})
		}
	}
	return nil
}

func (p *player) pause() error {
	if p.turn.delay > 0 {
		t := time.NewTimer(p.turn.delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
		}
	}
	if p.ctx.Err() != nil {
		return model.Cancelled("scripted", p.ctx)
	}
	return nil
}

func (p *player) block(b model.Block) {
	if !p.marked {
		data, _ := json.Marshal(p.mark)
		b.Native = &model.Native{Provider: "scripted", Data: data}
		p.marked = true
	}
	p.send(model.Event{Kind: model.KindBlock, Block: &b})
}

func (p *player) send(e model.Event) {
	p.written += len(e.Text)
	if !p.left {
		p.left = !p.yield(e, nil)
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
