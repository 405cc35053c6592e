package wasi

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Config is what one call sees of the world. The zero value shows nothing: no
// files, arguments, variables or input, and output is dropped.
type Config struct {
	Tree   *reach.Tree // nil: the root is empty
	Rights policy.Rights

	Args   []string
	Env    []string // "K=V"
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer

	Rand      io.Reader        // nil: the operating system's
	Now       func() time.Time // nil: time.Now
	FineClock bool             // nanoseconds rather than Coarse steps
	MaxFiles  int              // open descriptors; 0: 256
}

// System is the side of WASI that belongs to one call. It is used by one
// guest at a time; Close it when the call is over.
type System struct {
	cfg   Config
	start time.Time
	table []*descriptor // by number; nil is free
}

// descriptor is an open file, folder or standard stream.
type descriptor struct {
	file   *reach.File // nil for streams and for the root
	name   string      // virtual path of a file or folder
	dir    bool
	pre    bool // the preopen
	stream int  // 0, 1, 2; -1 for files
	append bool
	atEnd  bool // append was there at open: the file itself appends
	list   listing
}

const preopen = 3

// New makes the System of a new call.
func New(c Config) *System {
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = 256
	}
	s := &System{cfg: c, start: c.Now()}
	s.table = append(make([]*descriptor, 0, 8),
		&descriptor{stream: 0}, &descriptor{stream: 1}, &descriptor{stream: 2},
		&descriptor{name: "/", dir: true, pre: true, stream: -1})
	return s
}

// Close closes what the guest left open.
func (s *System) Close() error {
	var errs []error
	for _, d := range s.table {
		errs = append(errs, d.close())
	}
	s.table = nil
	return errors.Join(errs...)
}

func (d *descriptor) close() error {
	if d == nil || d.file == nil {
		return nil
	}
	return d.file.Close()
}

// at is the descriptor with a number, or nil.
func (s *System) at(fd uint64) *descriptor {
	if n := uint32(fd); uint64(n) < uint64(len(s.table)) {
		return s.table[n]
	}
	return nil
}

// add gives d the lowest free number.
func (s *System) add(d *descriptor) (uint32, Errno) {
	for i, old := range s.table {
		if old == nil {
			s.table[i] = d
			return uint32(i), success
		}
	}
	if len(s.table) >= s.cfg.MaxFiles {
		return 0, eMFILE
	}
	s.table = append(s.table, d)
	return uint32(len(s.table) - 1), success
}

// room reports whether add would find a number, before anything is opened.
func (s *System) room() bool {
	if len(s.table) < s.cfg.MaxFiles {
		return true
	}
	for _, d := range s.table {
		if d == nil {
			return true
		}
	}
	return false
}

func fdClose(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d := s.at(p[0])
	if d == nil {
		return eBADF
	}
	s.table[uint32(p[0])] = nil
	return errnoOf(d.close())
}

// fdRenumber moves a descriptor to another number, and closes what was there.
func fdRenumber(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d, to := s.at(p[0]), int(uint32(p[1]))
	switch {
	case d == nil || to >= s.cfg.MaxFiles:
		return eBADF
	case d.pre:
		return eNOTSUP
	case uint32(p[0]) == uint32(p[1]):
		return success
	}
	for len(s.table) <= to {
		s.table = append(s.table, nil)
	}
	old := s.table[to]
	if old != nil && old.pre {
		return eNOTSUP
	}
	s.table[uint32(p[0])], s.table[to] = nil, d
	return errnoOf(old.close())
}
