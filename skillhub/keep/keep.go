// Package keep holds the packages of this machine: their bytes by digest, and
// elfhost.lock, which says which of them are installed and what was granted to
// each.
//
// An install is one step: before it the old state holds, after it the new one,
// wherever a kill or a full disk comes between. Everything is made beside its
// place first; the renaming of the lock file is the step. Whoever changes
// something waits for whoever else does; reading never waits.
//
// Below the store's folder:
//
//	blobs/HEX.elfpkg   the archives
//	files/HEX/         the same, unpacked
//	pins/HEX.json      manifest and tool definitions, as they were accepted
//	index.json         all pins of the lock file, for a fast start; made anew at need
//	tmp/               installs on their way
package keep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/skillhub"
	"github.com/elfhost/elfhost/skillhub/internal/disk"
)

// Store is a folder of packages with its lock file. It is safe for concurrent
// use, also by several processes.
type Store struct {
	Dir  string // the packages
	Lock string // the path of elfhost.lock
	// Waiting is told, once, when a change waits for another process. Nil: nobody.
	Waiting func()

	at func(step string) error // tests: told before each step; an error stops there
}

func (s *Store) step(name string) error {
	if s.at == nil {
		return nil
	}
	return s.at(name)
}

// Blob is where the archive of a digest lies.
func (s *Store) Blob(d skillhub.Digest) string {
	return filepath.Join(s.Dir, "blobs", d.Hex()+skillhub.Ext)
}

// FilesDir is the folder below which the files of all packages lie.
func (s *Store) FilesDir() string { return filepath.Join(s.Dir, "files") }

// Files is where the files of a digest lie.
func (s *Store) Files(d skillhub.Digest) string { return filepath.Join(s.Dir, "files", d.Hex()) }

// FS are the files of a digest.
func (s *Store) FS(d skillhub.Digest) fs.FS { return os.DirFS(s.Files(d)) }

func (s *Store) pinFile(d skillhub.Digest) string {
	return filepath.Join(s.Dir, "pins", d.Hex()+".json")
}

// Has reports whether a package's bytes are here, unpacked.
func (s *Store) Has(d skillhub.Digest) bool {
	st, err := os.Stat(s.Files(d))
	return err == nil && st.IsDir()
}

// exclusive waits for the right to change the store. ctx ends the waiting.
func (s *Store) exclusive(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of packages: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the packages: %w", err)
	}
	told := false
	for {
		ok, err := disk.TryLock(f)
		if ok {
			return func() { f.Close() }, nil // the lock ends with the file
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking the packages: %w", err)
		}
		if !told && s.Waiting != nil {
			s.Waiting()
		}
		told = true
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ErrStale is the error of a change that was decided on an older state.
var ErrStale = errors.New("the installed packages changed meanwhile")

// Change edits the lock file. Where edit, or anything else, fails, everything
// is as before. Bytes that no version needs any more are taken away.
func (s *Store) Change(ctx context.Context, edit func(*Lock) error) error {
	unlock, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	l, _, err := readLock(s.Lock)
	if err != nil {
		return err
	}
	if err := edit(l); err != nil {
		return err
	}
	return s.write(l)
}

// write replaces the lock file; the exclusive lock is held.
func (s *Store) write(l *Lock) error {
	b, err := l.Encode()
	if err != nil {
		return err
	}
	if _, err := ParseLock(b); err != nil { // whoever edits may be wrong
		return fmt.Errorf("writing %s: %w", LockName, err)
	}
	if old, err := readFile(s.Lock, maxLock); err == nil && bytes.Equal(old, b) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.Lock), 0o700); err != nil {
		return fmt.Errorf("writing %s: %w", LockName, err)
	}
	if err := s.replace(s.Lock, b, "lock"); err != nil {
		return fmt.Errorf("writing %s: %w", LockName, err)
	}
	s.index(l, skillhub.DigestOf(b)) // without it the next start makes it
	s.prune(l)
	return nil
}

// replace writes a file whole: beside its place, on the disk, then renamed.
func (s *Store) replace(file string, b []byte, what string) (err error) {
	if err := s.step(what + ": make"); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	half := len(b) / 2
	if _, err := f.Write(b[:half]); err != nil {
		return err
	}
	if err := s.step(what + ": half written"); err != nil {
		return err
	}
	if _, err := f.Write(b[half:]); err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.step(what + ": rename"); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), file); err != nil {
		return err
	}
	if err := s.step(what + ": renamed"); err != nil { // too late to stop
		return nil
	}
	syncDir(filepath.Dir(file))
	return nil
}

// prune removes what no version needs, what a killed install left, and old
// temporary files. It is tidying: what it cannot do, the next one does.
func (s *Store) prune(l *Lock) {
	need := map[string]bool{}
	l.pins(func(p Pin) { need[p.Digest.Hex()] = true })
	for _, dir := range []string{"blobs", "files", "pins"} {
		entries, _ := os.ReadDir(filepath.Join(s.Dir, dir))
		for _, e := range entries {
			hex, _, _ := strings.Cut(e.Name(), ".")
			if !need[hex] {
				os.RemoveAll(filepath.Join(s.Dir, dir, e.Name()))
			}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(s.Dir, "tmp"))
	for _, e := range entries {
		dead(filepath.Join(s.Dir, "tmp", e.Name()))
	}
}

// dead removes the stage of a process that is no more: nobody holds its lock.
func dead(dir string) {
	f, err := os.OpenFile(filepath.Join(dir, stageLock), os.O_RDWR, 0)
	if err != nil {
		// A stage without its lock is being made, or being removed.
		if st, err := os.Stat(dir); err == nil && time.Since(st.ModTime()) > time.Hour {
			os.RemoveAll(dir)
		}
		return
	}
	ok, err := disk.TryLock(f)
	f.Close()
	if ok && err == nil {
		os.RemoveAll(dir)
	}
}

// syncDir makes names durable, where the system can.
func syncDir(dir string) {
	d, err := os.Open(dir)
	if err != nil {
		return
	}
	defer d.Close()
	_ = d.Sync()
}
