package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elfhost/elfhost/host/sandbox/compile"
)

// codeDir is where the machine code lies.
func (l *Loader) codeDir() string { return filepath.Join(l.Dir, "code") }

// Prune removes from a Loader's Dir the machine code that was not used for
// maxAge, then the longest unused until at most maxBytes of it are left, and
// what belongs to code that is gone. A negative bound does not count. It may
// run beside calls: a plugin that misses something makes it again.
func Prune(dir string, maxAge time.Duration, maxBytes int64) (compile.Pruned, error) {
	code := filepath.Join(dir, "code")
	p, err := compile.Prune(code, maxAge, maxBytes)
	if err != nil {
		return p, err
	}
	list, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return p, fmt.Errorf("pruning the plugin cache: %w", err)
	}
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		name := filepath.Join(dir, d.Name())
		switch {
		case strings.HasSuffix(d.Name(), keptSuffix) && !hasCode(name, code):
		case strings.HasPrefix(d.Name(), tmpPrefix) && time.Since(info.ModTime()) > time.Hour:
		default:
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("pruning the plugin cache: %w", err)
		}
		p.RemovedBytes += info.Size()
	}
	return p, nil
}

// hasCode says whether the machine code that a kept file names is there.
func hasCode(name, code string) bool {
	f, err := os.Open(name)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	var key [keySize]byte
	if _, err := f.ReadAt(key[:], int64(keyOffset)); err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(code, filepath.Base(string(key[:]))))
	return err == nil
}
