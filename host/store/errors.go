package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// The errors of this package. They come wrapped, with the session's name.
var (
	ErrBadID    = errors.New("not an identifier of a session")
	ErrNotFound = errors.New("there is no such session")
	ErrExists   = errors.New("the session exists already")
	ErrBusy     = errors.New("the session is in use")
	ErrFenced   = errors.New("another writer has taken the session over")
	ErrOrder    = errors.New("the record is out of order")
	ErrState    = errors.New("the call cannot get into this state")
	ErrNewer    = errors.New("the store was written by a newer elfhost")
	ErrDamaged  = errors.New("the store is damaged, or is no store")
	ErrFull     = errors.New("there is no room for the store")
	ErrLocked   = errors.New("another program keeps the store locked")
	ErrFile     = errors.New("the store's file cannot be used") // or its folder
)

// busy reports an error that only says that another process was faster.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// plain gives an error of the engine, or of the file system, one of this
// package's: what it means to those who know neither.
func plain(err error) error {
	var engine *sqlite.Error
	var file *fs.PathError
	meaning := error(nil)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		meaning = ErrFull
	case errors.As(err, &engine):
		switch engine.Code() & 0xff {
		case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
			meaning = ErrDamaged
		case lib.SQLITE_FULL:
			meaning = ErrFull
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
			meaning = ErrLocked
		case lib.SQLITE_IOERR, lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN, lib.SQLITE_PERM, lib.SQLITE_AUTH, lib.SQLITE_NOLFS:
			meaning = ErrFile
		}
	case errors.As(err, &file):
		meaning = ErrFile
	}
	if meaning == nil || errors.Is(err, meaning) {
		return err
	}
	return fmt.Errorf("%w: %w", meaning, err)
}

// named adds the session's name to an error.
func named(id string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("session %q: %w", id, plain(err))
}
