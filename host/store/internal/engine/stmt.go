package engine

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Stmt is a prepared statement of a Conn, used as the Conn is: bound, stepped
// through, and Reset before it is bound again.
type Stmt struct {
	conn   *Conn
	stmt   uintptr
	params int

	// What is bound lies in the engine's memory, until Reset: in a piece that
	// is kept for the next time, and in others where it did not fit.
	kept       uintptr
	size, used int
	others     []uintptr
	wanted     int // by this run
}

// mostKept bounds the memory that a statement keeps for its next arguments.
const mostKept = 256 << 10

// Prepare prepares the first statement of a text.
func (c *Conn) Prepare(query string) (*Stmt, error) {
	text, err := libc.CString(query)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, text)
	rc := lib.Xsqlite3_prepare_v3(c.tls, c.db, text, -1, lib.SQLITE_PREPARE_PERSISTENT, c.out, 0)
	if err := c.failed(rc); err != nil {
		return nil, err
	}
	s := &Stmt{conn: c, stmt: *at[uintptr](c.out)}
	s.params = int(lib.Xsqlite3_bind_parameter_count(c.tls, s.stmt))
	return s, nil
}

// Int binds a number. Parameters count from 1.
func (s *Stmt) Int(i int, v int64) error {
	return s.conn.failed(lib.Xsqlite3_bind_int64(s.conn.tls, s.stmt, int32(i), v))
}

// Text binds a text.
func (s *Stmt) Text(i int, v string) error {
	p, err := s.keep(unsafe.Slice(unsafe.StringData(v), len(v)))
	if err != nil {
		return err
	}
	return s.conn.failed(lib.Xsqlite3_bind_text(s.conn.tls, s.stmt, int32(i), p, int32(len(v)), static))
}

// Blob binds bytes; nil is NULL.
func (s *Stmt) Blob(i int, v []byte) error {
	if v == nil {
		return s.conn.failed(lib.Xsqlite3_bind_null(s.conn.tls, s.stmt, int32(i)))
	}
	p, err := s.keep(v)
	if err != nil {
		return err
	}
	return s.conn.failed(lib.Xsqlite3_bind_blob(s.conn.tls, s.stmt, int32(i), p, int32(len(v)), static))
}

// static tells the engine that what is bound stays where it is: SQLITE_STATIC.
const static = 0

// most is how long a value may be: SQLITE_MAX_LENGTH.
const most = 1_000_000_000

// keep copies a value to where the engine can read it.
func (s *Stmt) keep(v []byte) (uintptr, error) {
	if len(v) > most {
		return 0, &Error{lib.SQLITE_TOOBIG, "string or blob too big"}
	}
	n := max(len(v), 1) // an empty value has an address, too
	s.wanted += n
	var p uintptr
	if s.used+n <= s.size {
		p = s.kept + uintptr(s.used)
		s.used += n
	} else {
		if p = libc.Xmalloc(s.conn.tls, libc.Tsize_t(n)); p == 0 {
			return 0, &Error{lib.SQLITE_NOMEM, "out of memory"}
		}
		s.others = append(s.others, p)
	}
	copy(unsafe.Slice(at[byte](p), n), v)
	return p, nil
}

// Bind binds all parameters: int64, bool, string and []byte.
func (s *Stmt) Bind(args ...any) error {
	if len(args) != s.params {
		return fmt.Errorf("%d values for %d parameters", len(args), s.params)
	}
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case int64:
			err = s.Int(i+1, a)
		case bool:
			n := int64(0)
			if a {
				n = 1
			}
			err = s.Int(i+1, n)
		case string:
			err = s.Text(i+1, a)
		case []byte:
			err = s.Blob(i+1, a)
		default:
			err = fmt.Errorf("a value of type %T cannot be bound", a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Step goes to the next row, and reports whether there is one.
func (s *Stmt) Step() (bool, error) {
	switch rc := lib.Xsqlite3_step(s.conn.tls, s.stmt); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.conn.failed(rc)
	}
}

// Scan reads the row: into *int64, *int and *string.
func (s *Stmt) Scan(dest ...any) error {
	for i, d := range dest {
		switch d := d.(type) {
		case *int64:
			*d = lib.Xsqlite3_column_int64(s.conn.tls, s.stmt, int32(i))
		case *int:
			*d = int(lib.Xsqlite3_column_int64(s.conn.tls, s.stmt, int32(i)))
		case *string:
			p := lib.Xsqlite3_column_text(s.conn.tls, s.stmt, int32(i))
			n := lib.Xsqlite3_column_bytes(s.conn.tls, s.stmt, int32(i))
			*d = ""
			if p != 0 {
				*d = string(unsafe.Slice(at[byte](p), n))
			}
		default:
			return fmt.Errorf("a column cannot be read into a %T", d)
		}
	}
	return nil
}

// Reset ends the run, so that the statement can be bound again. What went
// wrong in the run was Step's to say.
func (s *Stmt) Reset() {
	_ = lib.Xsqlite3_reset(s.conn.tls, s.stmt)
	for _, p := range s.others {
		libc.Xfree(s.conn.tls, p)
	}
	if len(s.others) > 0 && s.wanted <= mostKept {
		libc.Xfree(s.conn.tls, s.kept)
		if s.kept, s.size = libc.Xmalloc(s.conn.tls, libc.Tsize_t(2*s.wanted)), 2*s.wanted; s.kept == 0 {
			s.size = 0
		}
	}
	s.others, s.used, s.wanted = s.others[:0], 0, 0
}

// Changed is how many rows the last statement inserted, updated or deleted.
func (c *Conn) Changed() int64 { return int64(lib.Xsqlite3_changes(c.tls, c.db)) }

// Close frees the statement.
func (s *Stmt) Close() {
	s.Reset()
	libc.Xfree(s.conn.tls, s.kept)
	s.kept, s.size = 0, 0
	_ = lib.Xsqlite3_finalize(s.conn.tls, s.stmt)
}
