package reach

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Open opens a regular file or folder. flag is that of os.OpenFile; what it
// asks decides between fs.read and fs.write: any of O_WRONLY, O_RDWR,
// O_APPEND, O_CREATE, O_TRUNC asks for fs.write (O_RDWR for both). A FIFO, device
// or socket is an error at once. The virtual root always opens.
func (t *Tree) Open(ctx context.Context, r policy.Rights, name string, flag int, perm fs.FileMode) (*File, error) {
	f, err := t.open(ctx, r, name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return f, nil
}

const changes = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREATE | os.O_TRUNC

// access says which capabilities a flag needs.
func access(flag int) []abi.Capability {
	switch {
	case flag&os.O_RDWR != 0:
		return []abi.Capability{abi.FSRead, abi.FSWrite}
	case flag&os.O_WRONLY != 0:
		return []abi.Capability{abi.FSWrite}
	case flag&changes != 0: // creates, then reads
		return []abi.Capability{abi.FSRead, abi.FSWrite}
	}
	return []abi.Capability{abi.FSRead}
}

func (t *Tree) open(ctx context.Context, r policy.Rights, name string, flag int, perm fs.FileMode) (*File, error) {
	caps := access(flag)
	p, err := t.at(ctx, r, name, flag&os.O_EXCL == 0, caps...)
	if err != nil {
		return nil, err
	}
	if p.m == nil {
		if flag&changes != 0 {
			return nil, fs.ErrPermission
		}
		return &File{t: t, name: "/", entries: t.top(r)}, nil
	}
	truncate := flag&os.O_TRUNC != 0
	if truncate && flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return nil, abi.ErrInvalid
	}
	// Truncating waits until it is known what was opened.
	f, id, err := p.m.open(p.rel, flag&^os.O_TRUNC, perm&fs.ModePerm)
	if err != nil {
		return nil, err
	}
	use := policy.Use{Cap: caps[len(caps)-1], Target: p.real}
	err = t.admit(r, p, id, use)
	if err == nil && truncate && id.regular && id.size > 0 {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{t: t, m: p.m, f: f, name: p.name, rel: p.rel, Links: id.links}, nil
}

// top lists the mounts in which something may be reached.
func (t *Tree) top(r policy.Rights) []Entry {
	var out []Entry
	for _, m := range t.mounts.all() {
		if !m.Hidden && (r.Grants.Below(abi.FSRead, m.Name) || r.Grants.Below(abi.FSWrite, m.Name)) {
			out = append(out, Entry{m.Name[1:], fs.ModeDir})
		}
	}
	slices.SortFunc(out, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// File is an open file or folder of a Tree. Like *os.File it is safe for
// concurrent use, ReadDir aside. What may be done with it was decided when it
// was opened.
type File struct {
	// Links is the number of hard links when it was opened.
	Links uint64

	t       *Tree
	m       *mount
	f       *os.File // nil for the virtual root
	name    string
	rel     string
	entries []Entry // of a folder, once listed
	listed  bool
	next    int
}

// Name is the virtual path under which it was opened.
func (f *File) Name() string { return f.name }

// Close closes it.
func (f *File) Close() error {
	if f.f == nil {
		return nil
	}
	return pathError("close", f.name, f.f.Close())
}

func (f *File) Read(b []byte) (int, error) {
	if f.f == nil {
		return 0, pathError("read", f.name, syscall.EISDIR)
	}
	n, err := f.f.Read(b)
	return n, f.err("read", err)
}

func (f *File) ReadAt(b []byte, off int64) (int, error) {
	if f.f == nil {
		return 0, pathError("read", f.name, syscall.EISDIR)
	}
	n, err := f.f.ReadAt(b, off)
	return n, f.err("read", err)
}

func (f *File) Write(b []byte) (int, error) {
	if f.f == nil {
		return 0, pathError("write", f.name, syscall.EISDIR)
	}
	n, err := f.f.Write(b)
	return n, f.err("write", err)
}

func (f *File) WriteAt(b []byte, off int64) (int, error) {
	if f.f == nil {
		return 0, pathError("write", f.name, syscall.EISDIR)
	}
	n, err := f.f.WriteAt(b, off)
	return n, f.err("write", err)
}

// Seek moves the offset; on a folder offset 0 from the start lists anew.
func (f *File) Seek(off int64, whence int) (int64, error) {
	f.next, f.listed = 0, false
	if f.f == nil {
		return 0, nil
	}
	n, err := f.f.Seek(off, whence)
	return n, f.err("seek", err)
}

// Truncate needs a file opened for writing.
func (f *File) Truncate(size int64) error {
	if f.f == nil {
		return pathError("truncate", f.name, syscall.EISDIR)
	}
	return f.err("truncate", f.f.Truncate(size))
}

// Sync flushes it to the disk.
func (f *File) Sync() error {
	if f.f == nil {
		return nil
	}
	return f.err("sync", f.f.Sync())
}

// Stat describes it.
func (f *File) Stat() (fs.FileInfo, error) {
	if f.f == nil {
		return rootInfo{}, nil
	}
	info, err := f.f.Stat()
	if err != nil {
		return nil, f.err("stat", err)
	}
	return named{info, baseName(f.name)}, nil
}

// ReadDir is that of *os.File; the order is the file system's.
func (f *File) ReadDir(n int) ([]fs.DirEntry, error) {
	if f.f != nil && !f.listed {
		var err error
		if f.entries, err = f.m.entries(f.f, f.rel); err != nil {
			return nil, f.err("readdir", err)
		}
	}
	f.listed = true
	rest := f.entries[f.next:]
	if n > 0 {
		if len(rest) == 0 {
			return nil, io.EOF
		}
		rest = rest[:min(n, len(rest))]
	}
	f.next += len(rest)
	out := make([]fs.DirEntry, len(rest))
	for i, e := range rest {
		out[i] = dirEntry{e, f}
	}
	return out, nil
}

// err hides the host's path. io.EOF stays itself.
func (f *File) err(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	if errors.Is(err, fs.ErrClosed) {
		err = fs.ErrClosed
	}
	return pathError(op, f.name, err)
}
