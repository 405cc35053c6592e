package store

import (
	"fmt"
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
`, `
-- In which order sessions were used, since clocks go back.
ALTER TABLE session ADD COLUMN used INTEGER NOT NULL DEFAULT 0;
UPDATE session SET used = rank FROM (
  SELECT n AS m, row_number() OVER (ORDER BY coalesce(
    (SELECT time FROM record WHERE key BETWEEN n << 32 AND n << 32 | 4294967295 ORDER BY key DESC LIMIT 1), created), n) AS rank
  FROM session) WHERE n = m;
CREATE INDEX session_used ON session(used);
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
		return newer(version)
	}
	return t.do(func() error {
		if err := t.row(`PRAGMA user_version`).Scan(&version); err != nil {
			return err
		}
		for ; version < len(migrations); version++ {
			if err := t.conn.Exec(migrations[version]); err != nil {
				return err
			}
			if err := t.conn.Exec(fmt.Sprintf(`PRAGMA user_version = %d`, version+1)); err != nil {
				return err
			}
		}
		return nil
	})
}

func newer(version int) error {
	return fmt.Errorf("%w (version %d, this program knows %d)", ErrNewer, version, len(migrations))
}

// maxSeq is the highest number of a record.
const maxSeq = 1<<32 - 1

// key is where a record lies: all of a session are neighbours.
func key(session, seq int64) int64 { return session<<32 | seq }

// micros is how times are kept.
func micros(t time.Time) int64 { return t.UnixMicro() }

func fromMicros(n int64) time.Time { return time.UnixMicro(n).UTC() }
