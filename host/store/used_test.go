package store

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// listed are the names of all sessions, the last used first.
func listed(t *testing.T, s *Store) string {
	t.Helper()
	found, err := s.List(context.Background(), Query{})
	must(t, err)
	var ids []string
	for _, m := range found {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, " ")
}

// The session that was used last is found by what happened, not by the clock,
// which goes back now and then.
func TestTheLastUsedWhateverTheClockSays(t *testing.T) {
	ctx, s := context.Background(), openTest(t)
	a, b := create(t, s, Session{ID: "a"}), create(t, s, Session{ID: "b"})
	at := func(seq int64, year int) Record {
		r := record(seq)
		r.Time = time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		return r
	}
	must(t, a.Append(ctx, at(1, 2040), false))
	must(t, b.Append(ctx, at(1, 2030), false))
	if got := listed(t, s); got != "b a" {
		t.Errorf("the clock decides: %q", got)
	}
	must(t, a.Append(ctx, at(2, 2020), false))
	if got := listed(t, s); got != "b a" {
		t.Errorf("each record is a use: %q", got)
	}
	a.used = a.used.Add(-useEvery)
	must(t, a.Append(ctx, at(3, 2020), true, Move{Call: "c", Tool: "T", To: Pending}))
	if got := listed(t, s); got != "a b" {
		t.Errorf("an answer is no use: %q", got)
	}
	must(t, a.Close(ctx))
	must(t, b.Close(ctx))
	b, err := s.Claim(ctx, "b")
	must(t, err)
	must(t, b.Append(ctx, at(2, 2019), false))
	create(t, s, Session{ID: "empty"})
	if got := listed(t, s); got != "empty b a" {
		t.Errorf("got %q", got)
	}
}

// A file of the version before keeps the order that its times tell.
func TestUsesOfAnOlderFile(t *testing.T) {
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "s.db")
	old, err := sql.Open("sqlite", source(path, ""))
	must(t, err)
	for _, query := range []string{
		migrations[0], migrations[1], migrations[2], `PRAGMA user_version = 3`,
		`INSERT INTO session VALUES (1, 'newest', 'o', '', '', '', '', 10, 1, ''), (2, 'oldest', 'o', '', '', '', '', 20, 1, ''), (3, 'empty', 'o', '', '', '', '', 30, 1, '')`,
		fmt.Sprintf(`INSERT INTO record VALUES (%d, 90, 'message', CAST('{}' AS BLOB)), (%d, 40, 'message', CAST('{}' AS BLOB)), (%d, 21, 'message', CAST('{}' AS BLOB))`,
			key(1, 1), key(1, 2), key(2, 1)),
	} {
		_, err := old.Exec(query)
		must(t, err)
	}
	must(t, old.Close())
	s := openAt(t, path)
	if got := listed(t, s); got != "newest empty oldest" {
		t.Errorf("after the migration: %q", got)
	}
	w, err := s.Claim(ctx, "oldest")
	must(t, err)
	must(t, w.Append(ctx, record(2), false))
	create(t, s, Session{ID: "new"})
	if got := listed(t, s); got != "new oldest newest empty" {
		t.Errorf("then: %q", got)
	}
}
