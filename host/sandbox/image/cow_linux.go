package image

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cow is a sealed memory file that instances map privately.
type cow struct {
	fd   int
	view []byte // of the file, read-only
	maps pagemap
}

const page = 4096

// largeGrowth is how much memory a guest asks for at once when it is about to
// use it: a heap in Go grows by this. Filling it page by page, by faults, takes
// a tenth of a large call's time.
const largeGrowth = 4 << 20

// maxPrivate is how many pages of its own an instance keeps over a reset, so
// that the next call does not fault for each: 2 MiB, once for every instance
// that lies idle. Beyond it the pages are given back.
const maxPrivate = 512

// newCOW writes m to a memory file, with holes for what is zero, and seals it:
// nobody, this process included, can change it any more.
func newCOW(m Memory) (*cow, error) {
	if m.Size == 0 {
		return &cow{fd: -1}, nil
	}
	fd, err := unix.MemfdCreate("elf-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	if err = unix.Ftruncate(fd, int64(m.Size)); err == nil {
		err = writeRuns(fd, m.Runs)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	var view unsafe.Pointer
	if err == nil {
		view, err = unix.MmapPtr(fd, 0, nil, uintptr(m.Size), unix.PROT_READ, unix.MAP_SHARED)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &cow{fd, unsafe.Slice((*byte)(view), m.Size), openPagemap()}, nil
}

func writeRuns(fd int, runs []Run) error {
	for _, r := range runs {
		for at, p := int64(r.At), r.Bytes; len(p) > 0; {
			n, err := unix.Pwrite(fd, p, at)
			if err != nil || n <= 0 {
				return errors.Join(err, errors.New("the memory file could not be written"))
			}
			at, p = at+int64(n), p[n:]
		}
	}
	return nil
}

func (c *cow) close() error {
	if c.fd < 0 {
		return nil
	}
	return errors.Join(c.maps.close(),
		unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(c.view)), uintptr(len(c.view))), unix.Close(c.fd))
}

// memory is the linear memory of one instance: a reservation of its maximum,
// the beginning of which maps the image. It never moves.
type memory struct {
	cow      *cow
	reserved []byte
	used     int
	err      error

	looked  bool     // since the last reset
	known   bool     // the kernel said which pages are private
	listed  bool     // private is all that are, but for what the guest does now
	quiet   bool     // it has not made one more
	before  faults   // when it began
	private []region // of reserved, by address
	pages   int      // in them
	changed []int    // offsets of pages that differ from the image
}

// allocate never fails: an error shows as a nil buffer from Reallocate, which
// the runtime reports.
func (c *cow) allocate(most uint64) *memory {
	m := &memory{cow: c}
	if uint64(len(c.view)) > most {
		m.err = errors.New("the image is larger than the memory's maximum")
		return m
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(most), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if m.err = err; err != nil {
		return m
	}
	m.reserved = unsafe.Slice((*byte)(p), most)
	_, m.err = unix.MmapPtr(c.fd, 0, p, uintptr(len(c.view)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return m
}

// faults are those of one thread so far.
type faults struct {
	known        bool
	thread       int
	minor, major int64
}

// threadFaults counts those of the calling thread, to which the goroutine must
// be locked.
func threadFaults() faults {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return faults{}
	}
	// A thread that runs had some: without any, they are not counted here.
	return faults{u.Minflt > 0, unix.Gettid(), int64(u.Minflt), int64(u.Majflt)} // 32 bits on some systems
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if m.err != nil || size > uint64(len(m.reserved)) {
		return nil
	}
	if grown := m.reserved[m.used:max(int(size), m.used)]; m.used > 0 && len(grown) >= largeGrowth {
		// A hint: without huge pages it is only slower.
		_ = unix.Madvise(grown, unix.MADV_HUGEPAGE)
	}
	m.used = int(size)
	return m.reserved[:size:len(m.reserved)]
}

// Free implements experimental.LinearMemory.
func (m *memory) Free() {
	if m.reserved != nil {
		unix.MunmapPtr(unsafe.Pointer(&m.reserved[0]), uintptr(len(m.reserved)))
		m.reserved, m.used = nil, 0
	}
}

func (m *memory) size() int { return m.used }

// A page becomes a private copy by a fault of the thread that writes to it, be
// it in the guest or, on its behalf, in the kernel (mm_account_fault in
// mm/memory.c). Where a thread had none, the list of private pages stays what it
// was: that is true for most calls of an instance that lives, and to ask the
// kernel again takes longer than many of them. What the kernel does by itself
// adds none to a mapping of a file; to anonymous memory it does (khugepaged), so
// that memory beyond the image is always asked about.

// begin marks the begin of what one thread does to the memory.
func (m *memory) begin() { m.quiet, m.before = false, threadFaults() }

// end marks its end.
func (m *memory) end() {
	m.quiet = m.before.known && m.before == threadFaults()
	m.before = faults{}
}

// calm goes on with the list after what was done outside of a call.
func (m *memory) calm() { m.listed, m.quiet = m.listed && m.quiet, false }

// look finds the pages that differ from the image.
func (m *memory) look() {
	m.looked, m.pages, m.changed = true, 0, m.changed[:0]
	if !m.listed || !m.quiet || m.used != len(m.cow.view) {
		m.private, m.known = m.cow.maps.private(m.private[:0], m.reserved[:m.used])
		m.listed = m.known && m.used == len(m.cow.view)
	}
	m.quiet = false
	if !m.known {
		return
	}
	var zero [page]byte
	base := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.reserved))))
	for _, r := range m.private {
		for at := int(r.start - base); at < int(r.end-base); at += page {
			was := zero[:]
			if at < len(m.cow.view) {
				was = m.cow.view[at : at+page]
			}
			m.pages++
			if !bytes.Equal(m.reserved[at:at+page], was) {
				m.changed = append(m.changed, at)
			}
		}
	}
	slices.Sort(m.changed) // the kernel may name a region twice
	m.changed = slices.Compact(m.changed)
}

// reset brings the image's bytes back; the size was compared before. A page
// that differs is private, so what the kernel did not name is the image's.
func (m *memory) reset() error {
	if !m.looked {
		m.look()
	}
	m.looked = false
	if !m.known || m.pages > maxPrivate {
		m.listed = false
		return unix.Madvise(m.reserved[:m.used], unix.MADV_DONTNEED)
	}
	for _, at := range m.changed {
		copy(m.reserved[at:at+page], m.cow.view[at:])
	}
	return nil
}

// touched counts the pages that differ from the image.
func (m *memory) touched() (int, error) {
	m.look()
	if !m.known {
		return 0, errors.ErrUnsupported
	}
	return len(m.changed), nil
}
