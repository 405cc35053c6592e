package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// writeOutput writes the file that a person named: whole or not at all. A link
// is followed, and what is no regular file (a device, a pipe) is written to
// rather than replaced.
func writeOutput(path string, mode os.FileMode, write func(io.Writer) error) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".elfhost-*")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
