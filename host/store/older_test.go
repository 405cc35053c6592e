package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// older makes a store of an earlier version with a session of two records.
func older(t *testing.T, version int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := sql.Open("sqlite", source(path, "_pragma=journal_mode(WAL)"))
	must(t, err)
	queries := append([]string{}, migrations[:version]...)
	queries = append(queries, fmt.Sprintf(`PRAGMA user_version = %d`, version),
		`INSERT INTO session (n, id, origin, parent, title, agent, model, created, fence, owner) VALUES (1, 'one', 'o', '', 'a title', '', 'm', 10, 1, '')`,
		fmt.Sprintf(`INSERT INTO record VALUES (%d, 20, 'message', CAST('{"a":1}' AS BLOB)), (%d, 30, 'message', CAST('{"a":2}' AS BLOB))`, key(1, 1), key(1, 2)))
	if version == 1 {
		queries = append(queries, `INSERT INTO draft VALUES (1, 'half a wo')`)
	}
	for _, query := range queries {
		_, err := db.Exec(query)
		must(t, err)
	}
	must(t, db.Close())
	return path
}

// A store of any earlier version is read where nothing can be written, and
// nothing is.
func TestReadingAnOlderStore(t *testing.T) {
	ctx := context.Background()
	for version := 1; version < len(migrations); version++ {
		path := older(t, version)
		before, err := os.ReadFile(path)
		must(t, err)
		s, err := OpenRead(ctx, path)
		must(t, err)
		if got := listed(t, s); got != "one" {
			t.Errorf("version %d lists %q", version, got)
		}
		m, err := s.Session(ctx, "one")
		if must(t, err); m.Title != "a title" || m.Records != 2 {
			t.Errorf("version %d: %+v", version, m)
		}
		// Reading within reading takes further connections to the same copy.
		n := 0
		for r, err := range s.Records(ctx, "one", 0) {
			must(t, err)
			if n++; string(r.Body) != fmt.Sprintf(`{"a":%d}`, n) || len(all(t, s, "one")) != 2 {
				t.Errorf("version %d, record %d: %s", version, n, r.Body)
			}
		}
		pieces, err := s.Drafted(ctx, "one")
		if must(t, err); version == 1 && (len(pieces) != 1 || pieces[0].Text != "half a wo") {
			t.Errorf("version %d: the draft is %v", version, pieces)
		}
		wants(t, s.SetFact(ctx, "one", "a", []byte(`1`)), ErrFile)
		must(t, s.Close())
		after, err := os.ReadFile(path)
		must(t, err)
		if sha256.Sum256(before) != sha256.Sum256(after) {
			t.Errorf("version %d was changed", version)
		}
		left, err := os.ReadDir(filepath.Dir(path))
		if must(t, err); len(left) != 1 {
			t.Errorf("version %d: left behind %v", version, left)
		}
	}
}

// Two copies have nothing to do with each other; what is too large, or not
// wanted any more, is not copied.
func TestCopiesOfOlderStores(t *testing.T) {
	ctx, path := context.Background(), older(t, 3)
	one, err := OpenRead(ctx, path)
	must(t, err)
	two, err := OpenRead(ctx, path)
	must(t, err)
	must(t, one.Close())
	if got := listed(t, two); got != "one" {
		t.Errorf("after the other was closed: %q", got)
	}
	must(t, two.Close())

	s := &Store{path: path}
	s.read, err = sql.Open("sqlite", source(path, "mode=ro&immutable=1"))
	must(t, err)
	err = s.upToDate(ctx, source(path, "mode=ro&immutable=1"), 3, 1000)
	if wants(t, err, ErrFile); !strings.Contains(err.Error(), "a copy of it can be") {
		t.Error(err)
	}
	must(t, s.Close())
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = OpenRead(gone, path)
	wants(t, err, context.Canceled)
}
