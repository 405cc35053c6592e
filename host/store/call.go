package store

import (
	"database/sql"
	"errors"
	"fmt"
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
	err = t.row(`SELECT seq, state FROM call WHERE session = ? AND id = ? ORDER BY seq DESC LIMIT 1`, w.n, call).Scan(&p.seq, &p.state)
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
