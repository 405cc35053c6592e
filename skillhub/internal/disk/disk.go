// Package disk holds what the hub's rooms need of a file system beyond package
// os: files that appear whole, and locks that other processes honour.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Writer replaces files whole: whoever reads sees the old bytes or the new
// ones, also after the process was killed or the power was cut. The zero value
// waits for the disk at every file.
type Writer struct {
	// NoSync does not wait for the disk: a power cut may lose what was written.
	// For benchmarks and tests, which write many files.
	NoSync bool
}

// Write replaces a file, and makes its folder if need be.
func (w Writer) Write(name string, b []byte, perm fs.FileMode) error {
	return w.WriteFrom(name, perm, func(f io.Writer) error {
		_, err := f.Write(b)
		return err
	})
}

// WriteFrom replaces a file with what fill writes. Where fill fails, the file
// is as before.
func (w Writer) WriteFrom(name string, perm fs.FileMode, fill func(io.Writer) error) (err error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("writing %q: %w", name, err)
		}
	}()
	if err = f.Chmod(perm); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err = fill(f); err != nil {
		return err
	}
	if !w.NoSync {
		if err = f.Sync(); err != nil {
			return err
		}
	}
	if err = f.Close(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), name); err != nil {
		return err
	}
	return w.syncDir(dir)
}

// syncDir makes a rename durable. Not every system can: there the file itself
// is on the disk, under its old name or its new one.
func (w Writer) syncDir(dir string) error {
	if w.NoSync {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

const tempPrefix = ".new-"

// IsTemp reports whether a name is that of a file that was being written: one
// that lies about belongs to a process that was killed.
func IsTemp(name string) bool { return strings.HasPrefix(filepath.Base(name), tempPrefix) }

// ReadFile reads a file of at most limit bytes.
func ReadFile(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%q is larger than %d bytes", name, limit)
	}
	return b, err
}

// TryLock takes an exclusive lock on an open file, unless somebody else holds
// it. The lock ends when the file is closed, or with the process.
func TryLock(f *os.File) (held bool, err error) { return tryLock(f) }

// Lock waits for an exclusive lock on a file, which it makes if need be and
// which stays: removing it would let two holders lock different files of one
// name. The lock ends with unlock, which may be called again, or with the
// process.
func Lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		held, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %q: %w", name, err)
		}
		if held {
			return func() { f.Close() }, nil
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
