package compile_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	if len(os.Args) > 1 && os.Args[1] == loadVerb {
		os.Exit(load(os.Args[2]))
	}
	if len(os.Args) > 1 && os.Args[1] == probeVerb {
		os.Exit(probe(os.Args[2]))
	}
	os.Exit(m.Run())
}

// metered is what the stages before give.
func metered(t testing.TB, wasm []byte) ([]byte, error) {
	t.Helper()
	p := vet.Standard()
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	r, err := vet.Check(wasm, p)
	if err != nil {
		return nil, err
	}
	m, _, err := meter.Rewrite(r.Module, meter.Options{})
	if err != nil {
		return nil, err
	}
	return m.Encode(), nil
}

func add(t testing.TB) []byte {
	t.Helper()
	b, err := metered(t, wasmtest.Program([]wasmtest.Func{{Export: "f", Params: []byte{0x7f}, Results: []byte{0x7f}, Code: []byte{0x20, 0, 0x41, 1, 0x6a}}}))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// works shows that a host can load the artifact and call the module.
func works(t testing.TB, a *compile.Artifact, module []byte) {
	t.Helper()
	ctx := context.Background()
	config, cache, err := a.Config()
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, config)
	defer rt.Close(ctx)
	if err := meter.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	ctx, b := meter.Start(ctx, meter.Limits{})
	mod, err := rt.InstantiateWithConfig(ctx, a.Module, wazero.NewModuleConfig().WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Loaded(); err != nil {
		t.Fatal(err)
	}
	if err := b.Arm(mod); err != nil {
		t.Fatal(err)
	}
	st := [1]uint64{41}
	if err := mod.ExportedFunction("f").CallWithStack(ctx, st[:]); err != nil || st[0] != 42 {
		t.Fatalf("f(41) is %d, %v", st[0], err)
	}
}

func TestCompileAndLoad(t *testing.T) {
	dir, module := filepath.Join(t.TempDir(), "cache"), add(t)
	a, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
	if err != nil || a.Hit {
		t.Fatalf("%+v, %v", a, err)
	}
	works(t, a, module)
	before := files(t, dir)
	b, err := compile.Run(t.Context(), module, compile.Options{Cache: dir, Self: "/does/not/exist"})
	if err != nil || !b.Hit || b.Key != a.Key {
		t.Fatalf("%+v, %v: the cache was not used", b, err)
	}
	works(t, b, module)
	if after := files(t, dir); after != before {
		t.Errorf("loading wrote to the cache: the code was compiled again\n%s\n%s", before, after)
	}
	if strings.Contains(before, "tmp-") {
		t.Errorf("something was left behind:\n%s", before)
	}
	if compile.Key(module) == compile.Key(append(module, 0)) {
		t.Error("two modules share a key")
	}
}

// A runtime that did not take the entry has compiled a module without bodies:
// that must not go unnoticed.
func TestLoadedNoticesAnotherModule(t *testing.T) {
	ctx, module := context.Background(), add(t)
	a, err := compile.Run(ctx, module, compile.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"the whole module": module, "another": wasmtest.Program(nil)} {
		config, cache, err := a.Config()
		if err != nil {
			t.Fatal(err)
		}
		rt := wazero.NewRuntimeWithConfig(ctx, config)
		if _, err := rt.CompileModule(ctx, b); err != nil {
			t.Fatal(err)
		}
		if err := a.Loaded(); err == nil {
			t.Errorf("%s: taken for the code of the entry", name)
		}
		rt.Close(ctx)
		cache.Close(ctx)
		if a, err = compile.Run(ctx, module, compile.Options{Cache: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
	}
}

func files(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			info, _ := d.Info()
			list = append(list, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return nil
	})
	return strings.Join(list, "\n")
}

func TestDamagedEntryIsCompiledAgain(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"changed byte": func(p string) error {
			b, err := os.ReadFile(p)
			b[len(b)/2] ^= 1
			return errors.Join(err, os.WriteFile(p, b, 0o600))
		},
		"cut":     func(p string) error { return os.Truncate(p, 10) },
		"missing": os.Remove,
		"link": func(p string) error {
			return errors.Join(os.Rename(p, p+".real"), os.Symlink(p+".real", p))
		},
	} {
		dir, module := t.TempDir(), add(t)
		a, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
		if err != nil {
			t.Fatal(err)
		}
		works(t, a, module)
		code, err := filepath.Glob(filepath.Join(dir, a.Key, "wazero-*", "*"))
		if err != nil || len(code) != 1 {
			t.Fatalf("entry %v, %v", code, err)
		}
		if err := damage(code[0]); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.Config(); err == nil {
			t.Errorf("%s: the damaged entry was loaded", name)
		}
		again, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
		if err != nil || again.Hit {
			t.Fatalf("%s: %+v, %v", name, again, err)
		}
		works(t, again, module)
	}
}

func TestConcurrentProcessesShareTheCache(t *testing.T) {
	dir, module := t.TempDir(), add(t)
	o := compile.Options{Cache: dir}
	count := filepath.Join(t.TempDir(), "count")
	if runtime.GOOS != "windows" {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		o.Self = count + ".sh"
		script := fmt.Sprintf("#!/bin/sh\necho one >> '%s'\nexec '%s' \"$@\"\n", count, self)
		if err := os.WriteFile(o.Self, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			a, err := compile.Run(t.Context(), module, o)
			if err != nil {
				t.Error(err)
				return
			}
			works(t, a, module)
		})
	}
	wg.Wait()
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("%d entries, want 1", len(entries))
	}
	if b, err := os.ReadFile(count); o.Self != "" && (err != nil || string(b) != "one\n") {
		t.Errorf("compiled %d times, want once: %v", strings.Count(string(b), "\n"), err)
	}
}

// WL-05, WL-06: a compilation that takes too long ends at its limit, with the
// limit's name, and the host goes on. WL-12: what is no module is rejected.
func TestWL05ChildEndsAtItsLimit(t *testing.T) {
	heavy := wasmtest.OneFunction(wasmtest.Flat(12_000, 100, 3))
	for _, c := range []struct {
		name   string
		module []byte
		limits compile.Limits
		want   error
		text   string
	}{
		{"wall", heavy, compile.Limits{Wall: 300 * time.Millisecond}, compile.ErrLimit, "it ran for 300ms"},
		{"cpu", heavy, compile.Limits{CPU: time.Second}, compile.ErrLimit, "processor time"},
		{"memory", heavy, compile.Limits{Memory: 700 << 20, CPU: 20 * time.Second}, compile.ErrLimit, ""},
		{"no module", []byte("hello"), compile.Limits{}, compile.ErrRejected, "not a WebAssembly module"},
		{"invalid", wasmtest.OneFunction([]byte{0, 0x6a, 0x0b}), compile.Limits{}, compile.ErrRejected, "i32.add"},
	} {
		dir := t.TempDir()
		_, err := compile.Run(t.Context(), c.module, compile.Options{Cache: dir, Limits: c.limits})
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", c.name, err, c.want, c.text)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("%s: something was left in the cache", c.name)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("interrupted")
	time.AfterFunc(100*time.Millisecond, func() { cancel(stop) })
	if _, err := compile.Run(ctx, heavy, compile.Options{Cache: t.TempDir()}); !errors.Is(err, stop) {
		t.Errorf("cancelled: %v", err)
	}
	module := add(t)
	a, err := compile.Run(t.Context(), module, compile.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	works(t, a, module)
}

// Rows WL-01 to WL-12 through all stages: each module is refused with a typed
// error or compiled within the limits, and afterwards the host still works.
func TestWL01toWL12Loader(t *testing.T) {
	dir := t.TempDir()
	for _, bomb := range wasmtest.Bombs() {
		module, err := metered(t, bomb.Wasm)
		if err != nil {
			if bomb.Edge {
				t.Errorf("%s %s: %v", bomb.Row, bomb.Name, err)
			}
			continue
		}
		t0 := time.Now()
		_, err = compile.Run(t.Context(), module, compile.Options{Cache: dir, Limits: compile.Limits{CPU: 30 * time.Second}})
		if err != nil && !errors.Is(err, compile.ErrLimit) && !errors.Is(err, compile.ErrRejected) {
			t.Errorf("%s %s: %v", bomb.Row, bomb.Name, err)
		}
		t.Logf("%s %s: compiled in %v, %v", bomb.Row, bomb.Name, time.Since(t0).Round(time.Millisecond), err)
	}
	module := add(t)
	a, err := compile.Run(t.Context(), module, compile.Options{Cache: dir})
	if err != nil {
		t.Fatal(err)
	}
	works(t, a, module)
}

func TestMissingProgram(t *testing.T) {
	_, err := compile.Run(t.Context(), add(t), compile.Options{Cache: t.TempDir(), Self: "/does/not/exist"})
	if !errors.Is(err, compile.ErrChild) {
		t.Errorf("%v, want ErrChild", err)
	}
}

func TestChildArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"a"}, {"a", "b", "c", "d"}, {"a", "0", "1", "1"}} {
		var out strings.Builder
		if code := compile.Child(args, strings.NewReader(""), &out); code == 0 || out.Len() == 0 {
			t.Errorf("%q: code %d, %q", args, code, out.String())
		}
	}
}

func TestPrune(t *testing.T) {
	dir := t.TempDir()
	entry := func(name string, size int, age time.Duration) {
		p := filepath.Join(dir, name)
		when := time.Now().Add(-age)
		if err := errors.Join(os.MkdirAll(p, 0o700), os.WriteFile(filepath.Join(p, "x"), make([]byte, size), 0o600), os.Chtimes(p, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	key := func(c string) string { return strings.Repeat(c, 64) }
	entry(key("a"), 100, 40*24*time.Hour)
	entry(key("b"), 100, 3*time.Hour)
	entry(key("c"), 100, 2*time.Hour)
	entry(key("d"), 100, time.Hour)
	entry("tmp-old", 100, 2*time.Hour)
	entry("tmp-new", 100, 0)
	entry("notes", 100, 400*24*time.Hour)
	p, err := compile.Prune(dir, 30*24*time.Hour, 200)
	if err != nil || p.Removed != 2 || p.Kept != 2 || p.KeptBytes != 200 || p.RemovedBytes != 200 {
		t.Errorf("%+v, %v", p, err)
	}
	var left []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name()[:min(7, len(e.Name()))])
	}
	if got := strings.Join(left, " "); got != "ccccccc ddddddd notes tmp-new" {
		t.Errorf("left: %s", got)
	}
	if _, err := compile.Prune(filepath.Join(dir, "absent"), 0, 0); err != nil {
		t.Error(err)
	}
}
