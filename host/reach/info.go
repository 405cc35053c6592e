package reach

import (
	"io/fs"
	"path"
	"time"
)

func baseName(name string) string { return path.Base(name) }

// named gives a FileInfo the name of the virtual path.
type named struct {
	fs.FileInfo
	name string
}

func (n named) Name() string { return n.name }

// rootInfo describes the virtual root.
type rootInfo struct{}

func (rootInfo) Name() string       { return "/" }
func (rootInfo) Size() int64        { return 0 }
func (rootInfo) Mode() fs.FileMode  { return fs.ModeDir | 0o555 }
func (rootInfo) ModTime() time.Time { return time.Time{} }
func (rootInfo) IsDir() bool        { return true }
func (rootInfo) Sys() any           { return nil }

// unsaved describes a file that an Editor holds and the disk does not.
type unsaved struct {
	name string
	size int64
}

func (u unsaved) Name() string       { return u.name }
func (u unsaved) Size() int64        { return u.size }
func (u unsaved) Mode() fs.FileMode  { return 0o644 }
func (u unsaved) ModTime() time.Time { return time.Time{} }
func (u unsaved) IsDir() bool        { return false }
func (u unsaved) Sys() any           { return nil }

// dirEntry is an Entry of a listed folder. Its Info outlives the open folder.
type dirEntry struct {
	e Entry
	f *File
}

func (d dirEntry) Name() string      { return d.e.Name }
func (d dirEntry) Type() fs.FileMode { return d.e.Type }
func (d dirEntry) IsDir() bool       { return d.e.Type.IsDir() }
func (d dirEntry) String() string    { return fs.FormatDirEntry(d) }

func (d dirEntry) Info() (fs.FileInfo, error) {
	m, rel := d.f.m, path.Join(d.f.rel, d.e.Name)
	if m == nil {
		if m, rel = d.f.t.find("/"+d.e.Name), "."; m == nil {
			return nil, pathError("lstat", "/"+d.e.Name, fs.ErrNotExist)
		}
	}
	info, err := m.root.Lstat(rel)
	if err != nil {
		return nil, pathError("lstat", m.virtual(rel), err)
	}
	return named{info, d.e.Name}, nil
}
