//go:build !linux

package reach

import (
	"io/fs"
	"os"
	"path"
)

// Without openat2 the path is resolved first (resolve) and then opened through
// os.Root, which holds it inside the mount whatever happens in between.

func (m *mount) plain(string) bool { return false }

func (m *mount) open(rel string, flag int, perm fs.FileMode) (*os.File, identity, error) {
	f, err := m.root.OpenFile(filepathLocal(rel), flag|openNonblock, perm)
	if err != nil {
		return nil, identity{}, err
	}
	id, err := identify(f)
	if err != nil {
		f.Close()
		return nil, identity{}, err
	}
	return f, id, nil
}

func identify(f *os.File) (identity, error) {
	info, err := f.Stat()
	if err != nil {
		return identity{}, err
	}
	id := identity{regular: info.Mode().IsRegular(), folder: info.IsDir(), links: 1, size: info.Size()}
	statIdentity(info, &id)
	return id, nil
}

// kernelFS: a file outside Linux is the kernel's when it lies on /dev.
func (m *mount) kernelFS(id identity) bool { return id.dev != 0 && id.dev == devNumber() }

func (m *mount) entries(f *os.File, rel string) ([]Entry, error) {
	if _, err := f.Seek(0, 0); err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(names))
	for _, n := range names {
		if info, err := m.root.Lstat(filepathLocal(path.Join(rel, n))); err == nil {
			out = append(out, Entry{n, info.Mode().Type()})
		}
	}
	return out, nil
}

// folderHandle is an open folder of a walk.
type folderHandle struct{ root *os.Root }

func (m *mount) openFolder(rel string) (folderHandle, identity, error) {
	root, err := m.root.OpenRoot(filepathLocal(rel))
	if err != nil {
		return folderHandle{}, identity{}, err
	}
	info, err := root.Stat(".")
	if err != nil {
		root.Close()
		return folderHandle{}, identity{}, err
	}
	id := identity{folder: true, links: 1}
	statIdentity(info, &id)
	return folderHandle{root}, id, nil
}

func (d folderHandle) close() { d.root.Close() }

func (d folderHandle) entries() ([]Entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, 0, len(names))
	for _, n := range names {
		if info, err := d.root.Lstat(n); err == nil {
			out = append(out, Entry{n, info.Mode().Type()})
		}
	}
	return out, nil
}

func (d folderHandle) open(name string) (*os.File, identity, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, identity{}, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, identity{}, errLink
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, identity{}, err
	}
	id, err := identify(f)
	if err != nil {
		f.Close()
		return nil, identity{}, err
	}
	return f, id, nil
}

func (d folderHandle) read(name string, buf []byte, max int64, admit func(identity) error) ([]byte, bool, error) {
	f, id, err := d.open(name)
	if err != nil {
		return buf, false, err
	}
	defer f.Close()
	if err := admit(id); err != nil {
		return buf, false, err
	}
	if !id.regular {
		return buf, false, ErrNotRegular
	}
	return fill(buf, max, id.size, f.Read)
}

func (d folderHandle) info(name string) (fs.FileInfo, error) { return d.root.Lstat(name) }
