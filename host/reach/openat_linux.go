package reach

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// confined makes the kernel hold the path: it may not leave the folder and may
// hold no link at all, so what was resolved and allowed is what is opened.
const confined = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// openat opens a link-free path. It never blocks on a FIFO.
func (m *mount) openat(rel string, flag int, perm uint32) (int, error) {
	if m.kernel.Load() {
		return m.openRoot(rel, flag, perm)
	}
	how := unix.OpenHow{
		Flags:   uint64(flag | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY),
		Resolve: confined,
	}
	if flag&unix.O_CREAT != 0 {
		how.Mode = uint64(perm)
	}
	if flag&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY
	}
	for range 100 {
		fd, err := unix.Openat2(int(m.base.Fd()), rel, &how)
		switch err {
		case unix.EAGAIN, unix.EINTR: // a rename raced with the look-up
			continue
		case unix.ENOSYS, unix.EPERM:
			if _, err := unix.Openat2(int(m.base.Fd()), ".", &unix.OpenHow{Flags: unix.O_PATH, Resolve: confined}); err == unix.ENOSYS || err == unix.EPERM {
				m.kernel.Store(true)
				return m.openRoot(rel, flag, perm)
			}
		}
		if err == unix.EXDEV {
			return -1, errEscape
		}
		return fd, err
	}
	return -1, unix.EAGAIN
}

// openRoot is openat where the kernel, or a sandbox around us, has no openat2.
func (m *mount) openRoot(rel string, flag int, perm uint32) (int, error) {
	f, err := m.root.OpenFile(rel, flag&^(unix.O_PATH|unix.O_NOFOLLOW)|unix.O_NONBLOCK, fs.FileMode(perm))
	if err != nil {
		return -1, pathError("open", rel, err).(*fs.PathError).Err
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// plain reports whether rel exists and holds no link, in one system call.
func (m *mount) plain(rel string) bool {
	if m.kernel.Load() {
		return false
	}
	fd, err := m.openat(rel, unix.O_PATH, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

func (m *mount) open(rel string, flag int, perm fs.FileMode) (*os.File, identity, error) {
	fd, err := m.openat(rel, flag, uint32(perm))
	if err == unix.ENXIO || err == unix.ENODEV || err == unix.EOPNOTSUPP {
		return nil, identity{}, ErrNotRegular // a socket, or a FIFO without a reader
	} else if err != nil {
		return nil, identity{}, err
	}
	id, err := m.identify(fd)
	if err != nil {
		unix.Close(fd)
		return nil, identity{}, err
	}
	return os.NewFile(uintptr(fd), m.virtual(rel)), id, nil
}

func (m *mount) identify(fd int) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return identity{}, err
	}
	kind := st.Mode & unix.S_IFMT
	return identity{
		regular: kind == unix.S_IFREG, folder: kind == unix.S_IFDIR,
		dev: st.Dev, links: uint64(st.Nlink), size: st.Size, special: m.special(fd, st.Dev),
	}, nil
}

// kernelFS reports whether an open file lies on a file system that the kernel
// makes up. /dev itself is often a plain tmpfs: it is known by its device number.
func (m *mount) kernelFS(id identity) bool { return id.special }

// special asks the kernel once per device number.
func (m *mount) special(fd int, dev uint64) bool {
	if v, ok := m.devices.Load(dev); ok {
		return v.(bool)
	}
	var st unix.Statfs_t
	special := unix.Fstatfs(fd, &st) != nil || kernelMagic(uint32(st.Type)) || isDev(dev)
	m.devices.Store(dev, special)
	return special
}

func isDev(dev uint64) bool {
	var d, root unix.Stat_t
	return unix.Stat("/dev", &d) == nil && unix.Stat("/", &root) == nil && d.Dev != root.Dev && d.Dev == dev
}

func kernelMagic(t uint32) bool {
	switch t {
	case unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
		unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC, unix.SELINUX_MAGIC, unix.SMACK_MAGIC,
		unix.DEVPTS_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC,
		unix.BINFMTFS_MAGIC, unix.NSFS_MAGIC, 0x62656570 /* configfs */, 0x19800202 /* mqueue */, 0x65735543 /* fusectl */ :
		return true
	}
	return false
}

// entries lists an open folder, from its start.
func (m *mount) entries(f *os.File, _ string) ([]Entry, error) {
	fd := int(f.Fd())
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return nil, err
	}
	return readEntries(fd)
}

var listBuffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// readEntries reads names and kinds without a stat per name, unless the file
// system does not tell kinds.
func readEntries(fd int) ([]Entry, error) {
	buf := listBuffers.Get().(*[64 << 10]byte)
	defer listBuffers.Put(buf)
	var out []Entry
	for {
		n, err := unix.Getdents(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return out, err
		}
		for b := buf[:n]; len(b) > 0; {
			d := (*unix.Dirent)(unsafe.Pointer(&b[0]))
			name := b[unsafe.Offsetof(d.Name):d.Reclen]
			b = b[d.Reclen:]
			if i := strings.IndexByte(unsafe.String(&name[0], len(name)), 0); i >= 0 {
				name = name[:i]
			}
			if s := string(name); s != "." && s != ".." {
				out = append(out, Entry{s, entryType(fd, s, d.Type)})
			}
		}
	}
}

func entryType(fd int, name string, t uint8) fs.FileMode {
	switch t {
	case unix.DT_REG:
		return 0
	case unix.DT_DIR:
		return fs.ModeDir
	case unix.DT_LNK:
		return fs.ModeSymlink
	case unix.DT_FIFO:
		return fs.ModeNamedPipe
	case unix.DT_SOCK:
		return fs.ModeSocket
	case unix.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.DT_BLK:
		return fs.ModeDevice
	}
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return fs.ModeIrregular
	}
	return fileMode(st.Mode).Type()
}

func fileMode(m uint32) fs.FileMode {
	mode := fs.FileMode(m & 0o777)
	switch m & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	default:
		mode |= fs.ModeIrregular
	}
	if m&unix.S_ISUID != 0 {
		mode |= fs.ModeSetuid
	}
	if m&unix.S_ISGID != 0 {
		mode |= fs.ModeSetgid
	}
	if m&unix.S_ISVTX != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// folderHandle is an open folder of a walk: the kernel looks up one name in it,
// never a path, and a link is refused.
type folderHandle struct {
	m  *mount
	fd int
}

func (m *mount) openFolder(rel string) (folderHandle, identity, error) {
	fd, err := m.openat(rel, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return folderHandle{}, identity{}, err
	}
	id, err := m.identify(fd)
	if err != nil {
		unix.Close(fd)
		return folderHandle{}, identity{}, err
	}
	return folderHandle{m, fd}, id, nil
}

func (d folderHandle) close()                    { unix.Close(d.fd) }
func (d folderHandle) entries() ([]Entry, error) { return readEntries(d.fd) }

func (d folderHandle) openFile(name string) (int, identity, error) {
	for {
		fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return -1, identity{}, err
		}
		id, err := d.m.identify(fd)
		if err != nil {
			unix.Close(fd)
			return -1, identity{}, err
		}
		return fd, id, nil
	}
}

func (d folderHandle) open(name string) (*os.File, identity, error) {
	fd, id, err := d.openFile(name)
	if err != nil {
		return nil, id, err
	}
	return os.NewFile(uintptr(fd), name), id, nil
}

// read appends a file to buf, at most max bytes, without an *os.File.
func (d folderHandle) read(name string, buf []byte, max int64, admit func(identity) error) ([]byte, bool, error) {
	fd, id, err := d.openFile(name)
	if err != nil {
		return buf, false, err
	}
	defer unix.Close(fd)
	if err := admit(id); err != nil {
		return buf, false, err
	}
	if !id.regular {
		return buf, false, syscall.EISDIR
	}
	sum := int64(0)
	return fill(buf, max, id.size, func(p []byte) (int, error) {
		for {
			n, err := unix.Read(fd, p)
			if err == unix.EINTR {
				continue
			}
			if sum += int64(n); err == nil && n < len(p) && sum >= id.size {
				err = io.EOF // a regular file gives less only at its end
			}
			return n, err
		}
	})
}

func (d folderHandle) info(name string) (fs.FileInfo, error) {
	i := &statInfo{name: name}
	if err := unix.Fstatat(d.fd, name, &i.st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, err
	}
	return i, nil
}

// statInfo is a FileInfo from one fstatat; Sys is a *unix.Stat_t.
type statInfo struct {
	name string
	st   unix.Stat_t
}

func (i *statInfo) Name() string       { return path.Base(i.name) }
func (i *statInfo) Size() int64        { return i.st.Size }
func (i *statInfo) Mode() fs.FileMode  { return fileMode(i.st.Mode) }
func (i *statInfo) ModTime() time.Time { return time.Unix(i.st.Mtim.Unix()) }
func (i *statInfo) IsDir() bool        { return i.Mode().IsDir() }
func (i *statInfo) Sys() any           { return &i.st }
