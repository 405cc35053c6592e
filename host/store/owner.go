package store

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// owner is this Store's sign of life: a file that is locked as long as the
// process lives, whatever way it ends. A session names the owner of its
// writer, so that others can tell a writer at work from one that is dead.
type owner struct {
	dir string

	mu   sync.Mutex
	name string
	file *os.File
}

// sign returns the owner's name; its file is made at the first use.
func (o *owner) sign() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.name != "" {
		return o.name, nil
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(o.dir, fmt.Sprintf("%d-*", os.Getpid()))
	if err != nil {
		return "", err
	}
	if err := lock(f, true); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("locking %q: %w", f.Name(), err)
	}
	o.name, o.file = filepath.Base(f.Name()), f
	return o.name, nil
}

// alive reports whether the owner of that name still runs, and clears away
// what a dead one left. Askers share the lock, so that they do not take each
// other for the owner.
func (o *owner) alive(name string) bool {
	if name == "" || name != filepath.Base(name) {
		return false
	}
	path := filepath.Join(o.dir, name)
	f, err := os.Open(path)
	if err != nil {
		return !os.IsNotExist(err) // in doubt it lives
	}
	defer f.Close()
	if lock(f, false) != nil {
		return true
	}
	_ = os.Remove(path)
	return false
}

func (o *owner) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.file == nil {
		return nil
	}
	_ = o.file.Close() // before the removal, which Windows refuses for open files
	err := os.Remove(filepath.Join(o.dir, o.name))
	if os.IsNotExist(err) {
		err = nil
	}
	o.name, o.file = "", nil
	return err
}
