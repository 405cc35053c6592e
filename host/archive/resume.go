package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// Resume goes on with a session, whatever ended it. Calls that were
// interrupted get their one result, written down at once: they are the
// repairs, for a person to see, and are told once, with those of sub-agents
// that nobody is at work on. What the model was saying is kept as it was shown.
//
// ErrBusy says that a living process, this one too, has the session.
func (a *Archive) Resume(ctx context.Context, id string) (*agent.Session, []agent.Repair, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := st.Session(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	w, err := st.Claim(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	s, repairs, err := a.adopt(ctx, st, w, info)
	if err != nil {
		return nil, nil, err
	}
	below, err := a.below(ctx, st, id)
	if err != nil {
		return nil, nil, errors.Join(err, a.Release(context.WithoutCancel(ctx), id))
	}
	return s, append(repairs, below...), nil
}

// below settles the calls of the session's sub-agents that ended with their
// process. They get their results when somebody goes on with the sub-agent.
func (a *Archive) below(ctx context.Context, st *store.Store, id string) ([]agent.Repair, error) {
	lost, err := st.Settle(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]agent.Repair, 0, len(lost))
	for _, l := range lost {
		p := agent.Repair{Session: l.Session, Call: model.Call{ID: l.ID, Name: l.Tool}, Outcome: agent.Unknown}
		for r, err := range st.Records(ctx, l.Session, l.Seq-1) {
			if err != nil {
				return nil, err
			}
			var said agent.Record
			if json.Unmarshal(r.Body, &said) == nil && said.Message != nil {
				for _, c := range said.Message.Calls() {
					if c.ID == l.ID {
						p.Call = c
					}
				}
			}
			break // the record that made the call
		}
		out = append(out, p)
	}
	return out, nil
}

// Fork copies a session under the name, title and origin of m, and goes on
// with the copy. An empty title is the original's.
func (a *Archive) Fork(ctx context.Context, from string, m Info) (*agent.Session, []agent.Repair, error) {
	st, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	info, err := st.Session(ctx, from)
	if err != nil {
		return nil, nil, err
	}
	m.Title, m.Agent, m.Model = first(m.Title, info.Title), first(m.Agent, info.Agent), first(m.Model, info.Model)
	w, err := st.Fork(ctx, from, m)
	if err != nil {
		return nil, nil, err
	}
	return a.adopt(ctx, st, w, m)
}

// adopt brings a session that was claimed into order and into memory.
func (a *Archive) adopt(ctx context.Context, st *store.Store, w *store.Writer, info Info) (*agent.Session, []agent.Repair, error) {
	s, repairs, err := a.revive(ctx, st, w, info)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close(context.WithoutCancel(ctx)))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil {
		a.kept = map[string]*kept{}
	}
	a.kept[w.ID()] = &kept{info: info, writer: w}
	return s, repairs, nil
}

func (a *Archive) revive(ctx context.Context, st *store.Store, w *store.Writer, info Info) (*agent.Session, []agent.Repair, error) {
	records, err := load(ctx, st, w.ID(), info.Records)
	if err != nil {
		return nil, nil, err
	}
	s, err := agent.Resume(w.ID(), a, records)
	if err != nil {
		return nil, nil, err
	}
	said, err := a.drafted(ctx, st, w.ID())
	if err != nil {
		return nil, nil, err
	}
	repairs := s.Repairs()
	lost := missing(s, records, repairs)
	if said != nil {
		lost = append(lost, agent.Record{Kind: agent.RecordMessage, Message: said})
	}
	if len(lost) == 0 {
		return s, repairs, nil
	}
	step := 0
	if n := len(records); n > 0 {
		step = records[n-1].Step
	}
	for _, r := range lost {
		r.Seq, r.Time, r.Step = int64(len(records)+1), time.Now().UTC(), step
		if r.Kind == agent.RecordMessage {
			r.Step++
		}
		rec, err := a.encode(r)
		if err == nil {
			err = w.Append(ctx, rec, r.Kind == agent.RecordMessage, moves(r)...)
		}
		if err != nil {
			return nil, nil, err
		}
		records = append(records, r)
	}
	s, err = agent.Resume(w.ID(), a, records)
	return s, repairs, err
}

// missing makes the records of results that the last answer's calls never
// got. Those of older answers were given theirs when it was their turn.
func missing(s *agent.Session, records []agent.Record, repairs []agent.Repair) []agent.Record {
	due := map[string]bool{}
	for i := len(records) - 1; i >= 0; i-- {
		if r := records[i]; r.Kind == agent.RecordMessage || r.Kind == agent.RecordCompact {
			for _, c := range r.Message.Calls() {
				due[c.ID] = true
			}
			break
		}
	}
	messages := s.Messages()
	if len(messages) == 0 {
		return nil
	}
	var out []agent.Record
	for _, p := range repairs {
		for _, b := range messages[len(messages)-1].Blocks {
			if b.Result != nil && b.Result.ID == p.Call.ID && due[p.Call.ID] {
				out = append(out, agent.Record{Kind: agent.RecordResult, Result: b.Result, Outcome: p.Outcome})
			}
		}
	}
	return out
}

// chunk is how many records are decoded in one go.
const chunk = 128

// part is a run of records on their way out of the store.
type part struct {
	raw  []store.Record
	body []string // of raw
	out  []agent.Record
	err  error
}

func (p *part) decode() {
	var q quick
	for i, r := range p.raw {
		if p.out[i], p.err = q.decode(r, p.body[i]); p.err != nil {
			return
		}
	}
	p.raw, p.body = nil, nil
}

// load reads a session's records, about as many as expected. Reading and
// decoding go on side by side: a long session is as fast as the slower of the two.
func load(ctx context.Context, st *store.Store, id string, expected int64) ([]agent.Record, error) {
	var parts []*part
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	room := make([]agent.Record, 0, expected) // parts decode into it, as far as it goes
	n := 0
	fresh := func() *part { return &part{raw: make([]store.Record, 0, chunk), body: make([]string, 0, chunk)} }
	next := fresh()
	flush := func() {
		p := next
		parts, next = append(parts, p), fresh()
		if n += len(p.raw); n <= cap(room) {
			p.out = room[n-len(p.raw) : n]
		} else {
			p.out = make([]agent.Record, len(p.raw))
		}
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			p.decode()
		})
	}
	var failed error
	for r, err := range st.Records(ctx, id, 0) {
		if err != nil {
			failed = err
			break
		}
		next.body = append(next.body, string(r.Body))
		r.Body = nil
		if next.raw = append(next.raw, r); len(next.raw) == chunk {
			flush()
		}
	}
	flush()
	group.Wait()
	if failed != nil {
		return nil, failed
	}
	for _, p := range parts {
		if p.err != nil {
			return nil, fmt.Errorf("session %q: %w", id, p.err)
		}
	}
	if n <= cap(room) {
		return room[:n], nil
	}
	var out []agent.Record // more have come meanwhile
	for _, p := range parts {
		out = append(out, p.out...)
	}
	return out, nil
}

// decode reads the body of a record, which must agree with what the store
// knows of it.
func (p *quick) decode(r store.Record, body string) (agent.Record, error) {
	var out agent.Record
	if p.read(body, &out) {
		return out, agrees(r, out)
	}
	out = agent.Record{}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		return out, fmt.Errorf("record %d cannot be read: %w", r.Seq, err)
	}
	return out, agrees(r, out)
}

// agrees checks a body against what the store knows of it.
func agrees(r store.Record, out agent.Record) error {
	if out.Seq != r.Seq || string(out.Kind) != r.Kind {
		return fmt.Errorf("record %d says that it is number %d, of kind %q instead of %q", r.Seq, out.Seq, out.Kind, r.Kind)
	}
	return nil
}
