package wasi

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"
)

// openFile is a file or a folder of the broker, or bytes that only look so.
type openFile interface {
	io.ReadWriteSeeker
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	ReadDir(n int) ([]fs.DirEntry, error)
}

// memFile is one of Config.Files: it can be read, and nothing else.
type memFile struct {
	*bytes.Reader
	name string
}

// given finds one of Config.Files.
func (s *System) given(name string) (*memFile, bool) {
	b, ok := s.cfg.Files[name]
	if !ok {
		return nil, false
	}
	return &memFile{bytes.NewReader(b), name}, true
}

func (f *memFile) refuse(op string) error {
	return fmt.Errorf("%s %q: %w", op, f.name, fs.ErrPermission)
}

func (f *memFile) Write([]byte) (int, error)          { return 0, f.refuse("write") }
func (f *memFile) WriteAt([]byte, int64) (int, error) { return 0, f.refuse("write") }
func (f *memFile) Truncate(int64) error               { return f.refuse("truncate") }
func (f *memFile) Sync() error                        { return nil }
func (f *memFile) Close() error                       { return nil }
func (f *memFile) Stat() (fs.FileInfo, error)         { return memInfo{f}, nil }
func (f *memFile) ReadDir(int) ([]fs.DirEntry, error) {
	return nil, fmt.Errorf("reading %q: it is no folder: %w", f.name, os.ErrInvalid)
}

type memInfo struct{ f *memFile }

func (i memInfo) Name() string     { return path.Base(i.f.name) }
func (i memInfo) Size() int64      { return i.f.Reader.Size() }
func (memInfo) Mode() fs.FileMode  { return 0o444 }
func (memInfo) ModTime() time.Time { return time.Time{} }
func (memInfo) IsDir() bool        { return false }
func (memInfo) Sys() any           { return nil }
