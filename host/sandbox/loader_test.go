package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
)

// firstCall loads a module and calls its tool, for the error.
func firstCall(t *testing.T, wasm []byte, m abi.Manifest) error {
	t.Helper()
	p := load(t, &sandbox.Loader{}, wasm, m)
	_, err := p.Tools()[0].Call(t.Context(), host.Call{Tool: "probe"})
	return err
}

func importFunc(module, name string, typ byte) []byte {
	return wasmtest.Cat(wasmtest.Name(module), wasmtest.Name(name), []byte{0, typ})
}

func TestWL09ImportConfusion(t *testing.T) {
	abiTypes := [][]byte{fn("\x7f", "\x7f"), fn("\x7f\x7f\x7f\x7f", "\x7e"), fn("\x7f\x7f", "\x7f"), fn("", "")}
	memory := func(module string) []byte {
		return wasmtest.Cat(wasmtest.Name(module), wasmtest.Name("memory"), []byte{2, 0, 1})
	}
	for name, c := range map[string]struct {
		imports [][]byte
		want    string
	}{
		"another plugin's memory": {[][]byte{memory("victim")}, "memory"},
		"env":                     {[][]byte{importFunc("env", "abort", 3)}, "env"},
		"no module name":          {[][]byte{importFunc("", "x", 3)}, "import"},
		"wasi_unstable":           {[][]byte{importFunc("wasi_unstable", "fd_write", 1)}, "wasi_unstable"},
		"sockets":                 {[][]byte{importFunc("wasi:sockets", "tcp", 3)}, "wasi:sockets"},
		"the meter's module":      {[][]byte{importFunc("elf", "tick", 3)}, "elf"},
		"wrong signature":         {[][]byte{importFunc("elf:net", "http", 3)}, "http"},
		"unknown operation":       {[][]byte{importFunc("elf:net", "socket", 2)}, "socket"},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := tiny{types: abiTypes, imports: wasmtest.Section(2, wasmtest.Vec(c.imports...)), data: "\x00ok",
				exports: [][]byte{export("elf_alloc", 0, 1), export("elf_call", 0, 2), export("memory", 2, 0)}}.bytes()
			err := firstCall(t, wasm, abi.Manifest{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	t.Run("a need that the manifest does not have", func(t *testing.T) {
		wasm := tiny{types: abiTypes, imports: wasmtest.Section(2, wasmtest.Vec(importFunc("elf:net", "http", 2))), data: "\x00ok",
			exports: [][]byte{export("elf_alloc", 0, 1), export("elf_call", 0, 2), export("memory", 2, 0)}}.bytes()
		err := firstCall(t, wasm, abi.Manifest{Needs: []abi.Need{}})
		if err == nil || !strings.Contains(err.Error(), "net.http") {
			t.Errorf("error %v", err)
		}
		if err := firstCall(t, wasm, abi.Manifest{}); err != nil {
			t.Errorf("with the need: %v", err)
		}
	})
	t.Run("the same import twice", func(t *testing.T) {
		one := importFunc("elf:net", "http", 2)
		wasm := tiny{types: abiTypes, imports: wasmtest.Section(2, wasmtest.Vec(one, one)), data: "\x00ok",
			exports: [][]byte{export("elf_alloc", 0, 2), export("elf_call", 0, 3), export("memory", 2, 0)}}.bytes()
		if err := firstCall(t, wasm, abi.Manifest{}); err != nil {
			t.Error(err)
		}
	})
}

func TestWL10StartFunctions(t *testing.T) {
	loop := []byte{0x03, 0x40, 0x0c, 0x00, 0x0b} // (loop (br 0))
	types := [][]byte{fn("\x7f", "\x7f"), fn("\x7f\x7f\x7f\x7f", "\x7e"), fn("", "")}
	build := func(section []byte, exports ...[]byte) []byte {
		return wasmtest.Module(
			wasmtest.Section(1, wasmtest.Vec(types...)), wasmtest.Section(3, []byte{3, 0, 1, 2}), wasmtest.Section(5, []byte{1, 0, 17}),
			wasmtest.Section(7, wasmtest.Vec(append(exports, export("elf_alloc", 0, 0), export("elf_call", 0, 1), export("memory", 2, 0))...)),
			section, wasmtest.Section(10, wasmtest.Vec(body(constI32(8)...), body(constI64(16<<32|1)...), body(loop...))))
	}
	for name, wasm := range map[string][]byte{
		"start":       build(wasmtest.Section(8, []byte{2})),
		"_initialize": build(nil, export("_initialize", 0, 2)),
	} {
		t.Run(name, func(t *testing.T) {
			p := load(t, &sandbox.Loader{}, wasm, abi.Manifest{})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := p.Tools()[0].Call(ctx, host.Call{Tool: "probe"}) // without its end the test would have none
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		})
	}
	// A command's _start is never run.
	if err := firstCall(t, build(nil, export("_start", 0, 2)), abi.Manifest{}); err != nil {
		t.Errorf("_start was run: %v", err)
	}
}

func TestWL11ExportTricks(t *testing.T) {
	unreachable := []byte{0x00}
	for name, c := range map[string]struct {
		m    tiny
		want string
	}{
		"no memory":              {tiny{noMem: true, call: constI64(1)}, `"memory"`},
		"memory is a function":   {tiny{exports: [][]byte{export("elf_alloc", 0, 0), export("elf_call", 0, 1), export("memory", 0, 0)}}, `"memory"`},
		"no elf_call":            {tiny{exports: [][]byte{export("elf_alloc", 0, 0), export("memory", 2, 0)}}, "elf_call"},
		"elf_call is a memory":   {tiny{exports: [][]byte{export("elf_alloc", 0, 0), export("elf_call", 2, 0), export("memory", 2, 0)}}, "elf_call"},
		"elf_alloc has a type":   {tiny{exports: [][]byte{export("elf_alloc", 0, 1), export("elf_call", 0, 1), export("memory", 2, 0)}}, "elf_alloc"},
		"alloc gives 0":          {tiny{alloc: constI32(0)}, "gave no place"},
		"alloc gives -1":         {tiny{alloc: constI32(-1)}, "outside the memory"},
		"alloc gives the end":    {tiny{alloc: constI32(17*65536 - 1)}, "outside the memory"},
		"alloc traps":            {tiny{alloc: unreachable}, "unreachable"},
		"call traps":             {tiny{call: unreachable}, "unreachable"},
		"reply of nothing":       {tiny{call: constI64(0)}, "empty"},
		"reply past the memory":  {tiny{call: constI64(-0x10000<<32 | 0xffff)}, "outside the memory"},
		"reply over the limit":   {tiny{call: constI64(0xffff_ffff)}, "output"},
		"reply wraps the memory": {tiny{call: append(constI64(-1<<32|0xff), 0x01)}, "outside the memory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := firstCall(t, c.m.bytes(), abi.Manifest{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestTampered(t *testing.T) {
	wasm := replies("\x00one")
	l := &sandbox.Loader{Dir: t.TempDir(), Compiler: self(t)}
	pkg := pkgOf(wasm, abi.Manifest{Tools: probeDecl})
	pkg.Wasm = func() ([]byte, error) { return replies("\x00two"), nil }
	p, err := l.Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	if _, err := p.Tools()[0].Call(t.Context(), host.Call{}); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("%v", err)
	}
}

// TestKept: the second process neither reads nor prepares the module, and a
// damaged file is made anew.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	reads := 0
	call := func(damage func()) string {
		t.Helper()
		l := &sandbox.Loader{Dir: dir, Compiler: self(t)}
		pkg := pkgOf(replies("\x00answer"), abi.Manifest{Tools: probeDecl})
		wasm := pkg.Wasm
		pkg.Wasm = func() ([]byte, error) { reads++; return wasm() }
		p, err := l.Load(t.Context(), pkg)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(t.Context())
		damage()
		r, err := p.Tools()[0].Call(t.Context(), host.Call{})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text()
	}
	for i, c := range []struct {
		damage func()
		reads  int
	}{{func() {}, 1}, {func() {}, 1}, {func() { flipFiles(t, dir) }, 2}, {func() {}, 2}, {
		func() { os.RemoveAll(filepath.Join(dir, "code")) }, 3}, {func() {}, 3}} {
		if got := call(c.damage); got != "answer" || reads != c.reads {
			t.Errorf("%d: %q after %d reads, want %d", i, got, reads, c.reads)
		}
	}
}

// A cache that cannot be written costs time, not the call; one that others can
// write to is not believed.
func TestCacheThatCannotBeUsed(t *testing.T) {
	dir := t.TempDir()
	warns := 0
	call := func() error {
		t.Helper()
		l := &sandbox.Loader{Dir: dir, Compiler: self(t), Log: func(l sandbox.LogLine) {
			if l.Level == "warn" {
				warns++
			}
		}}
		p, err := l.Load(t.Context(), pkgOf(replies("\x00answer"), abi.Manifest{Tools: probeDecl}))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(t.Context())
		r, err := p.Tools()[0].Call(t.Context(), host.Call{})
		if err == nil && r.Text() != "answer" {
			t.Errorf("%q", r.Text())
		}
		return err
	}
	if err := call(); err != nil || warns != 0 {
		t.Fatal(err, warns)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, "*.elf"))
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	if err := errors.Join(os.Remove(kept[0]), os.MkdirAll(filepath.Join(kept[0], "in the way"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := call(); err != nil || warns != 1 {
		t.Errorf("something is in the way: %v, %d warnings", err, warns)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := call(); !errors.Is(err, compile.ErrShared) {
		t.Errorf("a folder of everybody's: %v", err)
	}
}

// Pruning takes machine code and what belongs to it, and nothing else.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	p, err := (&sandbox.Loader{Dir: dir, Compiler: self(t)}).Load(t.Context(), pkgOf(replies("\x00answer"), abi.Manifest{Tools: probeDecl}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	if err := p.Warm(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "mine.txt")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		f, _ := filepath.Glob(filepath.Join(dir, "*.elf"))
		c, _ := filepath.Glob(filepath.Join(dir, "code", "*"))
		return len(f) + len(c)
	}
	if r, err := sandbox.Prune(dir, time.Hour, -1); err != nil || r.Removed != 0 || r.Kept != 1 || count() != 2 {
		t.Errorf("what was just used: %+v, %v, %d files", r, err, count())
	}
	if r, err := sandbox.Prune(dir, -1, 0); err != nil || r.Removed != 1 || r.RemovedBytes == 0 || count() != 0 {
		t.Errorf("everything: %+v, %v, %d files", r, err, count())
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if r, err := p.Tools()[0].Call(t.Context(), host.Call{}); err != nil || r.Text() != "answer" {
		t.Errorf("a plugin that was loaded: %v, %v", r, err)
	}
	if r, err := sandbox.Prune(filepath.Join(dir, "none"), 0, 0); err != nil || r.Removed != 0 {
		t.Errorf("no cache: %+v, %v", r, err)
	}
}

func TestInspect(t *testing.T) {
	in, err := sandbox.Inspect(guest(t, "probe"))
	if err != nil {
		t.Fatal(err)
	}
	if in.Refused != "" || !in.Files || !slices.Contains(in.Capabilities, abi.NetHTTP) || !slices.Contains(in.Exports, "elf_call") || len(in.Digest) != 64 {
		t.Errorf("%+v", in)
	}
	in, err = sandbox.Inspect(tiny{noMem: true, call: constI64(1)}.bytes())
	if err != nil || !strings.Contains(in.Refused, `"memory"`) || len(in.Capabilities) != 0 || in.Files {
		t.Errorf("%+v, %v", in, err)
	}
	if _, err := sandbox.Inspect([]byte("#!/bin/sh\n")); err == nil {
		t.Error("a script is a module")
	}
}

func TestParallelCalls(t *testing.T) {
	p := newProbe(t, abi.Manifest{Limits: abi.Limits{Parallel: 2, Time: time.Minute}})
	p.want(args{Do: "echo", A: "warm"}, "warm")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				if r, err := p.try(args{Do: "echo", A: "x"}); err != nil || r.Text() != "x" {
					t.Errorf("%v, %v", r, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClosed(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.want(args{Do: "echo", A: "x"}, "x")
	if err := p.plugin.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := p.try(args{Do: "echo"}); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// A call that Close does not wait for is ended before its memory goes: a guest
// that ran on would take the process along.
func TestCloseEndsCalls(t *testing.T) {
	store := []byte{0x03, 0x40, 0x41, 0, 0x41, 1, 0x3a, 0, 0, 0x0c, 0, 0x0b, 0x42, 0} // (loop (i32.store8 0 1) (br 0)) 0
	p := load(t, &sandbox.Loader{}, tiny{call: store}.bytes(), abi.Manifest{Limits: abi.Limits{Time: time.Hour, Parallel: 2}})
	if err := p.Fill(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	for range 3 { // the third waits in the queue
		go func() { _, err := p.Tools()[0].Call(t.Context(), host.Call{}); ended <- err }()
	}
	time.Sleep(200 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for range 3 {
		if err := <-ended; !errors.Is(err, sandbox.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	if err := p.Warm(t.Context(), nil); !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("made ready after Close: %v", err)
	}
}

// Nothing of a module is compiled in the host's own process, not even where a
// program forgot to name another.
func TestNoCompilerNoCode(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		l := &sandbox.Loader{Dir: dir}
		p, err := l.Load(t.Context(), pkgOf(replies("\x00answer"), abi.Manifest{Tools: probeDecl}))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close(t.Context())
		if _, err := p.Tools()[0].Call(t.Context(), host.Call{}); err == nil || !strings.Contains(err.Error(), "Loader.Compiler") {
			t.Errorf("%v", err)
		}
	}
}

// The receipt tells what was measured: pages that changed, processor time.
func TestReceiptMeasures(t *testing.T) {
	p := newProbe(t, abi.Manifest{})
	p.want(args{Do: "echo", A: "x"}, "x")
	few := p.last.Pages
	text := strings.Repeat("x", 1<<20)
	p.want(args{Do: "echo", A: text}, text)
	if runtime.GOOS != "linux" {
		return
	}
	if few == 0 { // before Linux 6.7
		t.Skip("this kernel does not tell which pages changed")
	}
	if few > 100 || p.last.Pages < few+512 {
		t.Errorf("%d pages for a byte, %d for a MiB", few, p.last.Pages)
	}
	p.stop(args{Do: "spin"})
	spun := p.last
	p.try(args{Do: "sleep", N: 1000})
	slept := p.last
	if spun.CPU <= 0 || spun.CPU > spun.Wall+50*time.Millisecond || slept.CPU > slept.Wall/4 {
		t.Errorf("spinning: %v of %v, sleeping: %v of %v", spun.CPU, spun.Wall, slept.CPU, slept.Wall)
	}
}
