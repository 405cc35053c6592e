package image

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pagemap asks the kernel which pages of this process are private copies
// (PAGEMAP_SCAN, Linux 6.7; Documentation/admin-guide/mm/pagemap.rst).
type pagemap struct{ file *os.File }

// openPagemap gives one that knows nothing where the kernel is older, or /proc
// is not there.
func openPagemap() pagemap {
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return pagemap{}
	}
	return pagemap{f}
}

func (p pagemap) close() error {
	if p.file == nil {
		return nil
	}
	return p.file.Close()
}

// region is struct page_region: addresses, the end excluded.
type region struct{ start, end, categories uint64 }

// scanArg is struct pm_scan_arg.
type scanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, mask, anyOf, returned                         uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	pageIsZero    = 1 << 5 // the kernel's shared page of zeros
)

// private appends to list the regions of mem that are copies of this process's
// own: of a private mapping, the pages that were written since it was made or
// dropped. ok is false where the kernel does not tell.
func (p pagemap) private(list []region, mem []byte) (_ []region, ok bool) {
	if p.file == nil || len(mem) == 0 {
		return list, false
	}
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(mem))))
	arg := scanArg{
		start: start, end: start + uint64(len(mem)),
		inverted: pageIsFile | pageIsZero, mask: pageIsFile | pageIsZero, anyOf: pageIsPresent | pageIsSwapped,
	}
	arg.size = uint64(unsafe.Sizeof(arg))
	for arg.start < arg.end {
		if len(list) == cap(list) {
			list = append(list, region{})[:len(list)]
		}
		free := list[len(list):cap(list)]
		arg.vec, arg.vecLen = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(free)))), uint64(len(free))
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.file.Fd(), pagemapScan, uintptr(unsafe.Pointer(&arg)))
		if errno != 0 {
			return list, false
		}
		list = list[:len(list)+int(n)]
		if arg.walkEnd <= arg.start { // cannot be: the walk goes on or fails
			return list, false
		}
		arg.start = arg.walkEnd
	}
	runtime.KeepAlive(mem)
	return list, true
}
