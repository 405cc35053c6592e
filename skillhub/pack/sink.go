package pack

import (
	"bytes"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Sink takes the files of a package. Names were checked: they stay inside of
// whatever folder they are put in.
type Sink interface {
	Create(name string) (io.WriteCloser, error)
}

// Dir is a sink that makes files in a folder, which should be new: it
// overwrites nothing.
type Dir struct{ Root *os.Root }

// Create makes a file and the folders above it.
func (d Dir) Create(name string) (io.WriteCloser, error) {
	if dir := path.Dir(name); dir != "." {
		if err := d.Root.MkdirAll(filepath.FromSlash(dir), 0o755); err != nil {
			return nil, err
		}
	}
	return d.Root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// Memory is a sink in memory: name → bytes.
type Memory map[string][]byte

// Create keeps the file when it is closed.
func (m Memory) Create(name string) (io.WriteCloser, error) {
	return &memoryFile{m: m, name: name}, nil
}

// Entries are the files, to pack them again.
func (m Memory) Entries() []Entry {
	var out []Entry
	for name, b := range m {
		out = append(out, Entry{Name: name, Size: int64(len(b)), Open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(b)), nil
		}})
	}
	return out
}

type memoryFile struct {
	bytes.Buffer
	m    Memory
	name string
}

func (f *memoryFile) Close() error {
	f.m[strings.Clone(f.name)] = f.Bytes()
	return nil
}
