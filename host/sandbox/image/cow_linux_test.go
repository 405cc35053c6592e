package image

import (
	"bytes"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Whatever is written where, and whatever of it the kernel tells or keeps
// quiet about, a reset brings back every byte.
func TestResetBringsBackEveryByte(t *testing.T) {
	img := bytes.Repeat([]byte{0xa5, 0, 7}, 1<<20/3*4) // 4 MiB, more than maxPrivate pages
	img = append(img[:len(img)/65536*65536:len(img)/65536*65536], make([]byte, 1<<20)...)
	c, err := newCOW(memoryOf(img))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for name, old := range map[string]bool{"this kernel": false, "an old kernel": true} {
		t.Run(name, func(t *testing.T) {
			c := *c
			if old {
				c.maps = pagemap{}
			}
			m := c.allocate(8 << 20)
			defer m.Free()
			mem := m.Reallocate(uint64(len(img)))
			for round, write := range []func(){
				func() {},
				func() { mem[0], mem[len(mem)-1], mem[5*page-1] = 1, 1, 1 },
				func() { mem[5*page] = 2 },
				func() { clear(mem) },
				func() {
					for i := 0; i < len(mem); i += 2 * page {
						mem[i]++
					}
				},
				func() { mem[3] = 9; unix.Madvise(mem[:page], unix.MADV_PAGEOUT) },
				func() { mem[0]++; mem[0]-- },
			} {
				write()
				n, err := m.touched()
				if same := 0; err == nil {
					for at := 0; at < len(mem); at += page {
						if !bytes.Equal(mem[at:at+page], img[at:at+page]) {
							same++
						}
					}
					if n != same {
						t.Errorf("round %d: %d pages are said to differ, %d do", round, n, same)
					}
				}
				if err := m.reset(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(mem, img) {
					t.Fatalf("round %d: the memory is not the image", round)
				}
			}
		})
	}
}

// The list of regions grows as needed: every second page is one.
func TestManyRegions(t *testing.T) {
	p := openPagemap()
	defer p.close()
	const pages = 4096
	ptr, err := unix.MmapPtr(-1, 0, nil, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.MunmapPtr(ptr, pages*page)
	mem := unsafe.Slice((*byte)(ptr), pages*page)
	unix.Madvise(mem, unix.MADV_NOHUGEPAGE)
	if _, ok := p.private(nil, mem); !ok {
		t.Skip("this kernel has no PAGEMAP_SCAN")
	}
	for i := 0; i < len(mem); i += 2 * page {
		mem[i] = 1
	}
	list, ok := p.private(nil, mem)
	named := map[uint64]bool{} // some twice
	for _, r := range list {
		for at := r.start; at < r.end; at += page {
			named[at] = true
		}
	}
	if !ok || len(named) != pages/2 {
		t.Errorf("%d pages, %v", len(named), ok)
	}
}

// Between Begin and End the kernel is not asked where nothing can be new: what
// a call wrote is found all the same, whatever it wrote before.
func TestQuietCallsAreReset(t *testing.T) {
	img := bytes.Repeat([]byte{0xa5, 0, 7}, 1<<20/3)
	img = append(img[:len(img)/65536*65536:len(img)/65536*65536], make([]byte, 1<<16)...)
	c, err := newCOW(memoryOf(img))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	m := c.allocate(uint64(len(img)))
	defer m.Free()
	mem := m.Reallocate(uint64(len(img)))
	if m.look(); !m.known {
		t.Skip("this kernel has no PAGEMAP_SCAN")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	asked := 0
	for round := range 400 {
		m.begin()
		for i := range 3 {
			at := (round/20*7 + i*11) % (len(mem) / page) // new pages every 20 rounds
			mem[at*page+round]++
		}
		m.end()
		if !m.quiet {
			asked++
		}
		n, err := m.touched()
		if err != nil || n != 3 {
			t.Fatalf("round %d: %d pages, %v", round, n, err)
		}
		if err := m.reset(); err != nil || !bytes.Equal(mem, img) {
			t.Fatalf("round %d: the memory is not the image (%v)", round, err)
		}
	}
	if asked < 20 || asked > 200 {
		t.Errorf("the kernel was asked in %d of 400 rounds; pages were new in 20", asked)
	}
	// What another thread wrote is never assumed away.
	m.begin()
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and so on a thread of its own
		mem[len(mem)-1]++
		m.end()
		close(done)
	}()
	<-done
	if m.quiet {
		t.Error("the end on another thread counts")
	}
	if n, _ := m.touched(); n != 1 {
		t.Errorf("%d pages of another thread are found", n)
	}
}

// Memory beyond the image is the kernel's to fill, without a fault of anybody.
func TestGrownMemoryIsAlwaysAsked(t *testing.T) {
	c, err := newCOW(Memory{Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	m := c.allocate(1 << 20)
	defer m.Free()
	m.Reallocate(1 << 20)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		m.begin()
		m.end()
		if m.look(); m.listed {
			t.Fatal("the list is kept")
		}
	}
}
