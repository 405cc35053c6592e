package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Session is what is known of a session besides its records.
type Session struct {
	ID      string    `json:"id"`
	Origin  string    `json:"origin"`           // whose it is: who may see it
	Parent  string    `json:"parent,omitempty"` // the session that started it
	Title   string    `json:"title,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Model   string    `json:"model,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	Records int64     `json:"records"` // the number of the newest
	Busy    bool      `json:"busy"`    // a living writer holds it
}

// sessionColumns are read from the session and its newest record.
const sessionColumns = `id, origin, parent, title, agent, model, created,
	coalesce((SELECT time FROM record WHERE key BETWEEN n << 32 AND n << 32 | 4294967295 ORDER BY key DESC LIMIT 1), created) AS updated,
	coalesce((SELECT max(key) FROM record WHERE key BETWEEN n << 32 AND n << 32 | 4294967295), 0) & 4294967295 AS seq, owner`

func (s *Store) scan(row scanner) (Session, error) {
	var out Session
	var created, updated int64
	var owner string
	err := row.Scan(&out.ID, &out.Origin, &out.Parent, &out.Title, &out.Agent, &out.Model, &created, &updated, &out.Records, &owner)
	out.Created, out.Updated = fromMicros(created), fromMicros(updated)
	if err == nil {
		out.Busy = s.owner.alive(owner)
	}
	return out, err
}

// nextUse is behind the last use of all sessions. A counter says which was
// used last, since clocks go back.
const nextUse = `(SELECT coalesce(max(used), 0) + 1 FROM session)`

// Create makes a session and claims it. Created and Updated are set here.
func (s *Store) Create(ctx context.Context, m Session) (*Writer, error) {
	if err := CheckID(m.ID); err != nil {
		return nil, err
	}
	me, err := s.owner.sign()
	if err != nil {
		return nil, named(m.ID, err)
	}
	w := &Writer{store: s, id: m.ID, fence: 1}
	err = s.queue.commit(ctx, func(t *tx) error {
		var n int64
		err := t.row(`SELECT n FROM session WHERE id = ?`, m.ID).Scan(&n)
		if err == nil {
			return refuse(ErrExists)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if _, err := t.run(`INSERT INTO session (id, origin, parent, title, agent, model, created, owner, fence, used)
			VALUES (?,?,?,?,?,?,?,?,1, `+nextUse+`)`,
			m.ID, m.Origin, m.Parent, m.Title, m.Agent, m.Model, micros(time.Now()), me); err != nil {
			return err
		}
		w.epoch = t.epoch // it is known to have nothing yet
		return t.row(`SELECT last_insert_rowid()`).Scan(&w.n)
	})
	if err != nil {
		return nil, named(m.ID, err)
	}
	s.hold(w.n)
	return w, nil
}

// Claim takes a session whose writer is gone, and settles its calls: one that
// was running is Unknown now, or Failed if it is known to be repeatable. A
// session with a living writer is ErrBusy.
func (s *Store) Claim(ctx context.Context, id string) (*Writer, error) {
	return s.claim(ctx, id, false)
}

// Seize is Claim even from a living writer, whose next write is refused.
func (s *Store) Seize(ctx context.Context, id string) (*Writer, error) { return s.claim(ctx, id, true) }

func (s *Store) claim(ctx context.Context, id string, force bool) (*Writer, error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	me, err := s.owner.sign()
	if err != nil {
		return nil, named(id, err)
	}
	w := &Writer{store: s, id: id}
	err = s.queue.commit(ctx, func(t *tx) error {
		var holder string
		err := t.row(`SELECT n, fence, owner FROM session WHERE id = ?`, id).Scan(&w.n, &w.fence, &holder)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return refuse(ErrNotFound)
		case err != nil:
			return err
		case !force && s.held(w.n, holder, me):
			return refuse(ErrBusy)
		}
		w.fence++
		t.epoch++ // for a writer of this Store that loses it
		if _, err := t.run(`UPDATE session SET fence = ?, owner = ? WHERE n = ?`, w.fence, me, w.n); err != nil {
			return err
		}
		return interrupt(t, w.n)
	})
	if err != nil {
		return nil, named(id, err)
	}
	s.hold(w.n)
	return w, nil
}

// held reports whether a living writer has a session.
func (s *Store) held(n int64, holder, me string) bool {
	if holder != me {
		return s.owner.alive(holder)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine[n]
}

func (s *Store) hold(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mine[n] = true
}

// Fork copies a session, up to now, under a new name, and claims the copy.
// What the original was doing is interrupted in the copy.
func (s *Store) Fork(ctx context.Context, from string, m Session) (*Writer, error) {
	if err := CheckID(from); err != nil {
		return nil, err
	}
	w, err := s.Create(ctx, m)
	if err != nil {
		return nil, err
	}
	err = s.queue.commit(ctx, func(t *tx) error {
		var old int64
		err := t.row(`SELECT n FROM session WHERE id = ?`, from).Scan(&old)
		if errors.Is(err, sql.ErrNoRows) {
			return refuse(ErrNotFound)
		}
		if err != nil {
			return err
		}
		t.epoch++ // w has records now
		if err := t.flush(); err != nil {
			return err
		}
		for _, c := range []struct {
			query string
			args  []any
		}{
			{`INSERT INTO record SELECT key + ?, time, kind, body FROM record WHERE key BETWEEN ? AND ?`,
				[]any{key(w.n-old, 0), key(old, 1), key(old, maxSeq)}},
			{`INSERT INTO call SELECT ?, id, seq, tool, state, ?, repeatable FROM call WHERE session = ?`, []any{w.n, w.fence, old}},
			{`INSERT INTO piece SELECT key + ?, kind, body FROM piece WHERE key BETWEEN ? AND ?`,
				[]any{key(w.n-old, 0), key(old, 1), key(old, maxSeq)}},
			{`INSERT INTO fact SELECT ?, name, body FROM fact WHERE session = ?`, []any{w.n, old}},
			{`INSERT INTO note (session, time, kind, call, body) SELECT ?, time, kind, call, body FROM note WHERE session = ? ORDER BY n`, []any{w.n, old}},
		} {
			if _, err := t.run(c.query, c.args...); err != nil {
				return err
			}
		}
		return interrupt(t, w.n)
	})
	if err != nil {
		s.drop(ctx, w)
		return nil, named(from, err)
	}
	return w, nil
}

// drop removes a session that could not be filled.
func (s *Store) drop(ctx context.Context, w *Writer) {
	ctx = context.WithoutCancel(ctx)
	_ = w.Close(ctx)
	_, _ = s.Delete(ctx, w.id)
}

// Delete removes a session, those that it started, and all that is kept of
// them, and names them. While one of them has a living writer, nothing is
// removed.
func (s *Store) Delete(ctx context.Context, id string) (removed []string, err error) {
	if err := CheckID(id); err != nil {
		return nil, err
	}
	me, err := s.owner.sign()
	if err != nil {
		return nil, named(id, err)
	}
	err = s.queue.commit(ctx, func(t *tx) error {
		all, err := s.below(t, id)
		if err != nil {
			return err
		}
		if err := t.flush(); err != nil {
			return err
		}
		t.epoch++
		if len(all) == 0 {
			return refuse(ErrNotFound)
		}
		for _, b := range all {
			if s.held(b.n, b.owner, me) {
				return refuse(ErrBusy)
			}
		}
		for _, b := range all {
			for _, query := range []string{
				`DELETE FROM call WHERE session = ?`, `DELETE FROM note WHERE session = ?`, `DELETE FROM fact WHERE session = ?`,
				`DELETE FROM session WHERE n = ?`,
			} {
				if _, err := t.run(query, b.n); err != nil {
					return err
				}
			}
			for _, query := range []string{`DELETE FROM record WHERE key BETWEEN ? AND ?`, dropPieces} {
				if _, err := t.run(query, key(b.n, 0), key(b.n, maxSeq)); err != nil {
					return err
				}
			}
			removed = append(removed, b.id)
		}
		return nil
	})
	if err != nil {
		return nil, named(id, err)
	}
	return removed, nil
}

type held struct {
	n     int64
	id    string
	owner string
}

// tree is a session and all that it started, directly or not.
const tree = `WITH RECURSIVE tree(n, id) AS (
  SELECT n, id FROM session WHERE id = ?
  UNION SELECT s.n, s.id FROM session s JOIN tree ON s.parent = tree.id AND s.parent <> '')`

func (s *Store) below(t *tx, id string) ([]held, error) {
	var out []held
	err := t.each(tree+` SELECT n, id, owner FROM session WHERE n IN (SELECT n FROM tree)`, []any{id}, func(row scanner) error {
		var h held
		err := row.Scan(&h.n, &h.id, &h.owner)
		out = append(out, h)
		return err
	})
	return out, err
}
