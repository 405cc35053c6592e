package wasi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// maxPath is PATH_MAX of Linux. Longer paths are refused before they are copied.
const maxPath = 4096

// place is a path that a guest named, made absolute in the virtual root.
type place struct {
	name  string
	slash bool // written with a slash at the end: it must be a folder
}

// place reads a path relative to a folder. A path that climbs out of that
// folder is refused here, as preview 1 demands, and noted as a denial; the
// broker is the one that holds whatever the rules of paths are.
func (s *System) place(m Memory, fd uint64, off, n uint64) (place, Errno) {
	d := s.at(fd)
	switch {
	case d == nil:
		return place{}, eBADF
	case !d.dir:
		return place{}, eNOTDIR
	case uint32(n) > maxPath:
		return place{}, eNAMETOOLNG
	}
	b, ok := m.View(uint32(off), uint32(n))
	switch {
	case !ok:
		return place{}, eFAULT
	case len(b) == 0 || bytes.IndexByte(b, 0) >= 0:
		return place{}, eINVAL
	case !utf8.Valid(b):
		return place{}, eILSEQ
	}
	rel := string(b)
	clean := path.Clean(rel)
	if rel[0] == '/' || clean == ".." || strings.HasPrefix(clean, "../") {
		s.note(d.name, clean)
		return place{}, ePERM
	}
	name := path.Join(d.name, clean)
	if d.pre && len(s.cfg.Paths) > 0 {
		if _, ok := s.cfg.Files[name]; !ok {
			name = s.alias(name)
		}
	}
	return place{name, strings.HasSuffix(rel, "/")}, success
}

// alias follows the longest of the further names that name begins with.
func (s *System) alias(name string) string {
	best, to := "", name
	for guest, virtual := range s.cfg.Paths {
		rest, ok := strings.CutPrefix(name, strings.TrimSuffix(guest, "/"))
		if ok && (rest == "" || rest[0] == '/') && len(guest) > len(best) {
			best, to = guest, path.Join(virtual, rest)
		}
	}
	return to
}

func (s *System) note(dir, rel string) {
	if s.cfg.Rights.Note == nil {
		return
	}
	u := policy.Use{Cap: abi.FSRead, Target: strings.TrimSuffix(dir, "/") + "/" + rel}
	s.cfg.Rights.Note(u, &policy.Denial{Use: u, Layer: "sandbox", Final: true, Why: "it climbs out of the folder it starts from"})
}

// tree runs f for a place below the root; the root itself is nobody's to change.
func (s *System) tree(p place, f func(name string) error) Errno {
	switch {
	case p.name == "/":
		return ePERM
	case s.cfg.Tree == nil:
		return eNOENT
	}
	return errnoOf(f(p.name))
}

func pathCreateDirectory(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	at, no := s.place(m, p[0], p[1], p[2])
	switch {
	case no != success:
		return no
	case at.name == "/":
		return eEXIST
	}
	return s.tree(at, func(name string) error { return s.cfg.Tree.Mkdir(ctx, s.cfg.Rights, name, 0o755) })
}

func pathFilestatGet(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	at, no := s.place(m, p[0], p[2], p[3])
	if no != success {
		return no
	}
	if at.name == "/" {
		return wrote(m.Write(uint32(p[4]), filestat(typeDirectory, "/", 0, [3]time.Time{})))
	}
	fi, no := s.stat(ctx, at, p[1]&lookupFollow != 0)
	if no != success {
		return no
	}
	return wrote(m.Write(uint32(p[4]), fileInfo(at.name, fi)))
}

const lookupFollow = 1

func (s *System) stat(ctx context.Context, at place, follow bool) (fi fs.FileInfo, no Errno) {
	if f, ok := s.given(at.name); ok {
		return memInfo{f}, success
	}
	no = s.tree(at, func(name string) (err error) {
		if follow || at.slash {
			fi, err = s.cfg.Tree.Stat(ctx, s.cfg.Rights, name)
		} else {
			fi, err = s.cfg.Tree.Lstat(ctx, s.cfg.Rights, name)
		}
		return err
	})
	if no == success && at.slash && !fi.IsDir() {
		return nil, eNOTDIR
	}
	return fi, no
}

func pathFilestatSetTimes(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	at, no := s.place(m, p[0], p[2], p[3])
	switch {
	case no != success:
		return no
	case at.name == "/":
		return ePERM
	case s.cfg.Tree == nil:
		return eNOENT
	}
	return s.setTimes(ctx, at.name, p[4:7])
}

// pathLink and pathSymlink: a guest makes no links. What it links to today
// may be something else tomorrow, and other programs would follow it out.
func pathLink(_ context.Context, s *System, m Memory, p []uint64) Errno {
	if _, no := s.place(m, p[0], p[2], p[3]); no != success {
		return no
	}
	if _, no := s.place(m, p[4], p[5], p[6]); no != success {
		return no
	}
	return ePERM
}

func pathSymlink(_ context.Context, s *System, m Memory, p []uint64) Errno {
	if _, no := s.place(m, p[2], p[3], p[4]); no != success {
		return no
	}
	if !m.has(uint32(p[0]), uint64(uint32(p[1]))) {
		return eFAULT
	}
	return ePERM
}

func pathReadlink(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	at, no := s.place(m, p[0], p[1], p[2])
	switch {
	case no != success:
		return no
	case at.name == "/":
		return eINVAL
	case !m.has(uint32(p[3]), uint64(uint32(p[4]))) || !m.has(uint32(p[5]), 4):
		return eFAULT
	}
	var target string
	no = s.tree(at, func(name string) (err error) {
		target, err = s.cfg.Tree.ReadLink(ctx, s.cfg.Rights, name)
		return err
	})
	if no != success {
		return no
	}
	target = target[:min(uint32(len(target)), uint32(p[4]))] // cut without a word, like readlink(2)
	return wrote(m.Write(uint32(p[3]), []byte(target)) && m.putU32(uint32(p[5]), uint32(len(target))))
}

func pathRemoveDirectory(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	return s.remove(ctx, m, p, true)
}

func pathUnlinkFile(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	return s.remove(ctx, m, p, false)
}

// remove asks what is there first: the broker removes either kind, and preview
// 1 has a function for each. Nothing but the errno hangs on that look.
func (s *System) remove(ctx context.Context, m Memory, p []uint64, dir bool) Errno {
	at, no := s.place(m, p[0], p[1], p[2])
	if no != success {
		return no
	}
	return s.tree(at, func(name string) error {
		quiet := policy.Rights{Grants: s.cfg.Rights.Grants}
		fi, err := s.cfg.Tree.Lstat(ctx, quiet, name)
		switch {
		case err == nil && dir && !fi.IsDir():
			return eNOTDIR
		case err == nil && !dir && fi.IsDir():
			return eISDIR
		case err == nil && !dir && at.slash:
			return eNOTDIR
		case errors.Is(err, fs.ErrNotExist):
			return err
		}
		return s.cfg.Tree.Remove(ctx, s.cfg.Rights, name)
	})
}

func pathRename(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	from, no := s.place(m, p[0], p[1], p[2])
	if no != success {
		return no
	}
	to, no := s.place(m, p[3], p[4], p[5])
	switch {
	case no != success:
		return no
	case to.name == "/":
		return ePERM
	}
	return s.tree(from, func(name string) error {
		err := s.cfg.Tree.Rename(ctx, s.cfg.Rights, name, to.name)
		switch {
		case !errors.Is(err, fs.ErrExist) || !s.folders(ctx, to.name):
		case !s.folders(ctx, name):
			return eISDIR
		default: // preview 1 replaces an empty folder by a folder; a full one stays
			if err = s.cfg.Tree.Remove(ctx, s.cfg.Rights, to.name); err == nil {
				err = s.cfg.Tree.Rename(ctx, s.cfg.Rights, name, to.name)
			}
		}
		return err
	})
}

// folders reports whether all names are those of folders. Only the errno
// hangs on it.
func (s *System) folders(ctx context.Context, names ...string) bool {
	for _, name := range names {
		fi, err := s.cfg.Tree.Lstat(ctx, policy.Rights{Grants: s.cfg.Rights.Grants}, name)
		if err != nil || !fi.IsDir() {
			return false
		}
	}
	return true
}

// Flags of path_open.
const (
	openCreate    = 1
	openDirectory = 2
	openExclusive = 4
	openTruncate  = 8
)

func pathOpen(ctx context.Context, s *System, m Memory, p []uint64) Errno {
	at, no := s.place(m, p[0], p[2], p[3])
	if no != success {
		return no
	}
	oflags, fdflags, res := uint16(p[4]), uint16(p[7]), uint32(p[8])
	switch {
	case oflags&openDirectory != 0 && oflags&openCreate != 0:
		return eINVAL
	case oflags&openDirectory != 0 && p[5]&rightWrite != 0:
		return eISDIR
	case oflags&openTruncate != 0 && !s.at(p[0]).may(rightPathSetSize):
		return eNOTCAPABLE
	case !m.has(res, 4):
		return eFAULT
	case !s.room():
		return eMFILE
	}
	d, no := s.open(ctx, at, p[1]&lookupFollow != 0, oflags, fdflags, p[5])
	if no != success {
		return no
	}
	fd, no := s.add(d)
	if no != success {
		d.close()
		return no
	}
	return wrote(m.putU32(res, fd))
}

func (s *System) open(ctx context.Context, at place, follow bool, oflags, fdflags uint16, rights uint64) (*descriptor, Errno) {
	flag := openFlags(oflags, fdflags, rights)
	writes := flag&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0
	if at.name == "/" {
		if writes {
			return nil, eISDIR
		}
		return folder("/"), success
	}
	if f, ok := s.given(at.name); ok {
		if writes {
			return nil, eACCES
		}
		return &descriptor{file: f, name: at.name, stream: -1, base: rightsFile &^ (rightWrite | rightAllocate | rightSetSize), mode: os.O_RDONLY}, success
	}
	if !follow && s.cfg.Tree != nil {
		quiet := policy.Rights{Grants: s.cfg.Rights.Grants}
		if fi, err := s.cfg.Tree.Lstat(ctx, quiet, at.name); err == nil && fi.Mode()&fs.ModeSymlink != 0 {
			return nil, eLOOP
		}
	}
	var f *reach.File
	as := flag
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 && flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		as |= os.O_RDWR // who only reads may create, and truncating wants a writer
	}
	no := s.tree(at, func(name string) (err error) {
		f, err = s.cfg.Tree.Open(ctx, s.cfg.Rights, name, as, 0o644)
		return err
	})
	if no != success {
		return nil, no
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, errnoOf(err)
	}
	if fi.IsDir() {
		d := folder(at.name)
		d.file = f
		return d, success
	}
	if at.slash || oflags&openDirectory != 0 {
		f.Close()
		return nil, eNOTDIR
	}
	d := &descriptor{file: f, name: at.name, stream: -1, base: rightsFile, mode: flag & (os.O_WRONLY | os.O_RDWR),
		flags: fdflags & (flagAppend | flagNonblock | flagSync)}
	switch d.mode {
	case os.O_RDONLY:
		d.base &^= rightWrite | rightAllocate | rightSetSize
	case os.O_WRONLY:
		d.base &^= rightRead
	}
	return d, success
}

// openFlags translates to those of os.OpenFile. The rights say the direction;
// without them, what creates, truncates or appends opens for both.
func openFlags(oflags, fdflags uint16, rights uint64) int {
	if oflags&openDirectory != 0 {
		return os.O_RDONLY
	}
	flag, mode := 0, os.O_RDONLY
	for _, f := range [...]struct {
		on   bool
		flag int
	}{
		{oflags&openCreate != 0, os.O_CREATE},
		{oflags&openTruncate != 0, os.O_TRUNC},
		{fdflags&flagAppend != 0, os.O_APPEND},
	} {
		if f.on {
			flag |= f.flag
			mode = os.O_RDWR
		}
	}
	if oflags&openExclusive != 0 && oflags&openCreate != 0 {
		flag |= os.O_EXCL
	}
	if fdflags&flagSync != 0 {
		flag |= os.O_SYNC
	}
	switch rights & (rightRead | rightWrite) {
	case rightRead | rightWrite:
		mode = os.O_RDWR
	case rightWrite:
		mode = os.O_WRONLY
	case rightRead:
		mode = os.O_RDONLY
	}
	return flag | mode
}
