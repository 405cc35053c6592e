package app

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/elfhost/elfhost/host/audit"
	"github.com/elfhost/elfhost/host/mcp"
)

// Seal is the secret with which servers of this state folder seal what clients
// keep for them. token is what those clients bring: who knows it alone can make
// nothing up, and what one token's clients keep counts for no other's.
func (a *App) Seal(token string) (string, error) {
	key, err := audit.Key(filepath.Join(a.Paths.State, "mcp.key"))
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("clients of mcp serve\x00" + token))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// Shared is what the servers that share this state folder know of each other:
// files that are kept at least as long as they are wanted.
func (a *App) Shared() mcp.Shared {
	return &shared{dir: filepath.Join(a.Paths.State, "mcp", "answers")}
}

// maxShared bounds the files that one server makes in sweepEvery.
const (
	maxShared  = 10_000
	sweepEvery = time.Minute
)

// shared is a folder of values, by key.
type shared struct {
	dir string

	mu    sync.Mutex
	swept time.Time
	made  int // files, with those that were there when it was swept
}

// Put implements mcp.Shared. A value is whole when a newline ends its file.
func (s *shared) Put(key string, value []byte, until time.Time) (bool, error) {
	if err := s.room(); err != nil {
		return false, fmt.Errorf("remembering an answer: %w", err)
	}
	name := filepath.Join(s.dir, safeName(key))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err == nil {
		_, err = f.Write(append(slices.Clone(value), '\n'))
		err = errors.Join(err, f.Close(), os.Chtimes(name, time.Time{}, until))
	}
	if err != nil {
		return false, fmt.Errorf("remembering an answer: %w", err)
	}
	return true, nil
}

// Value implements mcp.Shared.
func (s *shared) Value(key string) ([]byte, bool, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, safeName(key)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("looking for an answer: %w", err)
	}
	b, whole := bytes.CutSuffix(b, []byte("\n"))
	return b, whole, nil
}

// room makes the folder, and takes what has expired out of it now and then.
func (s *shared) room() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.swept) > sweepEvery {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		s.swept, s.made = now, sweep(s.dir, now)
	}
	if s.made >= maxShared { // better to ask anew than to take an answer twice
		return errors.New("too many answers and sessions are remembered")
	}
	s.made++
	return nil
}

// sweep removes the files whose time, which they have as that of their last
// change, has passed, and counts those that stay.
func sweep(dir string, now time.Time) (left int) {
	list, _ := os.ReadDir(dir) // what cannot be read stays
	for _, e := range list {
		// A minute, for a clock that is not this one's.
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > time.Minute && os.Remove(filepath.Join(dir, e.Name())) == nil {
			continue
		}
		left++
	}
	return left
}
