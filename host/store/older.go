package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// maxCopy bounds the copy in memory of a store of an earlier version, in bytes.
const maxCopy = 512 << 20

// copyPages is how much of it is copied before the context is looked at again.
const copyPages = 4096

// upToDate goes on with a copy in memory that is brought up to date: for a store
// of an earlier version where nothing can be written. from is its source.
func (s *Store) upToDate(ctx context.Context, from string, version int, most int64) error {
	var size int64
	if err := s.read.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&size); err != nil {
		return err
	}
	if size > most {
		return fmt.Errorf("%w: an older elfhost wrote it, and its %d MB are too many to be brought up to date in memory; a copy of it can be, where it may be written",
			ErrFile, size>>20)
	}
	if err := s.read.Close(); err != nil {
		return err
	}
	// Connections that name the same memory share it, as long as there is one.
	memory := "file:" + NewID() + "?mode=memory&cache=shared"
	var err error
	if s.copy, err = sql.Open("sqlite", memory); err != nil {
		return err
	}
	s.copy.SetMaxOpenConns(1)
	conn, err := s.copy.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Raw(func(c any) error { return restore(ctx, c, from) }); err != nil {
		return err
	}
	for _, m := range migrations[version:] {
		if _, err := conn.ExecContext(ctx, m); err != nil {
			return err
		}
	}
	s.read, err = sql.Open("sqlite", memory+"&_pragma=query_only(1)")
	return err
}

// restore copies a file into the database of a connection.
func restore(ctx context.Context, c any, from string) error {
	into, ok := c.(interface {
		NewRestore(string) (*sqlite.Backup, error)
	})
	if !ok {
		return errors.New("the driver of the store cannot copy it")
	}
	b, err := into.NewRestore(from)
	if err != nil {
		return err
	}
	for more := true; more; {
		if err = context.Cause(ctx); err != nil {
			break
		}
		if more, err = b.Step(copyPages); err != nil {
			break
		}
	}
	return errors.Join(err, b.Finish())
}
