package wasi

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"time"
)

// File types of preview 1.
const (
	typeUnknown   = 0
	typeCharacter = 2
	typeDirectory = 3
	typeRegular   = 4
	typeLink      = 7
)

func typeOf(m fs.FileMode) byte {
	switch {
	case m.IsRegular():
		return typeRegular
	case m.IsDir():
		return typeDirectory
	case m&fs.ModeSymlink != 0:
		return typeLink
	}
	return typeUnknown
}

// inode is made from the virtual path: a guest may compare files by it, and
// learns nothing of the host's disk.
func inode(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64() | 1
}

// filestat is the 64 bytes of preview 1: dev, ino, type, nlink, size, atim, mtim, ctim.
func filestat(kind byte, name string, size int64, times [3]time.Time) []byte {
	var b [64]byte
	le := binary.LittleEndian
	if name != "" {
		le.PutUint64(b[8:], inode(name))
	}
	b[16] = kind
	le.PutUint64(b[24:], 1)
	le.PutUint64(b[32:], uint64(size))
	for i, t := range times { // access, modification, change
		if !t.IsZero() {
			le.PutUint64(b[40+8*i:], uint64(t.UnixNano()))
		}
	}
	return b[:]
}

func fileInfo(name string, fi fs.FileInfo) []byte {
	return filestat(typeOf(fi.Mode()), name, fi.Size(), fileTimes(fi))
}

func fdFilestatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.stream >= 0:
		return wrote(m.Write(uint32(p[1]), filestat(typeUnknown, "", 0, [3]time.Time{})))
	case d.file == nil:
		return wrote(m.Write(uint32(p[1]), filestat(typeDirectory, d.name, 0, [3]time.Time{})))
	}
	fi, err := d.file.Stat()
	if err != nil {
		return errnoOf(err)
	}
	return wrote(m.Write(uint32(p[1]), fileInfo(d.name, fi)))
}

func fdFilestatSetSize(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d, no := s.file(p[0])
	switch {
	case no != success:
		return no
	case int64(p[1]) < 0:
		return eINVAL
	case !d.may(rightSetSize) || d.mode == os.O_RDONLY:
		return eINVAL // what ftruncate says of a file that is not open for writing
	}
	return errnoOf(d.file.Truncate(int64(p[1])))
}

// fdFilestatSetTimes asks for the right to write by path: that a file is open
// for reading is none.
func fdFilestatSetTimes(ctx context.Context, s *System, _ Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.file == nil:
		return ePERM
	}
	return s.setTimes(ctx, d.name, p[1:4])
}

// Flags of the set_times functions.
const (
	setAtime    = 1
	setAtimeNow = 2
	setMtime    = 4
	setMtimeNow = 8
)

func (s *System) setTimes(ctx context.Context, name string, p []uint64) Errno {
	flags := uint16(p[2])
	atime, ok := s.fileTime(p[0], flags&setAtime != 0, flags&setAtimeNow != 0)
	mtime, ok2 := s.fileTime(p[1], flags&setMtime != 0, flags&setMtimeNow != 0)
	if !ok || !ok2 {
		return eINVAL
	}
	return errnoOf(s.cfg.Tree.Chtimes(ctx, s.cfg.Rights, name, atime, mtime))
}

func (s *System) fileTime(ns uint64, set, now bool) (t time.Time, ok bool) {
	switch {
	case set && now:
		return t, false
	case set:
		return time.Unix(0, int64(ns)), true
	case now:
		return s.cfg.Now(), true
	}
	return t, true
}

// Rights of descriptors. They were dropped from the proposal, and libraries
// still read them: a folder must not look seekable (wasi-testsuite), and what
// has neither seek nor tell and is a character device is a terminal (wasi-libc).
const (
	rightRead        = 1 << 1
	rightWrite       = 1 << 6
	rightAllocate    = 1 << 8
	rightPathSetSize = 1 << 19
	rightSetSize     = 1 << 22

	rightsFile = 1<<0 | rightRead | 1<<2 | 1<<3 | 1<<4 | 1<<5 | rightWrite | 1<<7 | rightAllocate | 1<<21 | rightSetSize | 1<<23 | 1<<27
	rightsDir  = 1<<0 | 1<<3 | 1<<4 | 1<<9 | 1<<10 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<15 | 1<<16 | 1<<17 |
		1<<18 | rightPathSetSize | 1<<20 | 1<<21 | 1<<23 | 1<<24 | 1<<25 | 1<<26
)

// Flags of descriptors.
const (
	flagAppend   = 1
	flagNonblock = 4
	flagSync     = 2 | 8 | 16 // DSYNC, RSYNC, SYNC
)

func fdFdstatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	if d == nil {
		return eBADF
	}
	var b [24]byte
	switch {
	case d.stream >= 0:
		b[0] = typeUnknown // not a terminal: output is not coloured or paged
	case d.dir:
		b[0] = typeDirectory
	default:
		b[0] = typeRegular
	}
	binary.LittleEndian.PutUint16(b[2:], d.flags)
	binary.LittleEndian.PutUint64(b[8:], d.base)
	binary.LittleEndian.PutUint64(b[16:], d.inherit)
	return wrote(m.Write(uint32(p[1]), b[:]))
}

// fdFdstatSetFlags switches appending: the file is opened anew, so that its
// writes go to the end whoever else writes. Non-blocking changes nothing:
// nothing here blocks.
func fdFdstatSetFlags(ctx context.Context, s *System, _ Memory, p []uint64) Errno {
	d, flags := s.at(p[0]), uint16(p[1])
	switch {
	case d == nil:
		return eBADF
	case uint32(p[1])&^(flagAppend|flagNonblock) != 0:
		return eINVAL
	case (d.flags^flags)&flagAppend != 0 && d.file != nil && !d.dir:
		if no := s.reopen(ctx, d, flags&flagAppend != 0); no != success {
			return no
		}
	}
	d.flags = d.flags&flagSync | flags
	return success
}

func (s *System) reopen(ctx context.Context, d *descriptor, appends bool) Errno {
	flag := d.mode
	if appends {
		flag |= os.O_APPEND
	}
	f, err := s.cfg.Tree.Open(ctx, s.cfg.Rights, d.name, flag, 0)
	if err != nil {
		return errnoOf(err)
	}
	was, err1 := d.file.Stat()
	is, err2 := f.Stat()
	pos, err3 := d.file.Seek(0, io.SeekCurrent)
	_, err4 := f.Seek(pos, io.SeekStart)
	if err := errors.Join(err1, err2, err3, err4); err != nil || !sameFile(was, is) {
		f.Close()
		return eNOTSUP // the name is another file's by now
	}
	d.file.Close()
	d.file = f
	return success
}

// fdFdstatSetRights drops rights; none comes back.
func fdFdstatSetRights(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case p[1]&^d.base != 0 || p[2]&^d.inherit != 0:
		return eNOTCAPABLE
	}
	d.base, d.inherit = p[1], p[2]
	return success
}

func fdPrestatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	if d == nil || !d.pre {
		return eBADF
	}
	return wrote(m.putU64(uint32(p[1]), uint64(len(preopenName))<<32)) // tag 0: a folder
}

func fdPrestatDirName(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil || !d.pre:
		return eBADF
	case uint32(p[2]) < uint32(len(preopenName)):
		return eNAMETOOLNG
	}
	return wrote(m.Write(uint32(p[1]), []byte(preopenName)))
}
