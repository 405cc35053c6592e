package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// migrations bring a file from version i to i+1 (PRAGMA user_version). A step
// that was released is never changed: a new one is added.
//
// The key of a record and of a piece holds session and number (see key), so
// that one tree, read in order, serves both.
var migrations = []string{`
CREATE TABLE session (
  n       INTEGER PRIMARY KEY,
  id      TEXT NOT NULL UNIQUE,
  origin  TEXT NOT NULL,
  parent  TEXT NOT NULL,
  title   TEXT NOT NULL,
  agent   TEXT NOT NULL,
  model   TEXT NOT NULL,
  created INTEGER NOT NULL,
  fence   INTEGER NOT NULL,
  owner   TEXT NOT NULL
) STRICT;
CREATE INDEX session_parent ON session(parent) WHERE parent <> '';
CREATE INDEX session_origin ON session(origin);
CREATE TABLE record (
  key  INTEGER PRIMARY KEY,
  time INTEGER NOT NULL,
  kind TEXT NOT NULL,
  body BLOB NOT NULL
) STRICT;
CREATE TABLE call (
  session    INTEGER NOT NULL,
  id         TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  tool       TEXT NOT NULL,
  state      TEXT NOT NULL,
  fence      INTEGER NOT NULL,
  repeatable INTEGER NOT NULL,
  PRIMARY KEY (session, id, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE note (
  n       INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  time    INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  call    TEXT NOT NULL,
  body    BLOB NOT NULL
) STRICT;
CREATE INDEX note_session ON note(session);
CREATE TABLE draft (
  session INTEGER PRIMARY KEY,
  body    TEXT NOT NULL
) STRICT;
`, `
-- A row a piece: adding one must not write again what came before it.
CREATE TABLE piece (
  key  INTEGER PRIMARY KEY,
  kind TEXT NOT NULL,
  body TEXT NOT NULL
) STRICT;
INSERT INTO piece SELECT session << 32 | 1, 'text', body FROM draft;
DROP TABLE draft;
`, `
CREATE TABLE fact (
  session INTEGER NOT NULL,
  name    TEXT NOT NULL,
  body    BLOB NOT NULL,
  PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
`}

// migrate brings the file to the newest version, in one transaction that other
// processes wait for.
func (t *tx) migrate() error {
	var mode string
	if err := t.row(`PRAGMA journal_mode = WAL`).Scan(&mode); err != nil {
		return err
	}
	var version int
	if err := t.row(`PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version == len(migrations) {
		return nil
	}
	if version > len(migrations) {
		return fmt.Errorf("%w (version %d, this program knows %d)", ErrNewer, version, len(migrations))
	}
	return t.do(func() error {
		if err := t.row(`PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		for ; version < len(migrations); version++ {
			if err := t.exec(migrations[version]); err != nil {
				return err
			}
			if err := t.exec(fmt.Sprintf(`PRAGMA user_version = %d`, version+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxSeq is the highest number of a record.
const maxSeq = 1<<32 - 1

// key is where a record lies: all of a session are neighbours.
func key(session, seq int64) int64 { return session<<32 | seq }

// micros is how times are kept.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }

// tx is the writing connection with its prepared statements.
type tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt

	rows []any // of records that are to be inserted: four values each
	// epoch grows whenever what a Writer remembers may not hold any more:
	// another connection has written, a session was claimed, a transaction
	// failed. version is what the engine says of other connections.
	epoch, version int64

	bytes int64 // of texts and bodies, in this transaction
}

// begin is done first in each transaction of the queue.
func (t *tx) begin() error {
	t.rows = t.rows[:0]
	t.bytes = 0
	var version int64
	if err := t.row(`PRAGMA data_version`).Scan(&version); err != nil {
		return err
	}
	if version != t.version {
		t.version = version
		t.epoch++
	}
	return nil
}

// insert keeps a record for flush: many go in with one statement.
func (t *tx) insert(session int64, r Record) {
	t.rows = append(t.rows, key(session, r.Seq), micros(r.Time), r.Kind, []byte(r.Body))
}

// flush inserts the records. It is done last in each transaction, and by
// those who read records in one.
func (t *tx) flush() error {
	rows := t.rows
	for _, n := range []int{64, 16, 4, 1} {
		for ; len(rows) >= 4*n; rows = rows[4*n:] {
			query := `INSERT INTO record VALUES (?,?,?,?)` + strings.Repeat(`,(?,?,?,?)`, n-1)
			if _, err := t.run(query, rows[:4*n]...); err != nil {
				return err
			}
		}
	}
	clear(t.rows)
	t.rows = t.rows[:0]
	return nil
}

// do runs f in a transaction.
func (t *tx) do(f func() error) error {
	if _, err := t.run(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := f()
	if err == nil {
		if _, err = t.run(`COMMIT`); err == nil {
			return nil
		}
	}
	_, _ = t.run(`ROLLBACK`) // fails where the engine has rolled back by itself
	return err
}

// stmt prepares a statement once. Statements run without the caller's context:
// a transaction serves many callers, and each of its steps is short.
func (t *tx) stmt(query string) (*sql.Stmt, error) {
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	st, err := t.conn.PrepareContext(context.Background(), query)
	if err == nil {
		t.stmts[query] = st
	}
	return st, err
}

// run executes a prepared statement and counts the rows that it changed.
func (t *tx) run(query string, args ...any) (int64, error) {
	st, err := t.stmt(query)
	if err != nil {
		return 0, err
	}
	for _, a := range args {
		switch a := a.(type) {
		case string:
			t.bytes += int64(len(a))
		case []byte:
			t.bytes += int64(len(a))
		}
	}
	res, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// exec executes a text that is not worth keeping prepared.
func (t *tx) exec(query string, args ...any) error {
	_, err := t.conn.ExecContext(context.Background(), query, args...)
	return err
}

// scanner is a *sql.Row, or an error in its place.
type scanner interface{ Scan(...any) error }

type failedRow struct{ err error }

func (f failedRow) Scan(...any) error { return f.err }

func (t *tx) row(query string, args ...any) scanner {
	st, err := t.stmt(query)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(context.Background(), args...)
}

func (t *tx) close() error {
	for _, st := range t.stmts {
		_ = st.Close() // the connection is closed next
	}
	return t.conn.Close()
}
