package archive

import (
	"github.com/elfhost/elfhost/host/agent"
	"github.com/elfhost/elfhost/host/model"
	"github.com/elfhost/elfhost/host/store"
)

// turn is one message with what became of its calls.
type turn struct {
	at      agent.Record
	results map[string]agent.Record // by the call's ID
	started map[string]bool
	runs    []agent.RunState // children that ended while it was the newest
}

// turns folds records: the results of calls, in whatever order they came,
// are put to the answer that made them.
func (t *Transcript) turns() []*turn {
	var out []*turn
	last := func() *turn {
		if len(out) == 0 {
			out = append(out, &turn{})
		}
		return out[len(out)-1]
	}
	for _, r := range t.Records {
		switch r.Kind {
		case agent.RecordMessage, agent.RecordCompact:
			if r.Message != nil {
				out = append(out, &turn{at: r, results: map[string]agent.Record{}, started: map[string]bool{}})
			}
		case agent.RecordStart:
			if k := last(); r.Call != nil && k.started != nil {
				k.started[r.Call.ID] = true
			}
		case agent.RecordResult:
			if k := last(); r.Result != nil && k.results != nil {
				if _, twice := k.results[r.Result.ID]; !twice {
					k.results[r.Result.ID] = r
				}
			}
		case agent.RecordRun:
			if k := last(); r.Run != nil && r.Run.Status != agent.Running && !r.Run.Read {
				k.runs = append(k.runs, *r.Run)
			}
		}
	}
	return out
}

// message is what was said, nil for a turn that only holds runs.
func (k *turn) message() *model.Message { return k.at.Message }

// notes sorts the notes about calls by the call.
func (t *Transcript) notes() map[string][]store.Note {
	out := map[string][]store.Note{}
	for _, n := range t.Notes {
		out[n.Call] = append(out[n.Call], n)
	}
	return out
}
