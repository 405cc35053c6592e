package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"
)

// Session tells what is known of a session.
func (s *Store) Session(ctx context.Context, id string) (Session, error) {
	if err := CheckID(id); err != nil {
		return Session{}, err
	}
	out, err := s.scan(s.read.QueryRowContext(ctx, `SELECT `+sessionColumns+` FROM session WHERE id = ?`, id))
	return out, named(id, err)
}

// Query chooses sessions. The zero value is all of them.
type Query struct {
	Origin string // only those of this origin
	Top    bool   // only those that no other session started
	// Viewer is a session, and only what it may see is chosen: itself and what
	// it started; and if nobody started it, all sessions of its origin.
	Viewer        string
	Prefix        string // only those whose name begins so
	Limit, Offset int    // a Limit of 0 is 100
}

// List finds sessions, the last used first, whatever the clock said meanwhile.
func (s *Store) List(ctx context.Context, q Query) ([]Session, error) {
	if q.Limit <= 0 {
		q.Limit = 100
	}
	query, args := `SELECT `+sessionColumns+` FROM session WHERE 1`, []any(nil)
	if q.Viewer != "" {
		query = tree + query + ` AND (n IN (SELECT n FROM tree) OR origin = (SELECT origin FROM session WHERE id = ? AND parent = ''))`
		args = append(args, q.Viewer, q.Viewer)
	}
	if q.Origin != "" {
		query += ` AND origin = ?`
		args = append(args, q.Origin)
	}
	if q.Top {
		query += ` AND parent = ''`
	}
	if q.Prefix != "" {
		if err := CheckID(q.Prefix); err != nil {
			return nil, err
		}
		query += ` AND substr(id, 1, length(?)) = ?`
		args = append(args, q.Prefix, q.Prefix)
	}
	args = append(args, q.Limit, max(q.Offset, 0))
	rows, err := s.read.QueryContext(ctx, query+` ORDER BY used DESC, n DESC LIMIT ? OFFSET ?`, args...)
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", plain(err))
	}
	defer rows.Close()
	var out []Session
	for rows.Next() {
		one, err := s.scan(rows)
		if err != nil {
			return nil, fmt.Errorf("listing sessions: %w", plain(err))
		}
		out = append(out, one)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("listing sessions: %w", plain(err))
	}
	return out, nil
}

// Sees reports whether one session may see another. ErrNotFound says that it
// may not, or that there is none.
func (s *Store) Sees(ctx context.Context, viewer, id string) error {
	if err := errors.Join(CheckID(viewer), CheckID(id)); err != nil {
		return err
	}
	var n int64
	err := s.read.QueryRowContext(ctx, tree+` SELECT n FROM session WHERE id = ? AND
		(n IN (SELECT n FROM tree) OR origin = (SELECT origin FROM session WHERE id = ? AND parent = ''))`, viewer, id, viewer).Scan(&n)
	return named(id, err)
}

// Records gives the records after a number, in order. It sees the session as
// it was when the range began. A body is valid until the range goes on.
func (s *Store) Records(ctx context.Context, id string, after int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n, err := s.number(ctx, id)
		if err != nil {
			yield(Record{}, err)
			return
		}
		after = min(max(after, 0), maxSeq)
		rows, err := s.read.QueryContext(ctx, `SELECT key, time, kind, body FROM record WHERE key > ? AND key <= ? ORDER BY key`, key(n, after), key(n, maxSeq))
		if err != nil {
			yield(Record{}, named(id, err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			var r Record
			var place, at any // database/sql takes a detour over text to an int64
			var body sql.RawBytes
			if err := rows.Scan(&place, &at, &r.Kind, &body); err != nil {
				yield(Record{}, named(id, err))
				return
			}
			seq, _ := place.(int64)
			micros, _ := at.(int64)
			r.Seq, r.Time, r.Body = seq&maxSeq, fromMicros(micros), json.RawMessage(body)
			if !yield(r, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(Record{}, named(id, err))
		}
	}
}

func (s *Store) number(ctx context.Context, id string) (n int64, err error) {
	if err := CheckID(id); err != nil {
		return 0, err
	}
	err = s.read.QueryRowContext(ctx, `SELECT n FROM session WHERE id = ?`, id).Scan(&n)
	return n, named(id, err)
}

// Drafted is what Draft kept of a message that never became a record, with
// neighbours of one kind put together.
func (s *Store) Drafted(ctx context.Context, id string) ([]Piece, error) {
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT kind, body FROM piece WHERE key BETWEEN ? AND ? ORDER BY key`, key(n, 0), key(n, maxSeq))
	if err != nil {
		return nil, named(id, err)
	}
	defer rows.Close()
	var out []Piece
	var text strings.Builder
	end := func() {
		if len(out) > 0 {
			out[len(out)-1].Text = text.String()
		}
		text.Reset()
	}
	for rows.Next() {
		var kind, body string
		if err := rows.Scan(&kind, &body); err != nil {
			return nil, named(id, err)
		}
		if len(out) == 0 || out[len(out)-1].Kind != kind {
			end()
			out = append(out, Piece{Kind: kind})
		}
		text.WriteString(body)
	}
	end()
	return out, named(id, rows.Err())
}

// Calls lists the calls of a session that are in one of the states, or all.
func (s *Store) Calls(ctx context.Context, id string, states ...State) ([]Call, error) {
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(states)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT id, tool, state, fence, seq FROM call
		WHERE session = ? AND (? = 0 OR state IN (SELECT value FROM json_each(?))) ORDER BY seq, id`, n, len(states), string(wanted))
	if err != nil {
		return nil, named(id, err)
	}
	defer rows.Close()
	var out []Call
	for rows.Next() {
		var c Call
		if err := rows.Scan(&c.ID, &c.Tool, &c.State, &c.Fence, &c.Seq); err != nil {
			return nil, named(id, err)
		}
		out = append(out, c)
	}
	return out, named(id, rows.Err())
}

// Note is something about a session that is no part of what was said: an
// approval, say. Body is JSON.
type Note struct {
	Time time.Time       `json:"time"`
	Kind string          `json:"kind"`
	Call string          `json:"call,omitempty"`
	Body json.RawMessage `json:"body"`
}

// AddNote keeps a note about a session and returns when that is durable. It
// needs no claim: whoever decides about a call need not write its session.
func (s *Store) AddNote(ctx context.Context, id string, n Note) error {
	if err := errors.Join(CheckID(id), fits(n.Body)); err != nil {
		return err
	}
	return named(id, s.queue.commit(ctx, func(t *tx) error {
		done, err := t.run(`INSERT INTO note (session, time, kind, call, body) SELECT n, ?, ?, ?, ? FROM session WHERE id = ?`,
			micros(n.Time), n.Kind, n.Call, []byte(n.Body), id)
		if err == nil && done == 0 {
			return refuse(ErrNotFound)
		}
		return err
	}))
}

// Notes lists the notes about a session, oldest first.
func (s *Store) Notes(ctx context.Context, id string) ([]Note, error) {
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT time, kind, call, body FROM note WHERE session = ? ORDER BY n`, n)
	if err != nil {
		return nil, named(id, err)
	}
	defer rows.Close()
	var out []Note
	for rows.Next() {
		var one Note
		var at int64
		if err := rows.Scan(&at, &one.Kind, &one.Call, (*[]byte)(&one.Body)); err != nil {
			return nil, named(id, err)
		}
		one.Time = fromMicros(at)
		out = append(out, one)
	}
	return out, named(id, rows.Err())
}
