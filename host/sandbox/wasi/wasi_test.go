package wasi_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// bench holds a memory of one page and calls functions on it without a guest.
type bench struct {
	t   testing.TB
	sys *wasi.System
	mod api.Module
	fn  map[string]*wasi.Func
}

// onePage is a module with nothing but (memory (export "memory") 1).
var onePage = []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06memory\x02\x00")

func newBench(t testing.TB, conf wasi.Config) *bench {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	mod, err := rt.Instantiate(ctx, onePage)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, sys: wasi.New(conf), mod: mod, fn: map[string]*wasi.Func{}}
	t.Cleanup(func() { b.sys.Close() })
	h := rt.NewHostModuleBuilder(wasi.ModuleName)
	for _, f := range wasi.Export(h, func(context.Context, api.Module, *wasi.Func, []uint64) {}) {
		b.fn[f.Name] = f
	}
	return b
}

func (b *bench) call(name string, p ...uint64) uint64 {
	b.t.Helper()
	return b.callCtx(b.t.Context(), name, p...)
}

func (b *bench) callCtx(ctx context.Context, name string, p ...uint64) uint64 {
	b.t.Helper()
	f := b.fn[name]
	if f == nil || len(p) != len(f.Params()) {
		b.t.Fatalf("%s with %d parameters", name, len(p))
	}
	stack := append(p, 0)
	f.Call(ctx, b.sys, wasi.MemoryOf(b.mod, nil), stack)
	return stack[0]
}

func (b *bench) want(no uint64, name string, p ...uint64) {
	b.t.Helper()
	if got := b.call(name, p...); got != no {
		b.t.Errorf("%s%v: errno %d, want %d", name, p, got, no)
	}
}

func (b *bench) put(off uint32, s string) (uint64, uint64) {
	b.mod.Memory().Write(off, []byte(s))
	return uint64(off), uint64(len(s))
}

func (b *bench) u32(off uint32) uint32 { v, _ := b.mod.Memory().ReadUint32Le(off); return v }

func (b *bench) open(path string) (errno uint64, fd uint64) {
	p, n := b.put(0, path)
	no := b.call("path_open", 3, 1, p, n, 0, 1<<1, 0, 0, 1024)
	return no, uint64(b.u32(1024))
}

const (
	acces, badf, fault, inval, noent, nametoolong, perm, notsock, nosys, canceled = 2, 8, 21, 28, 44, 37, 63, 57, 52, 11
)

func TestAllFunctions(t *testing.T) {
	if b := newBench(t, wasi.Config{}); len(b.fn) != 46 {
		t.Errorf("%d functions, preview 1 has 46", len(b.fn))
	}
}

// TestFault calls every function with pointers at the end of the memory, past
// it, and with lengths that overflow 32 bits.
func TestFault(t *testing.T) {
	b := newBench(t, wasi.Config{Args: []string{"a"}, Env: []string{"A=b"}})
	for name, f := range b.fn {
		if name == "proc_exit" {
			continue
		}
		for _, v := range []uint64{0xffffffff, 65536, 65535, 0x80000000, 0xfffffff8} {
			for fd := range uint64(5) {
				p := make([]uint64, len(f.Params()))
				for i := range p {
					p[i] = v
				}
				if len(p) > 0 {
					p[0] = fd
				}
				b.call(name, p...) // must neither panic nor block
			}
		}
	}
	b = newBench(t, wasi.Config{}) // the loop closed descriptors
	b.want(fault, "random_get", 0xffffffff, 0xffffffff)
	b.want(fault, "clock_time_get", 0, 0, 65530)
	b.want(fault, "fd_write", 1, 65535, 1, 0)
	b.want(inval, "fd_write", 1, 0, 0xffffffff, 0)
	b.want(nametoolong, "path_open", 3, 0, 0, 0x80000000, 0, 0, 0, 0, 0)
}

func TestEmptyRoot(t *testing.T) {
	b := newBench(t, wasi.Config{})
	if no, _ := b.open("etc/passwd"); no != noent {
		t.Errorf("etc/passwd: errno %d", no)
	}
	if no, _ := b.open("."); no != 0 {
		t.Errorf("the root does not open: errno %d", no)
	}
	b.want(0, "fd_readdir", 3, 0, 4096, 0, 8192)
	if n := b.u32(8192); n != 24+1+24+2 {
		t.Errorf("the root has %d bytes of entries, want . and .. alone", n)
	}
	b.want(0, "args_sizes_get", 0, 4)
	b.want(0, "environ_sizes_get", 8, 12)
	if b.u32(0) != 0 || b.u32(8) != 0 {
		t.Error("arguments or variables")
	}
	b.want(notsock, "sock_accept", 3, 0, 0)
	b.want(badf, "sock_recv", 9, 0, 0, 0, 0, 0)
	b.want(nosys, "proc_raise", 9)
}

func TestDescriptorsEndWithTheSystem(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a"), []byte("secret"), 0o644)
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	b := newBench(t, wasi.Config{Tree: tree, Rights: all(t)})
	no, fd := b.open("ws/a")
	if no != 0 {
		t.Fatalf("errno %d", no)
	}
	b.want(0, "fd_close", 3)
	b.want(badf, "fd_prestat_get", 3, 0)
	b.sys.Close()
	b.sys = wasi.New(wasi.Config{Tree: tree, Rights: all(t)}) // the next call
	b.want(badf, "fd_filestat_get", fd, 0)
	b.want(0, "fd_prestat_get", 3, 0)
}

func TestDenialIsNotAbsence(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(filepath.Join(dir, "a"), []byte("secret"), 0o644)
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	var denied []policy.Use
	b := newBench(t, wasi.Config{Tree: tree, Rights: policy.Rights{Note: func(u policy.Use, err error) {
		if errors.Is(err, abi.ErrDenied) {
			denied = append(denied, u)
		}
	}}})
	for path, want := range map[string]uint64{"ws/a": acces, "etc/localtime": noent, "../a": perm, "/ws/a": perm} {
		denied = nil
		no, _ := b.open(path)
		if no != want {
			t.Errorf("%s: errno %d, want %d", path, no, want)
		}
		if (want == noent) != (len(denied) == 0) {
			t.Errorf("%s: noted %v", path, denied)
		}
	}
	b.want(0, "fd_readdir", 3, 0, 4096, 0, 8192)
	if n := b.u32(8192); n != 24+1+24+2 {
		t.Error("the workspace is listed without a right")
	}
}

func TestTooManyFiles(t *testing.T) {
	b := newBench(t, wasi.Config{MaxFiles: 8})
	for range 4 {
		if no, _ := b.open("."); no != 0 {
			t.Fatalf("errno %d", no)
		}
	}
	if no, _ := b.open("."); no != 33 {
		t.Errorf("errno %d, want EMFILE", no)
	}
}

func TestClocks(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 678_912_345, time.UTC)
	for _, c := range []struct {
		fine bool
		step uint64
	}{{false, 1e6}, {true, 1}} {
		b := newBench(t, wasi.Config{Now: func() time.Time { return now }, FineClock: c.fine})
		for id := range uint64(2) {
			b.want(0, "clock_time_get", id, 0, 0)
			got, _ := b.mod.Memory().ReadUint64Le(0)
			if want := uint64(now.UnixNano()) / c.step * c.step; got != want {
				t.Errorf("clock %d, fine %v: %d, want %d", id, c.fine, got, want)
			}
			b.want(0, "clock_res_get", id, 8)
			if res, _ := b.mod.Memory().ReadUint64Le(8); res != c.step {
				t.Errorf("resolution %d", res)
			}
		}
		b.want(58, "clock_time_get", 2, 0, 0)
		b.want(inval, "clock_time_get", 9, 0, 0)
	}
}

// TestPollEndsWithTheContext sleeps for an hour.
func TestPollEndsWithTheContext(t *testing.T) {
	b := newBench(t, wasi.Config{})
	sub := make([]byte, 48)
	binary.LittleEndian.PutUint64(sub[24:], uint64(time.Hour))
	b.mod.Memory().Write(0, sub)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if no := b.callCtx(ctx, "poll_oneoff", 0, 1024, 1, 2048); no != canceled {
		t.Errorf("errno %d", no)
	}
}

func TestPollTellsWhoIsReady(t *testing.T) {
	b := newBench(t, wasi.Config{})
	var subs []byte
	for i, kind := range []byte{0, 1, 1} { // an hour, stdin, a closed descriptor
		sub := make([]byte, 48)
		sub[0], sub[8] = byte(i+1), kind
		if kind == 0 {
			binary.LittleEndian.PutUint64(sub[24:], uint64(time.Hour))
		}
		if i == 2 {
			sub[16] = 99
		}
		subs = append(subs, sub...)
	}
	b.mod.Memory().Write(0, subs)
	b.want(0, "poll_oneoff", 0, 1024, 3, 2048)
	if n := b.u32(2048); n != 2 {
		t.Fatalf("%d events, want 2", n)
	}
	ev, _ := b.mod.Memory().Read(1024, 64)
	if ev[0] != 2 || ev[8] != 0 || ev[32] != 3 || ev[32+8] != badf {
		t.Errorf("events %v", ev)
	}
}

func TestExit(t *testing.T) {
	b := newBench(t, wasi.Config{})
	defer func() {
		if e, ok := recover().(*sys.ExitError); !ok || e.ExitCode() != 7 {
			t.Errorf("it ended with %v", e)
		}
	}()
	b.call("proc_exit", 7)
}

// TestWaits: what may block is ended by a timer, whatever number a guest gives it.
func TestWaits(t *testing.T) {
	b := newBench(t, wasi.Config{Files: map[string][]byte{"/a": []byte("x")}, Paths: map[string]string{"/": "/ws"}})
	waits := func(name string, p ...uint64) bool { return b.fn[name].Waits(b.sys, append(p, 0, 0, 0, 0)) }
	no, fd := b.open("a")
	if no != 0 {
		t.Fatalf("errno %d", no)
	}
	if waits("args_get") || waits("fd_write", 1) || waits("fd_write", 99) {
		t.Error("what waits for nothing has a timer")
	}
	b.want(0, "fd_renumber", fd, 1)
	for _, name := range []string{"fd_write", "fd_read", "poll_oneoff", "path_open", "fd_readdir", "random_get"} {
		if !waits(name, 1) {
			t.Errorf("%s has no timer", name)
		}
	}
}

// TestTap: what a function writes is told, and nothing else changes.
func TestTap(t *testing.T) {
	b := newBench(t, wasi.Config{Rand: bytes.NewReader(bytes.Repeat([]byte{7}, 64))})
	shadow := make([]byte, 65536)
	m := wasi.MemoryOf(b.mod, func(off uint32, p []byte) { copy(shadow[off:], p) })
	for name, p := range map[string][]uint64{
		"random_get": {100, 16}, "clock_time_get": {0, 0, 200}, "fd_fdstat_get": {3, 300}, "fd_prestat_dir_name": {3, 400, 1},
		"fd_readdir": {3, 500, 100, 0, 700}, "fd_filestat_get": {3, 800},
	} {
		b.fn[name].Call(t.Context(), b.sys, m, append(p, 0))
	}
	real, _ := b.mod.Memory().Read(0, 65536)
	if !bytes.Equal(real, shadow) {
		t.Error("a write was not told")
	}
}

// FuzzCalls throws sequences of calls with any parameters at a System.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("\x23\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	names := make([]string, 0, 46)
	for name := range wasi.Signatures() {
		if name != "proc_exit" && name != "poll_oneoff" {
			names = append(names, name)
		}
	}
	b := newBench(f, wasi.Config{})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer tree.Close()
		s := wasi.New(wasi.Config{Tree: tree, Rights: all(t), Base: "/ws"})
		defer s.Close()
		b.mod.Memory().Write(0, data)
		for len(data) > 0 {
			fn := b.fn[names[int(data[0])%len(names)]]
			data = data[1:]
			stack := make([]uint64, len(fn.Params())+1)
			for i := range len(fn.Params()) {
				if len(data) < 4 {
					break
				}
				stack[i] = uint64(binary.LittleEndian.Uint32(data))
				data = data[4:]
			}
			fn.Call(t.Context(), s, wasi.MemoryOf(b.mod, nil), stack)
		}
	})
}
