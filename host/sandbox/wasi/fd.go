package wasi

import (
	"context"
	"errors"
	"io"
)

// file returns an open regular file.
func (s *System) file(fd uint64) (*descriptor, Errno) {
	d := s.at(fd)
	switch {
	case d == nil:
		return nil, eBADF
	case d.dir:
		return nil, eISDIR
	case d.file == nil:
		return nil, eSPIPE
	}
	return d, success
}

func fdRead(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.dir:
		return eISDIR
	case !d.may(rightRead):
		return eBADF
	case d.file != nil:
		return readv(m, uint32(p[1]), uint32(p[2]), uint32(p[3]), d.file.Read)
	case d.stream != 0:
		return eBADF
	case s.cfg.Stdin == nil:
		return readv(m, uint32(p[1]), uint32(p[2]), uint32(p[3]), func([]byte) (int, error) { return 0, io.EOF })
	}
	return readv(m, uint32(p[1]), uint32(p[2]), uint32(p[3]), s.cfg.Stdin.Read)
}

func fdPread(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d, no := s.file(p[0])
	if no != success {
		return no
	}
	off := int64(p[3])
	switch {
	case off < 0:
		return eINVAL
	case !d.may(rightRead):
		return eBADF
	}
	return readv(m, uint32(p[1]), uint32(p[2]), uint32(p[4]), func(b []byte) (int, error) {
		n, err := d.file.ReadAt(b, off)
		off += int64(n)
		return n, err
	})
}

// readv reads straight into the guest's memory, so that a huge buffer costs
// the host nothing. It stops at the first short read.
func readv(m Memory, iovs, n, res uint32, read func([]byte) (int, error)) Errno {
	list, no := m.iovecs(iovs, n)
	if no != success {
		return no
	}
	if !m.has(res, 4) {
		return eFAULT
	}
	sum := uint32(0)
	for _, v := range list {
		if v.len == 0 {
			continue
		}
		b, _ := m.View(v.off, v.len)
		got, err := read(b)
		m.wrote(v.off, b[:got])
		sum += uint32(got)
		if err != nil && !errors.Is(err, io.EOF) && sum == 0 {
			return errnoOf(err)
		}
		if err != nil || got < len(b) {
			break
		}
	}
	return wrote(m.putU32(res, sum))
}

func fdWrite(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.dir:
		return eISDIR
	case !d.may(rightWrite):
		return eBADF
	case d.file != nil:
		return writev(m, uint32(p[1]), uint32(p[2]), uint32(p[3]), d.file.Write)
	}
	out := s.cfg.Stdout
	switch d.stream {
	case 0:
		return eBADF
	case 2:
		out = s.cfg.Stderr
	}
	if out == nil {
		out = io.Discard
	}
	return writev(m, uint32(p[1]), uint32(p[2]), uint32(p[3]), out.Write)
}

func fdPwrite(_ context.Context, s *System, m Memory, p []uint64) Errno {
	d, no := s.file(p[0])
	if no != success {
		return no
	}
	off := int64(p[3])
	switch {
	case off < 0:
		return eINVAL
	case !d.may(rightWrite):
		return eBADF
	case d.appends(): // the end wins over the offset, as on Linux, and the position stays
		pos, err := d.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return errnoOf(err)
		}
		defer d.file.Seek(pos, io.SeekStart)
		return writev(m, uint32(p[1]), uint32(p[2]), uint32(p[4]), d.file.Write)
	}
	return writev(m, uint32(p[1]), uint32(p[2]), uint32(p[4]), func(b []byte) (int, error) {
		n, err := d.file.WriteAt(b, off)
		off += int64(n)
		return n, err
	})
}

func writev(m Memory, iovs, n, res uint32, write func([]byte) (int, error)) Errno {
	list, no := m.iovecs(iovs, n)
	if no != success {
		return no
	}
	if !m.has(res, 4) {
		return eFAULT
	}
	sum := uint32(0)
	for _, v := range list {
		if v.len == 0 {
			continue
		}
		b, _ := m.View(v.off, v.len)
		done, err := write(b)
		sum += uint32(done)
		if err != nil && sum == 0 {
			return errnoOf(err)
		}
		if err != nil {
			break
		}
	}
	return wrote(m.putU32(res, sum))
}

func fdSeek(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return s.seek(m, p[0], int64(p[1]), uint32(p[2]), uint32(p[3]))
}

func fdTell(_ context.Context, s *System, m Memory, p []uint64) Errno {
	return s.seek(m, p[0], 0, io.SeekCurrent, uint32(p[1]))
}

func (s *System) seek(m Memory, fd uint64, off int64, whence, res uint32) Errno {
	d, no := s.file(fd)
	switch {
	case no != success:
		return no
	case whence > io.SeekEnd:
		return eINVAL
	case !m.has(res, 8):
		return eFAULT
	}
	n, err := d.file.Seek(off, int(whence))
	if err != nil {
		return errnoOf(err)
	}
	return wrote(m.putU64(res, uint64(n)))
}

func fdSync(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d := s.at(p[0])
	switch {
	case d == nil:
		return eBADF
	case d.file == nil || d.dir:
		return success
	}
	return errnoOf(d.file.Sync())
}

func fdAdvise(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	switch {
	case s.at(p[0]) == nil:
		return eBADF
	case uint32(p[3]) > 5 || int64(p[1]) < 0 || int64(p[2]) < 0:
		return eINVAL
	}
	return success // advice may be ignored
}

// fdAllocate makes a file at least off+len long. It reserves nothing on disk.
func fdAllocate(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d, no := s.file(p[0])
	if no != success {
		return no
	}
	off, n := int64(p[1]), int64(p[2])
	switch {
	case off < 0 || n <= 0 || off+n < 0:
		return eINVAL
	case !d.may(rightWrite):
		return eBADF
	}
	fi, err := d.file.Stat()
	if err != nil || fi.Size() >= off+n {
		return errnoOf(err)
	}
	return errnoOf(d.file.Truncate(off + n))
}
