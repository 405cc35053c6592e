package wasi

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path"
	"time"

	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// Config is what one call sees of the world. The zero value shows nothing: no
// files, arguments, variables or input, and output is dropped.
type Config struct {
	Tree   *reach.Tree // nil: the root is empty
	Base   string      // the virtual folder that the guest sees as "/"; "" is the root itself
	Rights policy.Rights
	// Paths shows virtual folders and files under further names: "/mnt" for
	// "/ws/data". The rights are those of the virtual path.
	Paths map[string]string
	// Files are there for reading, by absolute name as the guest writes it.
	Files map[string][]byte

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
	file    openFile // nil for streams, for the root, and for a base that nobody listed yet
	name    string   // virtual path of a file or folder
	dir     bool
	pre     bool // the preopen
	stream  int  // 0, 1, 2; -1 for files
	mode    int  // os.O_RDONLY, os.O_WRONLY or os.O_RDWR
	flags   uint16
	base    uint64 // rights, which a guest may drop
	inherit uint64
	list    listing
}

func folder(name string) *descriptor {
	return &descriptor{name: name, dir: true, stream: -1, base: rightsDir, inherit: rightsFile | rightsDir}
}

func (d *descriptor) appends() bool { return d.flags&flagAppend != 0 }

// may reports whether the descriptor has kept a right.
func (d *descriptor) may(right uint64) bool { return d.base&right != 0 }

// preopenName is what a guest calls descriptor 3.
const preopenName = "/"

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
	root := folder(path.Join("/", c.Base))
	root.pre = true
	s.table = append(make([]*descriptor, 0, 8),
		&descriptor{stream: 0, base: rightsFile}, &descriptor{stream: 1, base: rightsFile}, &descriptor{stream: 2, base: rightsFile}, root)
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

// fdRenumber moves a descriptor to the number of another, which is closed. The
// preopen is no exception: the table is new in the next call.
func fdRenumber(_ context.Context, s *System, _ Memory, p []uint64) Errno {
	d, old := s.at(p[0]), s.at(p[1])
	switch {
	case d == nil || old == nil:
		return eBADF
	case d == old:
		return success
	}
	s.table[uint32(p[0])], s.table[uint32(p[1])] = nil, d
	return errnoOf(old.close())
}
