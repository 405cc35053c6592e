package audit

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// DefaultMaxSize is the size from which a new file is begun, in bytes.
const DefaultMaxSize = 16 << 20

// Options of a log.
type Options struct {
	Key     []byte              // authenticates the records, see Key
	MaxSize int64               // of one file; 0: DefaultMaxSize
	Scrub   func(string) string // takes secrets in use out of a text, before the shapes of others are looked for; may be nil
	Sync    bool                // wait for the disk at each record; without it a power cut may lose the last ones
}

// Log appends records. It is safe for concurrent use, also by several
// processes with the same folder. Close it.
type Log struct {
	dir   string
	opt   Options
	scrub scrubber

	mu   sync.Mutex
	seal *seal
	lck  *os.File
	head *os.File
	file *os.File // the newest log file
	last head     // where this process left the log

	// The text of last, where it is known, and of the head as it is read now.
	said, now [headLen]byte

	later []Record    // of Soon, scrubbed
	timer *time.Timer // nil: nothing will write them but the next record, or Close
}

// What Soon keeps, and for how long.
const (
	maxLater = 64
	delay    = 20 * time.Millisecond
)

// Key reads the key at path, or makes one on first use. The file must not lie
// in the log's folder and is readable by its owner alone.
func Key(path string) ([]byte, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the key %q: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return ReadKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("making the key %q: %w", path, err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails (crypto/rand)
	_, err = f.Write(key)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("making the key %q: %w", path, err)
	}
	return key, nil
}

// ReadKey reads a key that Key has made, and makes none. It waits a moment for
// another process that is just making it.
func ReadKey(path string) ([]byte, error) {
	for try := 0; ; try++ {
		key, err := os.ReadFile(path)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the key %q: %w", path, err)
		case len(key) == 32:
			return key, nil
		case try == 50:
			return nil, fmt.Errorf("reading the key %q: it has %d bytes instead of 32", path, len(key))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Open opens the log in dir, which is made if it is not there. What a process
// that died left half-written at the end is cut off: it was never acknowledged.
// A log that does not end where its head says is an error: see Verify.
func Open(dir string, opt Options) (*Log, error) {
	l := &Log{dir: dir, opt: opt, scrub: scrubber{known: opt.Scrub}, seal: newSeal(opt.Key)}
	if l.opt.MaxSize <= 0 {
		l.opt.MaxSize = DefaultMaxSize
	}
	if err := l.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the audit log: %w", err), l.Close())
	}
	return l, nil
}

func (l *Log) open() error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	var err error
	if l.lck, err = openFile(filepath.Join(l.dir, "lock"), os.O_RDWR|os.O_CREATE); err != nil {
		return err
	}
	if l.head, err = openFile(filepath.Join(l.dir, "head"), os.O_RDWR|os.O_CREATE); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(l.catchUp)
}

// openFile opens a regular file, not a link to one, for its owner alone.
func openFile(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	return os.OpenFile(path, flag, 0o600)
}

// locked runs f while no other process may write.
func (l *Log) locked(f func() error) (err error) {
	if err := lock(l.lck); err != nil {
		return fmt.Errorf("locking: %w", err)
	}
	defer func() { err = errors.Join(err, unlock(l.lck)) }()
	return f()
}

// Append writes one record. It returns when the operating system has it, and
// what Soon was given before it.
func (l *Log) Append(r Record) error {
	r = r.scrubbed(&l.scrub)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.append(append(l.later, r))
}

// Soon is Append for a record that nothing has to wait for: it is written
// within a moment, with the next record, or by Close, whatever comes first. An
// error to write it is one of those; it is tried again.
func (l *Log) Soon(r Record) error {
	r = r.scrubbed(&l.scrub)
	r.Time = now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lck == nil || len(l.later) >= maxLater {
		return l.append(append(l.later, r))
	}
	l.later = append(l.later, r)
	if l.timer == nil {
		l.timer = time.AfterFunc(delay, l.flush)
	}
	return nil
}

func (l *Log) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = nil
	if len(l.later) > 0 && l.lck != nil {
		_ = l.append(l.later) // they stay, and whoever writes next is told
	}
}

// append writes records, all of them or none. mu is held.
func (l *Log) append(rs []Record) error {
	if l.lck == nil {
		return fmt.Errorf("appending to the audit log: %w", os.ErrClosed)
	}
	if err := l.locked(func() error { return l.write(rs) }); err != nil {
		return fmt.Errorf("appending to the audit log: %w", err)
	}
	l.later = l.later[:0]
	return nil
}

func now() time.Time { return time.Now().UTC().Round(time.Microsecond) }

func (l *Log) write(rs []Record) error {
	if err := l.catchUp(); err != nil {
		return err
	}
	if l.file == nil || l.last.size >= l.opt.MaxSize {
		if err := l.begin(); err != nil {
			return err
		}
	}
	next := l.last
	var lines []byte
	for _, r := range rs {
		r.Seq, r.Prev = next.seq+1, next.hash
		if r.Time.IsZero() {
			r.Time = now()
		}
		line, hash, err := l.encode(r)
		if err != nil {
			return err
		}
		lines = append(lines, line...)
		next.seq, next.hash = r.Seq, hash
	}
	if _, err := l.file.WriteAt(lines, l.last.size); err != nil {
		return err
	}
	next.size += int64(len(lines))
	if l.opt.Sync {
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	return l.setHead(next)
}

// begin starts the next file; the chain goes on in it.
func (l *Log) begin() error {
	next := l.last
	next.file, next.size = l.last.file+1, 0
	f, err := openFile(l.path(next.file), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, fs.ErrExist) { // by a process that died before it wrote
		f, err = openFile(l.path(next.file), os.O_RDWR)
	}
	if err != nil {
		return err
	}
	l.closeFile()
	l.file = f
	return l.setHead(next)
}

func (l *Log) path(n int) string { return filepath.Join(l.dir, fileName(n)) }

func fileName(n int) string { return fmt.Sprintf("audit-%06d.jsonl", n) }

func (l *Log) closeFile() {
	if l.file != nil {
		_ = l.file.Close() // nothing is buffered
		l.file = nil
	}
}

// Close closes the log. Records are safe without it, but for those of Soon.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	var err error
	if len(l.later) > 0 && l.lck != nil {
		err = l.append(l.later)
	}
	l.closeFile()
	for _, f := range [...]**os.File{&l.head, &l.lck} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
			*f = nil
		}
	}
	return err
}
