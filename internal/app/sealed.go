package app

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/elfhost/elfhost/host/audit"
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

// TakeAnswer reports whether an answer, which has an id, comes for the first
// time to any of the servers that share this state folder. It is remembered at
// least until until.
func (a *App) TakeAnswer(id string, until time.Time) (bool, error) {
	dir := filepath.Join(a.Paths.State, "mcp", "answers")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, fmt.Errorf("remembering an answer: %w", err)
	}
	forgetAnswers(dir, time.Now())
	name := filepath.Join(dir, safeName(id))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err == nil {
		err = errors.Join(f.Close(), os.Chtimes(name, time.Time{}, until))
	}
	if err != nil {
		return false, fmt.Errorf("remembering an answer: %w", err)
	}
	return true, nil
}

// forgetAnswers removes those whose time, which their files have as that of
// their last change, has passed.
func forgetAnswers(dir string, now time.Time) {
	list, _ := os.ReadDir(dir) // what cannot be read stays
	for _, e := range list {
		// A minute, for a clock that is not this one's.
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > time.Minute {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
