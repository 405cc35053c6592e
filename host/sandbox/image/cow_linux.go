package image

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cow is a sealed memory file that instances map privately.
type cow struct {
	fd   int
	size int
}

const page = 4096

// newCOW writes mem to a memory file, with holes for zero pages, and seals it:
// nobody, this process included, can change it any more.
func newCOW(mem []byte) (*cow, error) {
	if len(mem) == 0 {
		return &cow{fd: -1}, nil
	}
	fd, err := unix.MemfdCreate("elf-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	if err = unix.Ftruncate(fd, int64(len(mem))); err == nil {
		err = writeSparse(fd, mem)
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return &cow{fd, len(mem)}, nil
}

func writeSparse(fd int, mem []byte) error {
	var zero [page]byte
	for o := 0; o < len(mem); o += page {
		p := mem[o:min(o+page, len(mem))]
		if bytes.Equal(p, zero[:len(p)]) {
			continue
		}
		if n, err := unix.Pwrite(fd, p, int64(o)); err != nil || n != len(p) {
			return errors.Join(err, errors.New("the memory file could not be written"))
		}
	}
	return nil
}

func (c *cow) close() error {
	if c.fd < 0 {
		return nil
	}
	return unix.Close(c.fd)
}

// memory is the linear memory of one instance: a reservation of its maximum,
// the beginning of which maps the image. It never moves.
type memory struct {
	reserved []byte
	used     int
	err      error
}

// allocate never fails: an error shows as a nil buffer from Reallocate, which
// the runtime reports.
func (c *cow) allocate(most uint64) *memory {
	m := &memory{}
	if uint64(c.size) > most {
		m.err = errors.New("the image is larger than the memory's maximum")
		return m
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(most), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if m.err = err; err != nil {
		return m
	}
	m.reserved = unsafe.Slice((*byte)(p), most)
	_, m.err = unix.MmapPtr(c.fd, 0, p, uintptr(c.size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *memory) Reallocate(size uint64) []byte {
	if m.err != nil || size > uint64(len(m.reserved)) {
		return nil
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

// reset drops the private pages: the image's come back, the rest reads zero.
func (m *memory) reset() error { return unix.Madvise(m.reserved[:m.used], unix.MADV_DONTNEED) }

// touched counts the pages that differ from the image's own: present, and not
// backed by the memory file (Documentation/admin-guide/mm/pagemap.rst).
func (m *memory) touched() (int, error) {
	const entry, present, file = 8, 1 << 63, 1 << 61
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	size := os.Getpagesize()
	table := make([]byte, (m.used+size-1)/size*entry)
	at := int64(uintptr(unsafe.Pointer(&m.reserved[0]))/uintptr(size)) * entry
	if _, err := f.ReadAt(table, at); err != nil {
		return 0, err
	}
	n := 0
	for ; len(table) > 0; table = table[entry:] {
		if v := binary.NativeEndian.Uint64(table); v&present != 0 && v&file == 0 {
			n++
		}
	}
	return n, nil
}
