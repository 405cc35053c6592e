package store

import (
	"database/sql"
	"strings"

	"github.com/elfhost/elfhost/host/store/internal/engine"
)

// tx is the writing connection with its prepared statements.
type tx struct {
	conn  *engine.Conn
	stmts map[string]*engine.Stmt

	rows []row // that are to be inserted
	// epoch grows whenever what a Writer remembers may not hold any more:
	// another connection has written, a session was claimed, a transaction
	// failed. version is what the engine says of other connections.
	epoch, version int64
}

// row is a record as it is kept.
type row struct {
	key, time int64
	kind      string
	body      []byte
}

// inserts are the statements that insert 64, 16, 4 records, and one.
var inserts = func() (out [4]string) {
	for i, n := range insertSizes {
		out[i] = `INSERT INTO record VALUES (?,?,?,?)` + strings.Repeat(`,(?,?,?,?)`, n-1)
	}
	return out
}()

var insertSizes = [4]int{64, 16, 4, 1}

// begin is done first in each transaction of the queue.
func (t *tx) begin() error {
	t.rows = t.rows[:0]
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
	t.rows = append(t.rows, row{key(session, r.Seq), micros(r.Time), r.Kind, r.Body})
}

// flush inserts the records. It is done last in each transaction, and by
// those who read records in one.
func (t *tx) flush() error {
	rows := t.rows
	for i, n := range insertSizes {
		for ; len(rows) >= n; rows = rows[n:] {
			if err := t.put(inserts[i], rows[:n]); err != nil {
				return err
			}
		}
	}
	clear(t.rows)
	t.rows = t.rows[:0]
	return nil
}

func (t *tx) put(query string, rows []row) error {
	st, err := t.stmt(query)
	if err != nil {
		return err
	}
	defer st.Reset()
	for i, r := range rows {
		for _, err := range [...]error{st.Int(4*i+1, r.key), st.Int(4*i+2, r.time), st.Text(4*i+3, r.kind), st.Blob(4*i+4, r.body)} {
			if err != nil {
				return err
			}
		}
	}
	_, err = st.Step()
	return err
}

// do runs f in a transaction.
func (t *tx) do(f func() error) error {
	if _, err := t.run(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	return t.end(f)
}

// end runs f in the transaction that was begun, and ends it.
func (t *tx) end(f func() error) error {
	err := f()
	if err == nil {
		if _, err = t.run(`COMMIT`); err == nil {
			return nil
		}
	}
	_, _ = t.run(`ROLLBACK`) // fails where the engine has rolled back by itself
	return err
}

// stmt prepares a statement once.
func (t *tx) stmt(query string) (*engine.Stmt, error) {
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	st, err := t.conn.Prepare(query)
	if err == nil {
		t.stmts[query] = st
	}
	return st, err
}

// run executes a prepared statement and counts the rows that it changed.
func (t *tx) run(query string, args ...any) (int64, error) {
	err := t.each(query, args, func(scanner) error { return nil })
	if err != nil {
		return 0, err
	}
	return t.conn.Changed(), nil
}

// each runs a prepared statement and calls f with each of its rows.
func (t *tx) each(query string, args []any, f func(scanner) error) error {
	st, err := t.stmt(query)
	if err != nil {
		return err
	}
	defer st.Reset()
	if err := st.Bind(args...); err != nil {
		return err
	}
	for {
		more, err := st.Step()
		if err != nil || !more {
			return err
		}
		if err := f(st); err != nil {
			return err
		}
	}
}

// scanner is a row, or an error in its place.
type scanner interface{ Scan(...any) error }

// query is a statement and its values, of which the first row is wanted.
type query struct {
	tx   *tx
	text string
	args []any
}

// row asks for one row; Scan runs the statement, and is sql.ErrNoRows where
// there is none.
func (t *tx) row(text string, args ...any) scanner { return query{t, text, args} }

func (q query) Scan(dest ...any) error {
	st, err := q.tx.stmt(q.text)
	if err != nil {
		return err
	}
	defer st.Reset()
	if err := st.Bind(q.args...); err != nil {
		return err
	}
	more, err := st.Step()
	switch {
	case err != nil:
		return err
	case !more:
		return sql.ErrNoRows
	}
	return st.Scan(dest...)
}

func (t *tx) close() error {
	for _, st := range t.stmts {
		st.Close()
	}
	return t.conn.Close()
}
