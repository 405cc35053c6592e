package reach

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// Editor is a client that holds files of its own, such as an editor with
// unsaved buffers. Paths are absolute host paths, also of files that the disk
// does not have: an empty text is then taken for none. errors.ErrUnsupported
// falls back to the disk. The rights were checked before either is called.
type Editor interface {
	ReadFile(ctx context.Context, path string) ([]byte, error)
	WriteFile(ctx context.Context, path string, data []byte) error
}

// WriteOptions say how WriteFile replaces a file.
type WriteOptions struct {
	Perm    fs.FileMode // of a new file; 0 is 0o644. An existing file keeps its mode and, where allowed, its owner
	Parents bool        // make missing folders
	New     bool        // an existing file is fs.ErrExist
	Sync    bool        // survive a power cut: fsync file and folder
	// Before is called with the file that is about to be replaced (nil: none; of
	// one that only the Editor holds, what Unsaved says),
	// after the new text is on disk and just before the rename. Its error stops
	// the write and leaves everything as it was.
	Before func(old fs.FileInfo) error
}

// WriteFile replaces a whole file, or leaves it as it was: a temporary file
// beside the target, then a rename. A link is followed inside its mount and its
// target is replaced, not the link. It needs fs.write. With an Editor the text
// goes there, all of it in memory.
func (t *Tree) WriteFile(ctx context.Context, r policy.Rights, name string, data io.Reader, o WriteOptions) (fs.FileInfo, error) {
	info, err := t.writeFile(ctx, r, name, data, o)
	if err != nil {
		return nil, pathError("write", name, err)
	}
	return info, nil
}

func (t *Tree) writeFile(ctx context.Context, r policy.Rights, name string, data io.Reader, o WriteOptions) (fs.FileInfo, error) {
	p, err := t.at(ctx, r, name, true, abi.FSWrite)
	if err != nil {
		return nil, err
	}
	if p.m == nil || p.rel == "." {
		return nil, syscall.EISDIR
	}
	dir := filepath.FromSlash(path.Dir(p.rel))
	if o.Parents {
		if err := p.m.root.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	if err := t.admitParent(r, p); err != nil {
		return nil, err
	}
	old, err := t.replaceable(r, p, o)
	if err != nil {
		return nil, err
	}
	if t.Editor != nil {
		if old == nil && o.Before != nil {
			o.Before = t.beforeUnsaved(ctx, r, name, o.Before)
		}
		info, err := t.toEditor(ctx, p, data, o, old)
		if !errors.Is(err, errors.ErrUnsupported) {
			return info, err
		}
	}
	return p.m.replace(ctx, p.rel, data, o, old)
}

// replaceable says what is there now (nil: nothing), or why it must stay.
func (t *Tree) replaceable(r policy.Rights, p place, o WriteOptions) (fs.FileInfo, error) {
	old, err := p.m.root.Lstat(filepath.FromSlash(p.rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case o.New:
		return nil, fs.ErrExist
	case old.IsDir():
		return nil, syscall.EISDIR
	case !old.Mode().IsRegular():
		return nil, ErrNotRegular
	case old.Mode().Perm()&0o222 == 0: // a rename would pass over what the mode says
		return nil, fmt.Errorf("the file's mode makes it read-only: %w", fs.ErrPermission)
	}
	f, id, err := p.m.open(p.rel, os.O_RDONLY, 0)
	if err != nil {
		return old, nil // writable but not readable: nothing more to learn
	}
	f.Close()
	return old, t.admit(r, p, id, policy.Use{Cap: abi.FSWrite, Target: p.real})
}

// beforeUnsaved tells before of a file that only the Editor holds.
func (t *Tree) beforeUnsaved(ctx context.Context, r policy.Rights, name string, before func(fs.FileInfo) error) func(fs.FileInfo) error {
	r.Decide = nil // it is no reason to ask a person
	return func(old fs.FileInfo) error {
		if old == nil {
			if _, info, err := t.Unsaved(ctx, r, name); err == nil {
				old = info
			}
		}
		return before(old)
	}
}

// toEditor hands the text over. errors.ErrUnsupported comes back before data
// was touched or with data rewound.
func (t *Tree) toEditor(ctx context.Context, p place, data io.Reader, o WriteOptions, old fs.FileInfo) (fs.FileInfo, error) {
	seeker, ok := data.(io.Seeker)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	text, more, err := fill(nil, maxEditorFile, 0, data.Read)
	if err == nil && !more {
		if o.Before != nil {
			if err := o.Before(old); err != nil {
				return nil, err
			}
		}
		err = t.Editor.WriteFile(ctx, filepath.Join(p.m.Dir, filepath.FromSlash(p.rel)), text)
	}
	if more || errors.Is(err, errors.ErrUnsupported) {
		if _, err := seeker.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		return nil, errors.ErrUnsupported
	}
	if err != nil {
		return nil, err
	}
	info, err := p.m.root.Lstat(filepath.FromSlash(p.rel))
	if errors.Is(err, fs.ErrNotExist) { // the editor has it, and has not saved it yet
		return unsaved{path.Base(p.rel), int64(len(text))}, nil
	}
	return info, err
}

// maxEditorFile is the most that is handed to an editor; larger goes to the disk.
const maxEditorFile = 64 << 20

// replace writes beside the target and renames. The temporary file is gone
// whatever happens.
func (m *mount) replace(ctx context.Context, rel string, data io.Reader, o WriteOptions, old fs.FileInfo) (info fs.FileInfo, err error) {
	target := filepath.FromSlash(rel)
	temp := filepath.Join(filepath.Dir(target), ".elf-"+rand.Text()[:12]+".tmp")
	f, err := m.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, firstMode(old, o.Perm))
	if err != nil {
		return nil, err
	}
	defer func() {
		f.Close()
		if err != nil {
			m.root.Remove(temp)
		}
	}()
	if err := copyAll(ctx, f, data); err != nil {
		return nil, err
	}
	if old != nil {
		keepOwner(f, old)
		if err := f.Chmod(old.Mode().Perm()); err != nil {
			return nil, err
		}
	}
	if o.Sync {
		if err := f.Sync(); err != nil {
			return nil, err
		}
	}
	// A full disk may tell of itself only here.
	if err := f.Close(); err != nil {
		return nil, err
	}
	if err := m.publish(temp, target, o); err != nil {
		return nil, err
	}
	if o.Sync {
		m.syncFolder(filepath.Dir(target))
	}
	return m.root.Lstat(target)
}

// publish gives the finished file its name.
func (m *mount) publish(temp, target string, o WriteOptions) error {
	m.swap.Lock()
	defer m.swap.Unlock()
	if o.Before != nil {
		old, err := m.root.Lstat(target)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err != nil {
			old = nil
		}
		if err := o.Before(old); err != nil {
			return err
		}
	}
	if o.New {
		// A link fails where the name is taken; a rename would replace it.
		err := m.root.Link(temp, target)
		if err == nil {
			return m.root.Remove(temp)
		}
		if errors.Is(err, fs.ErrExist) {
			return err
		}
		if _, err := m.root.Lstat(target); err == nil {
			return fs.ErrExist
		}
	}
	return m.root.Rename(temp, target)
}

// firstMode is the mode of the temporary file: that of a new file, less the
// umask, or nobody else's until it has the old one's.
func firstMode(old fs.FileInfo, perm fs.FileMode) fs.FileMode {
	switch {
	case old != nil:
		return 0o600
	case perm == 0:
		return 0o644
	}
	return perm.Perm()
}

func (m *mount) syncFolder(dir string) {
	// Not every platform or file system can: the file itself is safe by now.
	if d, err := m.root.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// copyAll copies until the context ends. What lies in memory already is written
// from there, in large pieces.
func copyAll(ctx context.Context, f *os.File, data io.Reader) error {
	switch held := data.(type) {
	case *bytes.Reader:
		_, err := held.WriteTo(contextWriter{ctx, f})
		return err
	case *pieces:
		return held.writeTo(ctx, f)
	}
	_, err := io.Copy(f, contextReader{ctx, data})
	return err
}

// contextWriter looks at its context before every piece.
type contextWriter struct {
	ctx context.Context
	w   io.Writer
}

const writtenAtOnce = 4 << 20

func (c contextWriter) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		if err = c.ctx.Err(); err == nil {
			var m int
			m, err = c.w.Write(b[n:min(n+writtenAtOnce, len(b))])
			n += m
		}
	}
	return n, err
}

// contextReader stops a copy when its context ends.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}
