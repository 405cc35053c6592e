package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/elfhost/elfhost/host/store/internal/engine"
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

// code is the engine's, of the connection that writes or of the driver's; 0
// where the error is not its.
func code(err error) int { return extended(err) & 0xff }

// extended is code with what the engine says more closely.
func extended(err error) int {
	var own *engine.Error
	if errors.As(err, &own) {
		return own.Code
	}
	var driver *sqlite.Error
	if errors.As(err, &driver) {
		return driver.Code()
	}
	return 0
}

// busy reports an error that only says that another process was faster.
func busy(err error) bool {
	c := code(err)
	return c == lib.SQLITE_BUSY || c == lib.SQLITE_LOCKED || c == lib.SQLITE_PROTOCOL
}

// plain gives an error of the engine, or of the file system, one of this
// package's: what it means to those who know neither.
func plain(err error) error {
	var file *fs.PathError
	meaning := error(nil)
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), extended(err) == lib.SQLITE_IOERR_SHMSIZE: // the log's index could not grow
		meaning = ErrFull
	case code(err) != 0:
		switch code(err) {
		case lib.SQLITE_NOTADB, lib.SQLITE_CORRUPT:
			meaning = ErrDamaged
		case lib.SQLITE_FULL:
			meaning = ErrFull
		case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
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
