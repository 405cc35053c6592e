// Package store keeps sessions on disk: what is known of each one, its records
// in order, the state of every call, and notes about it. Bodies are JSON that
// the store never looks into.
//
// A record is durable when Append returns: killing the process loses nothing.
// (A power cut may lose the last moments, never the file.) Several processes
// may use one store. A session has one writer at a time; each new writer has a
// higher fence, and one with a lower fence is refused.
//
// Nothing outside of this package knows how it is kept.
package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/base32"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/store/internal/engine"
	_ "modernc.org/sqlite" // registers the driver
)

// patience is how long a write waits for another process, before it fails.
const patience = 10 * time.Second

// Store is an open store. It is safe for concurrent use. Close it after its
// Writers.
type Store struct {
	path  string
	read  *sql.DB
	copy  *sql.DB // of a file of an earlier version, in memory; nil: read is of the file
	queue queue
	log   checkpoints
	owner owner

	closing sync.Once

	mu   sync.Mutex
	mine map[int64]bool // sessions that have a Writer of this Store
}

// Open opens the store in a file, and makes it, and its folder, if need be.
func Open(ctx context.Context, path string) (*Store, error) {
	s, err := open(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening the store %q: %w", path, plain(err))
	}
	return s, nil
}

func open(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	// Made here, so that nobody else can read it; its companions take its mode.
	// One that is there is not opened: to close it would take their locks from
	// the other Stores of this process (fcntl(2)).
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, os.ErrExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, mine: map[int64]bool{}}
	s.log.bounds = usual()
	s.owner.dir = path + ".owners"
	s.log.open = func() (wal, error) { return follow(source(path, "")) }
	s.queue.patience, s.queue.ending = patience, make(chan struct{})
	s.queue.wrote, s.log.pause = s.log.note, s.queue.pause
	if s.read, err = sql.Open("sqlite", source(path, "_pragma=query_only(1)")); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.read.SetMaxOpenConns(min(4, runtime.GOMAXPROCS(0)+1))
	if err := s.prepare(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// OpenRead opens a store to read from it, where it lies in a place that cannot
// be written. It makes and changes nothing. A store that is not there is an
// fs.ErrNotExist.
//
// A log beside the file holds what is not in it yet, and is read with it. Only
// without one the file is taken to stay as it is. One of an earlier version is
// read as it is now, through a copy in memory.
func OpenRead(ctx context.Context, path string) (*Store, error) {
	s, err := openRead(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("opening the store %q to read it: %w", path, plain(err))
	}
	return s, nil
}

func openRead(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	how := "mode=ro"
	if log, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) || err == nil && log.Size() == 0 {
		how += "&immutable=1"
	}
	s := &Store{path: path, mine: map[int64]bool{}}
	s.owner.dir = path + ".owners"
	s.queue.refused = fmt.Errorf("%w: it was opened to be read", ErrFile)
	if s.read, err = sql.Open("sqlite", source(path, "_pragma=query_only(1)&"+how)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var version int
	if err := s.read.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	switch {
	case version > len(migrations):
		err = newer(version)
	case version < len(migrations):
		err = s.upToDate(ctx, source(path, how), version, maxCopy)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// source is the URI of a file. What begins with an underscore is the driver's,
// and the engine itself passes over it.
func source(path, extra string) string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(u.Path, "/") { // C:/…
		u.Path = "/" + u.Path
	}
	return u.String() + fmt.Sprintf("?_pragma=busy_timeout(%d)&", patience.Milliseconds()) + extra
}

// prepare migrates, and readies the writer. Another process may be doing the
// same: what is locked is tried again, since the change to write-ahead logging
// does not wait by itself.
func (s *Store) prepare(ctx context.Context) error {
	conn, err := engine.Open(source(s.path, ""))
	if err != nil {
		return err
	}
	s.queue.tx = &tx{conn: conn, stmts: map[string]*engine.Stmt{}}
	conn.Follow()
	until := time.Now().Add(patience)
	conn.Patience(until, ctx.Done(), nil)
	for ; ; time.Sleep(5 * time.Millisecond) {
		err := conn.Exec(`PRAGMA synchronous = NORMAL`)
		if err == nil {
			err = s.queue.tx.migrate()
		}
		if busy(err) && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil || !busy(err) || time.Now().After(until) {
			return err
		}
	}
}

// Close closes the store. Writers that are still open lose their claims.
func (s *Store) Close() (err error) {
	s.closing.Do(func() { err = s.shut() })
	return err
}

func (s *Store) shut() error {
	s.queue.end()
	kept, err := s.log.close() // first: it may be pausing the queue
	errs := []error{err}
	s.queue.close()
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.copy != nil {
		errs = append(errs, s.copy.Close())
	}
	if tx := s.queue.tx; tx != nil { // last: it is the one that may have to keep the log
		if kept {
			errs = append(errs, tx.conn.KeepLog())
		}
		errs = append(errs, tx.close())
	}
	return errors.Join(append(errs, s.owner.close())...)
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckID tells whether a text can be the name of a session. Names are opaque:
// they go into no path or query, but whoever makes a folder of one may.
func CheckID(id string) error {
	if !idForm.MatchString(id) {
		return fmt.Errorf("%w: %.40q", ErrBadID, id)
	}
	return nil
}

// NewID makes a name that says nothing and cannot be guessed.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return "ses_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
