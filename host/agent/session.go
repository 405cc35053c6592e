package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// ErrBusy is returned for a second Run of a session that is running.
var ErrBusy = errors.New("the session is already running")

// ErrJournal is in the error of a Run that its Journal ended.
var ErrJournal = errors.New("the session cannot be written down")

// Session is one conversation. It is safe for concurrent use.
type Session struct {
	ID string

	journal Journal

	mu       sync.Mutex
	running  bool
	seq      int64
	messages []model.Message
	named    map[string]bool // IDs of the calls in messages
	usage    Usage
	results  map[string]model.CallResult // of the last message's calls, by ID
	started  map[string]bool             // its calls that have entered their tool; true: it only looks
	queue    []*steering
	repaired []Repair
	runs     []RunState // children, oldest first
	hooks    []func(cause error)
}

// New starts a conversation. A nil journal keeps it in memory only.
func New(id string, j Journal) *Session { return &Session{ID: id, journal: j} }

// Messages is the conversation so far, which nobody must change. Outside of a
// Run every call in it has its result.
func (s *Session) Messages() []model.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[:len(s.messages):len(s.messages)] // what comes later goes behind it, or into a new one
}

// Usage is what the session has used so far, its earlier Runs included.
func (s *Session) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// steering is a message that waits for its step.
type steering struct {
	content func(context.Context) []abi.Content
}

// Steer queues a message of the person for the running agent. It is put into
// the conversation after the calls of the current step, or opens the next Run.
// Until then withdraw takes it back; false says that it came too late.
func (s *Session) Steer(content ...abi.Content) (withdraw func() bool) {
	return s.SteerWith(func(context.Context) []abi.Content { return content })
}

// SteerWith is Steer with content that is put together when its time has come,
// by the goroutine of the Run: the files that it brings along are then as they
// are for the agent.
func (s *Session) SteerWith(content func(context.Context) []abi.Content) (withdraw func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &steering{content}
	s.queue = append(s.queue, m)
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.queue, m)
		if i >= 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
		}
		return i >= 0
	}
}

// Steered reports whether messages of Steer wait for the next Run.
func (s *Session) Steered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) > 0
}

// Repairs lists the calls that Resume had to give a result. Those with the
// outcome Unknown deserve a person's eye.
func (s *Session) Repairs() []Repair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Repair(nil), s.repaired...)
}

// acquire marks the session as running.
func (s *Session) acquire() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return ErrBusy
	}
	s.running = true
	return nil
}

func (s *Session) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// onCancel calls f whenever a run of the session is cancelled.
func (s *Session) onCancel(f func(cause error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(s.hooks, f)
}

// cancelled tells those who wait for it.
func (s *Session) cancelled(cause error) {
	s.mu.Lock()
	hooks := append([]func(error){}, s.hooks...)
	s.mu.Unlock()
	for _, f := range hooks {
		f(cause)
	}
}

// charge adds what a child has used since it was last counted.
func (s *Session) charge(old, now Usage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := now.since(old)
	s.usage.Usage = s.usage.Usage.Plus(d.Usage)
	s.usage.Cost += d.Cost
}

// runStates are the children as last written down.
func (s *Session) runStates() []RunState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]RunState(nil), s.runs...)
}

// draft keeps a piece of an answer before it is shown.
func (s *Session) draft(ctx context.Context, p Piece) error {
	d, ok := s.journal.(Drafter)
	if !ok {
		return nil
	}
	if err := d.Draft(ctx, s.ID, p); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// unqueue takes the oldest steering message.
func (s *Session) unqueue() (content func(context.Context) []abi.Content, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, false
	}
	m := s.queue[0]
	s.queue = s.queue[1:]
	return m.content, true
}

// commit writes a record and then, under the same lock, applies it: what the
// journal refused has not happened. The order of Seq is the order of commits.
func (s *Session) commit(ctx context.Context, r Record) error { return s.bill(ctx, r, nil) }

// bill is commit with what the record costs: add changes the session's usage,
// which children may charge at the same time.
func (s *Session) bill(ctx context.Context, r Record, add func(*Usage)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Seq, r.Time = s.seq+1, time.Now().UTC()
	if add != nil {
		u := s.usage
		add(&u)
		r.Usage = &u
	}
	if s.journal != nil {
		if err := s.journal.Append(ctx, s.ID, r); err != nil {
			return fmt.Errorf("%w: %w", ErrJournal, err)
		}
	}
	s.seq = r.Seq
	s.apply(r)
	return nil
}

// apply changes the conversation by one record. Results wait in s.results
// until settle makes one message of them.
func (s *Session) apply(r Record) {
	switch r.Kind {
	case RecordMessage:
		s.messages = append(s.messages, *r.Message)
		s.name(*r.Message)
		if r.Usage != nil {
			s.usage = *r.Usage
		}
	case RecordStart:
		if s.started == nil {
			s.started = map[string]bool{}
		}
		s.started[r.Call.ID] = r.Looks
	case RecordResult:
		if s.results == nil {
			s.results = map[string]model.CallResult{}
		}
		if _, twice := s.results[r.Result.ID]; !twice {
			s.results[r.Result.ID] = *r.Result
		}
	case RecordRun:
		for i := range s.runs {
			if s.runs[i].ID == r.Run.ID {
				s.runs[i] = *r.Run
				return
			}
		}
		s.runs = append(s.runs, *r.Run)
	case RecordCompact:
		keep := s.messages[max(0, len(s.messages)-r.Keep):]
		s.messages = append([]model.Message{*r.Message}, keep...)
		s.rename()
		if r.Usage != nil {
			s.usage = *r.Usage
		}
	}
}

// name notes the IDs of a message's calls.
func (s *Session) name(m model.Message) {
	if s.named == nil {
		s.named = map[string]bool{}
	}
	for _, b := range m.Blocks {
		if b.Call != nil {
			s.named[b.Call.ID] = true
		}
	}
}

// rename notes those of all messages anew.
func (s *Session) rename() {
	clear(s.named)
	for _, m := range s.messages {
		s.name(m)
	}
}

// used reports whether a call of the conversation has the ID, and how many
// have one.
func (s *Session) used(id string) (bool, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.named[id], len(s.named)
}

// settle turns the results of the last message's calls into the message that
// must follow it. Calls without a result get one from missing, which is told
// whether the call has entered its tool, and whether that only looks.
func (s *Session) settle(missing func(c model.Call, began, looks bool) model.CallResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.messages) == 0 {
		return
	}
	calls := s.messages[len(s.messages)-1].Calls()
	if len(calls) == 0 {
		return
	}
	m := model.Message{Role: model.RoleTool, Blocks: make([]model.Block, 0, len(calls))}
	for _, c := range calls {
		res, ok := s.results[c.ID]
		if !ok {
			looks, began := s.started[c.ID]
			res = missing(c, began, looks)
		}
		m.Blocks = append(m.Blocks, model.Block{Result: &res})
	}
	s.messages = append(s.messages, m)
	clear(s.results)
	clear(s.started)
}
