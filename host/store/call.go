package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
)

// State is where a call of a tool stands. It goes from Pending to Running to
// one of the three ends, or from Pending to an end without having run.
type State string

// The states of a call.
const (
	Pending State = "pending" // the model asked for it
	Running State = "running" // it has entered its tool, and may have effects
	Done    State = "done"
	Failed  State = "failed"  // or it never entered its tool
	Unknown State = "unknown" // it was interrupted, and may have had effects
)

// ended reports a state from which nothing leads on.
func (s State) ended() bool { return s == Done || s == Failed || s == Unknown }

// leads reports whether a call may go from s to another state. Staying where
// it ended is no step: a reader may settle what Claim settled before.
func (s State) leads(to State) bool {
	switch s {
	case Pending:
		return to == Running || to.ended()
	case Running:
		return to.ended()
	}
	return s == to
}

// Move brings a call into a state. Pending makes a new call, whose name may
// have been used before: models do that.
type Move struct {
	Call       string // its name
	Tool       string // with Pending
	To         State
	Repeatable bool // with Running: doing it again does no harm
}

// Call is a call of a session.
type Call struct {
	ID    string `json:"id"`
	Tool  string `json:"tool"`
	State State  `json:"state"`
	Fence int64  `json:"fence"` // of the writer that brought it there
	Seq   int64  `json:"seq"`   // the record that it came with
}

// Lost is a call that was interrupted and may have had effects, of a session
// or of one that it started.
type Lost struct {
	Session string `json:"session"`
	Call
}

const lostCalls = tree + ` SELECT s.n, s.id, s.owner, c.id, c.tool, c.state, c.fence, c.seq FROM call c JOIN session s ON s.n = c.session
	WHERE s.n IN (SELECT n FROM tree) AND s.id <> ? AND (c.state = 'unknown' OR c.state = 'running' AND c.repeatable = 0) ORDER BY s.n, c.seq, c.id`

// Lost lists the calls that are Unknown, or will be when somebody claims their
// session: its writer is gone. Sessions that the session started count as well.
func (s *Store) Lost(ctx context.Context, id string) ([]Lost, error) { return s.lost(ctx, id, "") }

func (s *Store) lost(ctx context.Context, id, without string) ([]Lost, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, lostCalls, id, without)
	if err != nil {
		return nil, named(id, err)
	}
	defer rows.Close()
	var out []Lost
	alive := map[string]bool{}
	for rows.Next() {
		var l Lost
		var n int64
		var owner string
		if err := rows.Scan(&n, &l.Session, &owner, &l.ID, &l.Tool, &l.State, &l.Fence, &l.Seq); err != nil {
			return nil, named(id, err)
		}
		if l.State == Running {
			if _, known := alive[owner]; !known {
				alive[owner] = s.owner.alive(owner)
			}
			if alive[owner] {
				continue
			}
		}
		out = append(out, l)
	}
	return out, named(id, rows.Err())
}

// Settle does to the sessions that a session started, directly or not, and
// whose writer is gone, what Claim does to their calls. It gives those that
// are Unknown by that.
func (s *Store) Settle(ctx context.Context, id string) ([]Lost, error) {
	all, err := s.lost(ctx, id, id)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(l Lost) bool { return l.State != Running })
	var settled []Lost
	for i, l := range all {
		if i > 0 && all[i-1].Session == l.Session {
			continue // with the one before it
		}
		w, err := s.Claim(ctx, l.Session)
		if errors.Is(err, ErrBusy) || errors.Is(err, ErrNotFound) { // somebody else was faster
			continue
		}
		if err != nil {
			return settled, err
		}
		for _, other := range all[i:] {
			if other.Session == l.Session {
				other.State, other.Fence = Unknown, w.Fence()
				settled = append(settled, other)
			}
		}
		if err := w.Close(ctx); err != nil {
			return settled, err
		}
	}
	return settled, nil
}

// place is where a call lies, and its state.
type place struct {
	seq   int64
	state State
}

// place finds a call of the session: mostly in what the writer remembers of
// those that have not ended.
func (w *Writer) place(t *tx, call string) (p place, err error) {
	if p, ok := w.calls[call]; ok {
		return p, nil
	}
	var state string
	err = t.row(`SELECT seq, state FROM call WHERE session = ? AND id = ? ORDER BY seq DESC LIMIT 1`, w.n, call).Scan(&p.seq, &state)
	p.state = State(state)
	if errors.Is(err, sql.ErrNoRows) {
		err = refuse(fmt.Errorf("%w: call %q is not known", ErrState, call))
	}
	return p, err
}

// remember notes where a call is now. What the transaction does not keep is
// forgotten with its epoch.
func (w *Writer) remember(call string, p place) {
	if p.state.ended() {
		delete(w.calls, call)
		return
	}
	if w.calls == nil {
		w.calls = map[string]place{}
	}
	w.calls[call] = p
}

// plan checks moves and returns what is to be written. Nothing is written here.
func plan(t *tx, w *Writer, seq int64, moves []Move) ([]func() error, error) {
	var steps []func() error
	for _, m := range moves {
		if m.To == Pending {
			steps = append(steps, func() error {
				w.remember(m.Call, place{seq, Pending})
				_, err := t.run(`INSERT OR REPLACE INTO call VALUES (?,?,?,?,?,?,0)`, w.n, m.Call, seq, m.Tool, string(Pending), w.fence)
				return err
			})
			continue
		}
		at, err := w.place(t, m.Call)
		if err != nil {
			return nil, err
		}
		if !at.state.leads(m.To) {
			return nil, refuse(fmt.Errorf("%w: call %q from %s to %s", ErrState, m.Call, at.state, m.To))
		}
		steps = append(steps, func() error {
			w.remember(m.Call, place{at.seq, m.To})
			_, err := t.run(`UPDATE call SET state = ?, fence = ?, repeatable = ? WHERE session = ? AND id = ? AND seq = ?`,
				string(m.To), w.fence, m.Repeatable, w.n, m.Call, at.seq)
			return err
		})
	}
	return steps, nil
}

// interrupt settles the calls that a dead writer left running. Those that were
// pending stay: they had no effect, and the next writer says so.
func interrupt(t *tx, session int64) error {
	_, err := t.run(`UPDATE call SET state = iif(repeatable, 'failed', 'unknown') WHERE session = ? AND state = 'running'`, session)
	return err
}
