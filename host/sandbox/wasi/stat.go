package wasi

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io/fs"
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
func filestat(kind byte, name string, size int64, mod time.Time) []byte {
	var b [64]byte
	le := binary.LittleEndian
	if name != "" {
		le.PutUint64(b[8:], inode(name))
	}
	b[16] = kind
	le.PutUint64(b[24:], 1)
	le.PutUint64(b[32:], uint64(size))
	if !mod.IsZero() {
		for i := 40; i < 64; i += 8 {
			le.PutUint64(b[i:], uint64(mod.UnixNano()))
		}
	}
	return b[:]
}

func fileInfo(name string, fi fs.FileInfo) []byte {
	return filestat(typeOf(fi.Mode()), name, fi.Size(), fi.ModTime())
}

func fdFilestatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.stream >= 0:
		return wrote(m.Write(uint32(p[1]), filestat(typeUnknown, "", 0, time.Time{})))
	case d.file == nil:
		return wrote(m.Write(uint32(p[1]), filestat(typeDirectory, "/", 0, time.Time{})))
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
	rightsFile = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<8 | 1<<21 | 1<<22 | 1<<23 | 1<<27
	rightsDir  = 1<<0 | 1<<3 | 1<<4 | 1<<9 | 1<<10 | 1<<11 | 1<<12 | 1<<13 | 1<<14 | 1<<15 | 1<<16 | 1<<17 |
		1<<18 | 1<<19 | 1<<20 | 1<<21 | 1<<23 | 1<<24 | 1<<25 | 1<<26
	flagAppend   = 1
	flagNonblock = 4
)

func fdFdstatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	if d == nil {
		return eBADF
	}
	var b [24]byte
	base, inherit := uint64(rightsFile), uint64(0)
	switch {
	case d.stream >= 0:
		b[0] = typeUnknown // not a terminal: output is not coloured or paged
	case d.dir:
		b[0], base, inherit = typeDirectory, rightsDir, rightsFile|rightsDir
	default:
		b[0] = typeRegular
	}
	if d.append {
		b[2] = flagAppend
	}
	binary.LittleEndian.PutUint64(b[8:], base)
	binary.LittleEndian.PutUint64(b[16:], inherit)
	return wrote(m.Write(uint32(p[1]), b[:]))
}

// fdFdstatSetFlags can switch appending. Non-blocking is accepted: nothing here blocks.
func fdFdstatSetFlags(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d, flags := s.at(p[0]), uint32(p[1])
	switch {
	case d == nil:
		return eBADF
	case flags&^(flagAppend|flagNonblock) != 0:
		return eINVAL
	case d.atEnd && flags&flagAppend == 0:
		return eNOTSUP
	}
	d.append = flags&flagAppend != 0 && d.file != nil && !d.dir
	return success
}

func fdPrestatGet(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	if d == nil || !d.pre {
		return eBADF
	}
	return wrote(m.putU64(uint32(p[1]), uint64(len(d.name))<<32)) // tag 0: a folder
}

func fdPrestatDirName(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil || !d.pre:
		return eBADF
	case uint32(p[2]) < uint32(len(d.name)):
		return eNAMETOOLNG
	}
	return wrote(m.Write(uint32(p[1]), []byte(d.name)))
}
