package agent

import (
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/model"
)

// Repair is a call that Resume found without a result, and what it was given.
type Repair struct {
	Session string // of a sub-agent that the call belongs to; "": the one that goes on
	Call    model.Call
	Outcome Outcome
}

// Note is what a person is told of a call with the outcome Unknown.
func (r Repair) Note() string {
	whose := "the session"
	if r.Session != "" {
		whose = "its sub-agent in " + r.Session
	}
	note := fmt.Sprintf("%s was interrupted in the middle of a call of %s, which may have had effects; it is not repeated by itself", whose, r.Call.Name)
	args := []rune(strings.Join(strings.Fields(r.Call.Args), " "))
	if len(args) > 120 {
		args = append(args[:119], '…')
	}
	if len(args) > 0 {
		note += ": " + string(args)
	}
	return note
}

// Resume makes a session from its records. What an interruption or an older
// version left broken is repaired in memory: every call has exactly one
// result, in its place, and a call that was interrupted inside its tool says
// that it may have had effects; it is never run again by itself.
//
// Records must be in the order of Seq. A gap or a repetition is an error,
// since guessing would put words into somebody's mouth.
func Resume(id string, j Journal, records []Record) (*Session, error) {
	s := New(id, j)
	for i, r := range records {
		if r.Seq != s.seq+1 {
			return nil, fmt.Errorf("resuming session %q: record %d has number %d, %d is due", id, i, r.Seq, s.seq+1)
		}
		if err := whole(r); err != nil {
			return nil, fmt.Errorf("resuming session %q: record %d: %w", id, r.Seq, err)
		}
		if r.Kind == RecordMessage || r.Kind == RecordCompact {
			s.settle(s.repair)
		}
		s.apply(r)
		s.seq = r.Seq
	}
	s.settle(s.repair)
	for i := range s.runs {
		if s.runs[i].Status == Running { // it ended with its process
			s.runs[i].Status, s.runs[i].Error = Cancelled, "the session ended while it was running"
		}
	}
	if !sound(s.messages) {
		s.messages = mend(s.messages)
		s.rename()
	}
	return s, nil
}

// sound reports a transcript that mend would leave as it is: that is nearly
// every one, and to see it takes a fraction of mending.
func sound(messages []model.Message) bool {
	for _, m := range messages {
		for _, b := range m.Blocks {
			if empty(b) || b.Call != nil && b.Call.ID == "" {
				return false
			}
		}
	}
	return model.Check(messages) == nil
}

// whole checks that a record has what its kind needs.
func whole(r Record) error {
	ok := true
	switch r.Kind {
	case RecordMessage, RecordCompact:
		ok = r.Message != nil && r.Keep >= 0
	case RecordRun:
		ok = r.Run != nil
	case RecordStart:
		ok = r.Call != nil
	case RecordResult:
		ok = r.Result != nil
	default:
		return fmt.Errorf("unknown kind %q", r.Kind)
	}
	if !ok {
		return fmt.Errorf("the record of kind %q is incomplete", r.Kind)
	}
	return nil
}

// repair makes the result of a call that has none. It runs under s.mu.
func (s *Session) repair(c model.Call, began, looks bool) model.CallResult {
	p := Repair{Call: c, Outcome: Skipped}
	res := skipped("the session ended before its turn came")
	switch {
	case looks:
		p.Outcome = Failed
		res = abi.Errorf("This call was interrupted: the session ended while it was running. It changes nothing, so it may be repeated.")
	case began:
		p.Outcome = Unknown
		res = interrupted(0, "", "the session ended while it was running")
	}
	s.repaired = append(s.repaired, p)
	return model.CallResult{ID: c.ID, Name: c.Name, Result: res}
}

// mend puts a transcript into the form that every provider accepts (see
// model.Check), whatever wrote it: empty messages go, results move behind
// their calls, missing ones are made, stray and second ones are dropped, and
// calls without an ID, or with one that was used before, get a new one.
func mend(messages []model.Message) []model.Message {
	results := map[string][]model.CallResult{}
	for _, m := range messages {
		for _, b := range m.Blocks {
			if b.Result != nil {
				results[b.Result.ID] = append(results[b.Result.ID], *b.Result)
			}
		}
	}
	var out []model.Message
	seen := map[string]bool{}
	for i, m := range messages {
		said := model.Message{Role: m.Role}
		answers := model.Message{Role: model.RoleTool}
		for k, b := range m.Blocks {
			if b.Result != nil || b.Call != nil && m.Role != model.RoleAssistant || empty(b) {
				continue
			}
			if b.Call != nil {
				c := *b.Call
				res := model.CallResult{Result: interrupted(0, "", "its result was lost")}
				if found := results[c.ID]; len(found) > 0 {
					res, results[c.ID] = found[0], found[1:]
				}
				if c.ID == "" || seen[c.ID] {
					c.ID = fmt.Sprintf("mended_%d_%d", i, k)
				}
				seen[c.ID] = true
				b.Call, res.ID, res.Name = &c, c.ID, c.Name
				answers.Blocks = append(answers.Blocks, model.Block{Result: &res})
			}
			said.Blocks = append(said.Blocks, b)
		}
		if said.Role != model.RoleTool && len(said.Blocks) > 0 {
			out = append(out, said)
		}
		if len(answers.Blocks) > 0 {
			out = append(out, answers)
		}
	}
	return out
}

// empty reports blocks that say nothing; providers refuse empty text.
func empty(b model.Block) bool {
	if b.Content != nil && b.Content.Type == abi.TypeText && b.Content.Text == "" {
		return true
	}
	return b.Content == nil && b.Thinking == nil && b.Call == nil && b.Result == nil && b.Native == nil
}
