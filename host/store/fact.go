package store

import (
	"context"
	"encoding/json"
	"errors"
)

// SetFact keeps a value of a session under a name, in place of the one before,
// and returns when that is durable. Like a note it needs no claim. A fact is
// what can be asked for, other than a record, which is what happened.
func (s *Store) SetFact(ctx context.Context, id, name string, body json.RawMessage) error {
	if err := errors.Join(CheckID(id), fits(body)); err != nil {
		return err
	}
	return named(id, s.queue.commit(ctx, func(t *tx) error {
		done, err := t.run(`INSERT OR REPLACE INTO fact SELECT n, ?, ? FROM session WHERE id = ?`, name, []byte(body), id)
		if err == nil && done == 0 {
			return refuse(ErrNotFound)
		}
		return err
	}))
}

// Facts gives the facts of a session by their names.
func (s *Store) Facts(ctx context.Context, id string) (map[string]json.RawMessage, error) {
	n, err := s.number(ctx, id)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT name, body FROM fact WHERE session = ?`, n)
	if err != nil {
		return nil, named(id, err)
	}
	defer rows.Close()
	out := map[string]json.RawMessage{}
	for rows.Next() {
		var name string
		var body []byte
		if err := rows.Scan(&name, &body); err != nil {
			return nil, named(id, err)
		}
		out[name] = body
	}
	return out, named(id, rows.Err())
}
