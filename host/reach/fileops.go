package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

// defaultReadLimit bounds ReadFile where its caller does not.
const defaultReadLimit = 10 << 20

// ReadFile reads a whole file, from the Editor where there is one, which may
// hold a file that the disk does not have (see Unsaved). A file of
// more than limit bytes is an error that matches abi.ErrTooLarge, told before
// it is read; limit 0 means 10 MiB.
func (t *Tree) ReadFile(ctx context.Context, r policy.Rights, name string, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = defaultReadLimit
	}
	if t.Editor != nil {
		data, err := t.fromEditor(ctx, r, name, limit)
		if !errors.Is(err, errors.ErrUnsupported) {
			return data, pathError("read", name, err)
		}
	}
	f, err := t.Open(ctx, r, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, pathError("read", name, syscall.EISDIR)
	}
	if info.Size() > limit {
		return nil, pathError("read", name, tooLarge(limit))
	}
	data, more, err := fill(nil, limit, info.Size(), f.Read)
	if more {
		err = tooLarge(limit)
	}
	if err != nil {
		return nil, pathError("read", name, err)
	}
	return data, nil
}

func tooLarge(limit int64) error {
	return fmt.Errorf("the file is over %d bytes: %w", limit, abi.ErrTooLarge)
}

// fromEditor answers errors.ErrUnsupported where the disk should be asked.
func (t *Tree) fromEditor(ctx context.Context, r policy.Rights, name string, limit int64) ([]byte, error) {
	p, err := t.at(ctx, r, name, true, abi.FSRead)
	if err != nil {
		return nil, err
	}
	if p.m == nil || p.m.Hidden {
		return nil, errors.ErrUnsupported
	}
	info, err := p.m.root.Lstat(filepath.FromSlash(p.rel))
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing && (err != nil || !info.Mode().IsRegular()) {
		return nil, errors.ErrUnsupported // nothing that an editor could hold newer text of
	}
	data, err := t.Editor.ReadFile(ctx, filepath.Join(p.m.Dir, filepath.FromSlash(p.rel)))
	switch {
	case err == nil && missing && len(data) == 0: // some editors say so of what they do not know
		return nil, errors.ErrUnsupported
	case err == nil && int64(len(data)) > limit:
		return nil, tooLarge(limit)
	}
	return data, err
}

// Unsaved gives a file that the Editor holds and the disk does not, or an error
// that matches fs.ErrNotExist. Nobody knows its time, which is zero. It needs
// fs.read. Stat and Open, which many use to look around, do not ask the Editor.
func (t *Tree) Unsaved(ctx context.Context, r policy.Rights, name string) ([]byte, fs.FileInfo, error) {
	var data []byte
	_, err := t.Stat(ctx, r, name)
	switch {
	case err == nil:
		err = fs.ErrNotExist
	case errors.Is(err, fs.ErrNotExist) && t.Editor != nil:
		if data, err = t.fromEditor(ctx, r, name, maxEditorFile); errors.Is(err, errors.ErrUnsupported) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		return nil, nil, pathError("read", name, err)
	}
	return data, unsaved{path.Base(name), int64(len(data))}, nil
}

// fill reads to the end or to limit bytes into buf[:0], growing it once for an
// honest size.
func fill(buf []byte, limit, size int64, read func([]byte) (int, error)) (data []byte, more bool, err error) {
	if limit <= 0 {
		limit = defaultReadLimit
	}
	buf = slices.Grow(buf[:0], int(min(size, limit))+1)
	for {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, max(len(buf), 512))
		}
		n, err := read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+max(n, 0)]
		if int64(len(buf)) > limit {
			return buf[:limit], true, nil
		}
		if err == io.EOF || err == nil && n == 0 {
			return buf, false, nil
		}
		if err != nil {
			return buf, false, err
		}
	}
}

// Stat follows links. It needs fs.read, or, on a folder, a grant for something
// below it.
func (t *Tree) Stat(ctx context.Context, r policy.Rights, name string) (fs.FileInfo, error) {
	return t.stat(ctx, r, "stat", name, true)
}

// Real is the virtual path that a name leads to once its links are followed,
// the same for all names of one file. It needs fs.read.
func (t *Tree) Real(ctx context.Context, r policy.Rights, name string) (string, error) {
	p, err := t.at(ctx, r, name, true, abi.FSRead)
	if err != nil {
		return "", pathError("stat", name, err)
	}
	if p.m == nil {
		return p.name, nil
	}
	return p.real, nil
}

// Lstat does not follow a link in the last component. It needs fs.read.
func (t *Tree) Lstat(ctx context.Context, r policy.Rights, name string) (fs.FileInfo, error) {
	return t.stat(ctx, r, "lstat", name, false)
}

func (t *Tree) stat(ctx context.Context, r policy.Rights, op, name string, follow bool) (fs.FileInfo, error) {
	if info, ok := t.onTheWay(r, name); ok {
		return info, nil
	}
	p, err := t.at(ctx, r, name, follow, abi.FSRead)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	if p.m == nil {
		return rootInfo{}, nil
	}
	info, err := p.m.root.Lstat(filepath.FromSlash(p.rel))
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return named{info, baseName(p.name)}, nil
}

// onTheWay describes a folder that is not granted but has to be passed to reach
// what is: libraries look at every parent before they make a folder.
func (t *Tree) onTheWay(r policy.Rights, name string) (fs.FileInfo, bool) {
	m, rel, clean, err := t.locate(name)
	if err != nil || m == nil || m.Hidden || r.Grants.Check(policy.Use{Cap: abi.FSRead, Target: clean}) == nil {
		return nil, false
	}
	if !r.Grants.Below(abi.FSRead, clean) && !r.Grants.Below(abi.FSWrite, clean) {
		return nil, false
	}
	info, err := m.root.Lstat(filepath.FromSlash(rel))
	if err != nil || !info.IsDir() || !m.noLinks(rel) {
		return nil, false
	}
	return named{info, baseName(clean)}, true
}

// noLinks reports whether no part of rel is a link.
func (m *mount) noLinks(rel string) bool {
	got, err := m.resolve(rel, true)
	return err == nil && got == rel
}

// ReadDir lists a folder, sorted by name. It needs fs.read on the folder;
// entries are names and kinds only and are not filtered further.
func (t *Tree) ReadDir(ctx context.Context, r policy.Rights, name string) ([]fs.DirEntry, error) {
	f, err := t.Open(ctx, r, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, err
}

// ReadLink returns a link's target when it is relative; an absolute target is
// a host path, so it is an error. It needs fs.read.
func (t *Tree) ReadLink(ctx context.Context, r policy.Rights, name string) (string, error) {
	p, err := t.at(ctx, r, name, false, abi.FSRead)
	if err == nil && p.m == nil {
		err = abi.ErrInvalid
	}
	var target string
	if err == nil {
		target, err = p.m.root.Readlink(filepath.FromSlash(p.rel))
	}
	if err == nil && (filepath.IsAbs(target) || strings.HasPrefix(target, "/")) {
		err = refuse(r, policy.Use{Cap: abi.FSRead, Target: p.real}, "the link names a path of the host")
	}
	if err != nil {
		return "", pathError("readlink", name, err)
	}
	return filepath.ToSlash(target), nil
}

// change runs one act that needs fs.write, on a name whose parents are resolved.
func (t *Tree) change(ctx context.Context, r policy.Rights, op, name string, follow bool, act func(p place) error) error {
	p, err := t.at(ctx, r, name, follow, abi.FSWrite)
	if err == nil && (p.m == nil || p.rel == ".") {
		err = fs.ErrPermission // the root and the mounts themselves stay
	}
	if err == nil {
		err = t.admitParent(r, p)
	}
	if err == nil {
		err = act(p)
	}
	return pathError(op, name, err)
}

// admitParent keeps changes out of the kernel's file systems.
func (t *Tree) admitParent(r policy.Rights, p place) error {
	dir, id, err := p.m.openFolder(path.Dir(p.rel))
	if err != nil {
		return nil // the act itself will say why
	}
	dir.close()
	if p.m.kernelFS(id) {
		return refuse(r, policy.Use{Cap: abi.FSWrite, Target: p.real}, "it belongs to the kernel (/proc, /sys, /dev)")
	}
	return nil
}

// Mkdir makes one folder; an existing one is fs.ErrExist.
func (t *Tree) Mkdir(ctx context.Context, r policy.Rights, name string, perm fs.FileMode) error {
	return t.change(ctx, r, "mkdir", name, false, func(p place) error {
		return p.m.root.Mkdir(filepath.FromSlash(p.rel), perm.Perm())
	})
}

// MkdirAll makes a folder and its missing parents.
func (t *Tree) MkdirAll(ctx context.Context, r policy.Rights, name string, perm fs.FileMode) error {
	if m, rel, clean, err := t.locate(name); err == nil && m != nil && rel == "." && !m.ReadOnly {
		return pathError("mkdir", name, r.Check(ctx, policy.Use{Cap: abi.FSWrite, Target: clean}))
	}
	return t.change(ctx, r, "mkdir", name, true, func(p place) error {
		return p.m.root.MkdirAll(filepath.FromSlash(p.rel), perm.Perm())
	})
}

// Remove removes a file, a link (never its target) or an empty folder.
func (t *Tree) Remove(ctx context.Context, r policy.Rights, name string) error {
	return t.change(ctx, r, "remove", strings.TrimRight(name, "/"), false, func(p place) error {
		return p.m.root.Remove(filepath.FromSlash(p.rel))
	})
}

// Chtimes sets the times of a file or folder; a zero time is left as it is. It
// needs fs.write.
func (t *Tree) Chtimes(ctx context.Context, r policy.Rights, name string, atime, mtime time.Time) error {
	return t.change(ctx, r, "chtimes", name, true, func(p place) error {
		return p.m.root.Chtimes(filepath.FromSlash(p.rel), atime, mtime)
	})
}

// maxMoved bounds the names looked at when a folder is renamed.
const maxMoved = 100_000

// Rename moves within one mount. It needs fs.write on both names, and, for a
// folder, on everything it holds, under the old name and the new: a rename must
// not make a protected name out of an ordinary one.
func (t *Tree) Rename(ctx context.Context, r policy.Rights, from, to string) error {
	err := t.change(ctx, r, "rename", from, false, func(src place) error {
		return t.change(ctx, r, "rename", to, false, func(dst place) error {
			if src.m != dst.m {
				return fmt.Errorf("the two names are in different folders of the host: %w", errors.ErrUnsupported)
			}
			if err := t.moves(ctx, r, src, dst); err != nil {
				return err
			}
			return src.m.root.Rename(filepath.FromSlash(src.rel), filepath.FromSlash(dst.rel))
		})
	})
	return pathError("rename", from, err)
}

// moves checks what a renamed folder takes along.
func (t *Tree) moves(ctx context.Context, r policy.Rights, src, dst place) error {
	info, err := src.m.root.Lstat(filepath.FromSlash(src.rel))
	if err != nil || !info.IsDir() {
		return err
	}
	seen, queue := 0, []string{""}
	for len(queue) > 0 {
		sub := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		dir, _, err := src.m.openFolder(path.Join(src.rel, sub))
		if err != nil {
			return err
		}
		list, err := dir.entries()
		dir.close()
		if err != nil {
			return err
		}
		if seen += len(list); seen > maxMoved {
			return fmt.Errorf("the folder holds over %d names: %w", maxMoved, abi.ErrTooLarge)
		}
		for _, e := range list {
			name := path.Join(sub, e.Name)
			for _, base := range []string{src.real, dst.real} {
				if u := (policy.Use{Cap: abi.FSWrite, Target: base + "/" + name}); r.Grants.Check(u) != nil {
					if err := r.Check(ctx, u); err != nil {
						return err
					}
				}
			}
			if e.Type.IsDir() {
				queue = append(queue, name)
			}
		}
	}
	return nil
}
