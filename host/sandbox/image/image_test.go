package image_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/host/sandbox/image"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

func check(t testing.TB, wasm []byte) *vet.Report {
	t.Helper()
	p := vet.Standard()
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	r, err := vet.Check(wasm, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func config(random io.Reader, start ...string) wazero.ModuleConfig {
	return wazero.NewModuleConfig().WithName("").WithStartFunctions(start...).WithRandSource(random)
}

func newRuntime(t testing.TB, rc wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, rc)
	t.Cleanup(func() { rt.Close(ctx) })
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	if err := meter.Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	return rt
}

// prepare is what installation does. It runs in the interpreter, as there.
func prepare(t testing.TB, wasm []byte, warm func(api.Module)) *image.Image {
	t.Helper()
	r := check(t, wasm)
	if err := image.Suitable(r); err != nil {
		t.Fatal(err)
	}
	m, _, err := meter.Rewrite(r.Module, meter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rt := newRuntime(t, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(1024))
	ctx, _ := meter.Start(context.Background(), meter.Limits{})
	random := image.NewRandom()
	mod, err := rt.InstantiateWithConfig(ctx, m.Encode(), config(random, "_initialize"))
	if err != nil {
		t.Fatal(err)
	}
	spans := random.FindGo(mod.Memory())
	if warm != nil {
		warm(mod)
	}
	img, err := image.Snapshot(m, mod, spans)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// maker gives instances of an image.
func maker(t testing.TB, img *image.Image) func() *image.Instance {
	t.Helper()
	ctx := context.Background()
	rt := newRuntime(t, wasmtest.Runtime(t))
	code, err := rt.CompileModule(ctx, img.Module)
	if err != nil {
		t.Fatal(err)
	}
	base, err := image.NewBase(img)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { base.Close() })
	return func() *image.Instance {
		in, err := base.New(ctx, func(ctx context.Context) (api.Module, error) {
			return rt.InstantiateModule(ctx, code, config(rand.Reader))
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(ctx) })
		return in
	}
}

func call(t testing.TB, mod api.Module, fn string, arg uint64) uint64 {
	t.Helper()
	ctx, b := meter.Start(context.Background(), meter.Limits{Deadline: time.Now().Add(time.Minute)})
	if err := b.Arm(mod); err != nil {
		t.Fatal(err)
	}
	st := [1]uint64{arg}
	if err := mod.ExportedFunction(fn).CallWithStack(ctx, st[:]); err != nil {
		t.Fatalf("%s(%d): %v", fn, arg, err)
	}
	return st[0]
}

// ABI-10: a guest that keeps what it is told, in memory, globals and its heap,
// finds nothing of it in the next call, in the same instance or in another.
func TestABI10NothingIsLeftBehind(t *testing.T) {
	for name, wasm := range map[string][]byte{"c": wasmtest.C(t), "go": wasmtest.Go(t)} {
		make := maker(t, prepare(t, wasm, nil))
		in := make()
		clean := call(t, in.Module, "keep", 4711)
		if again := call(t, in.Module, "keep", 4712); again == clean {
			t.Fatalf("%s: the guest keeps nothing even without a reset: the test is blind", name)
		}
		for range 3 {
			if err := in.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			view, _ := in.Module.Memory().Read(0, in.Module.Memory().Size())
			if bytes.Contains(view, []byte("secret 4711")) || bytes.Contains(view, []byte("secret 4712")) {
				t.Errorf("%s: the secret is in the memory after a reset", name)
			}
			if got := call(t, in.Module, "keep", 4711); got != clean {
				t.Errorf("%s: keep gives %d after a reset, %d in a clean instance", name, got, clean)
			}
		}
		if got := call(t, make().Module, "keep", 1); got != clean {
			t.Errorf("%s: another instance sees %d, want %d", name, got, clean)
		}
	}
}

// The image gives the same results as the module it was made of, and in a
// fresh instance the same fuel.
func TestImageKeepsTheMeaning(t *testing.T) {
	for name, wasm := range map[string][]byte{"c": wasmtest.C(t), "go": wasmtest.Go(t)} {
		in := maker(t, prepare(t, wasm, func(m api.Module) { call(t, m, "sha", 3) }))()
		rt := newRuntime(t, wasmtest.Runtime(t))
		plain, err := rt.InstantiateWithConfig(t.Context(), wasm, config(rand.Reader, "_initialize"))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			fn  string
			arg uint64
		}{{"sha", 10}, {"tight", 100}, {"fib", 12}, {"makejson", 2000}, {"jsonk", 2}, {"rec", 200}} {
			st := [1]uint64{c.arg}
			if err := plain.ExportedFunction(c.fn).CallWithStack(t.Context(), st[:]); err != nil {
				t.Fatal(err)
			}
			if got := call(t, in.Module, c.fn, c.arg); got != st[0] && c.fn != "makejson" {
				t.Errorf("%s %s: %d, want %d", name, c.fn, got, st[0])
			}
		}
	}
}

func TestRandomnessDiffers(t *testing.T) {
	c, g := prepare(t, wasmtest.C(t), nil), prepare(t, wasmtest.Go(t), nil)
	if len(g.Reseed) != 1 || len(c.Reseed) != 0 {
		t.Fatalf("standard Go's generator: %v; in C: %v", g.Reseed, c.Reseed)
	}
	for _, k := range []struct {
		name string
		img  *image.Image
		fn   string
	}{{"elf_reseed", c, "rnd"}, {"math/rand", g, "rnd"}, {"crypto/rand", g, "crnd"}} {
		make := maker(t, k.img)
		seen := map[uint64]string{}
		note := func(where string, v uint64) {
			if before, ok := seen[v]; ok {
				t.Errorf("%s: %s gives the number of %s", k.name, where, before)
			}
			seen[v] = where
		}
		for i := range 3 {
			in := make()
			note(fmt.Sprint("instance ", i), call(t, in.Module, k.fn, 0))
			for j := range 3 {
				if err := in.Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
				note(fmt.Sprint("instance ", i, " reset ", j), call(t, in.Module, k.fn, 0))
			}
		}
	}
	// Without fresh bytes the numbers repeat: that is what the spans are for.
	g.Reseed = nil
	make := maker(t, g)
	one, other := call(t, make().Module, "rnd", 0), call(t, make().Module, "rnd", 0)
	if one != other {
		t.Error("the generator differs although nothing was reseeded: the test is blind")
	}
}

// The generator keeps working after its state was overwritten, past the point
// where it takes a new key.
func TestReseededGeneratorWorks(t *testing.T) {
	in := maker(t, prepare(t, wasmtest.Go(t), nil))()
	seen := map[uint64]int{}
	for range 1000 {
		seen[call(t, in.Module, "rnd", 0)]++
	}
	if len(seen) < 990 {
		t.Errorf("%d different numbers of 1,000", len(seen))
	}
	call(t, in.Module, "chans", 50)
	call(t, in.Module, "maporder", 0)
}

func TestGrownMemoryIsRefused(t *testing.T) {
	in := maker(t, prepare(t, wasmtest.C(t), nil))()
	if err := in.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	call(t, in.Module, "grow", 2)
	if err := in.Reset(t.Context()); !errors.Is(err, image.ErrGrown) {
		t.Errorf("%v, want ErrGrown", err)
	}
}

func TestTouchedPages(t *testing.T) {
	in := maker(t, prepare(t, wasmtest.C(t), nil))()
	before, err := in.Touched()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this platform does not count pages")
	}
	call(t, in.Module, "keep", 9) // two variables
	last := in.Module.Memory().Size() - 16<<12
	for i := range uint32(16) {
		in.Module.Memory().WriteByte(last+i<<12, 1)
	}
	after, err := in.Touched()
	if err != nil || after < before+12 || after > before+18 {
		t.Errorf("%d pages, then %d, %v", before, after, err)
	}
	for i := range uint32(16) {
		in.Module.Memory().WriteByte(last+i<<12, 0)
	}
	if same, err := in.Touched(); err != nil || same > before+2 {
		t.Errorf("%d pages, %d after what was there was written again, %v", after, same, err)
	}
	if err := in.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := in.Touched(); err != nil || again > before+1 {
		t.Errorf("%d pages after a reset, %d before, %v", again, before, err)
	}
}

func TestGlobalsOfEveryType(t *testing.T) {
	globals := wasmtest.Section(wasmbin.GlobalSection, wasmtest.Vec(
		[]byte{0x7f, 1, 0x41, 1, 0x0b}, []byte{0x7e, 1, 0x42, 2, 0x0b},
		[]byte{0x7d, 1, 0x43, 0, 0, 0x80, 0x3f, 0x0b}, []byte{0x7c, 1, 0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x0b},
		[]byte{0x7f, 0, 0x41, 9, 0x0b}))
	change := []byte{0x41, 0x7f, 0x24, 0, 0x42, 0x7e, 0x24, 1, 0x43, 1, 2, 3, 4, 0x24, 2, 0x44, 1, 2, 3, 4, 5, 6, 7, 8, 0x24, 3}
	sum := []byte{0x23, 0, 0xac, 0x23, 1, 0x7c, 0x23, 2, 0xbc, 0xad, 0x7c, 0x23, 3, 0xbd, 0x7c}
	wasm := wasmtest.Program([]wasmtest.Func{
		{Export: "change", Code: change}, {Export: "sum", Results: []byte{0x7e}, Code: sum},
	}, globals)
	img := prepare(t, wasm, func(m api.Module) { call(t, m, "change", 0) })
	in := maker(t, img)()
	changed := call(t, in.Module, "sum", 0)
	if len(img.State) != 4 {
		t.Fatalf("state %v", img.State)
	}
	want := ^uint64(0) // -1, -2 and the bits of the two floats
	want += 0xfffffffffffffffe
	want += 0x04030201
	want += 0x0807060504030201
	if changed != want {
		t.Errorf("the image begins with %#x, want %#x", changed, want)
	}
	in.Module.ExportedGlobal(img.State[1].Export).(api.MutableGlobal).Set(77)
	if err := in.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := call(t, in.Module, "sum", 0); got != want {
		t.Errorf("after a reset %#x, want %#x", got, want)
	}
}

func TestUnsuitable(t *testing.T) {
	table := wasmtest.Section(wasmbin.TableSection, []byte{1, 0x70, 0, 1})
	for want, wasm := range map[string][]byte{
		"table":     wasmtest.Program([]wasmtest.Func{{Code: []byte{0x41, 0, 0xd0, 0x70, 0x26, 0}}}, table),
		"reference": wasmtest.Program([]wasmtest.Func{{}}, wasmtest.Section(wasmbin.GlobalSection, []byte{1, 0x70, 1, 0xd0, 0x70, 0x0b})),
		"":          wasmtest.Program([]wasmtest.Func{{}}, table),
	} {
		err := image.Suitable(check(t, wasm))
		if want == "" && err != nil || want != "" && (!errors.Is(err, image.ErrUnsuitable) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestSnapshotWantsAMeteredModule(t *testing.T) {
	r := check(t, wasmtest.C(t))
	rt := newRuntime(t, wazero.NewRuntimeConfigInterpreter())
	mod, err := rt.InstantiateWithConfig(t.Context(), wasmtest.C(t), config(rand.Reader))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := image.Snapshot(r.Module, mod, nil); err == nil {
		t.Error("a module without a meter was accepted")
	}
}

func TestEncode(t *testing.T) {
	img := prepare(t, wasmtest.C(t), nil)
	img.Reseed = []image.Span{{Offset: 1, Len: 2}, {Offset: 3, Len: 4}}
	b := img.Encode()
	back, err := image.Decode(b, img.Memory.Size)
	if err != nil || !reflect.DeepEqual(back, img) {
		t.Fatalf("the image reads back differently (%v)", err)
	}
	if len(b) > len(img.Module)+img.Memory.Size/4 {
		t.Errorf("%d bytes for a module of %d and %d of memory", len(b), len(img.Module), img.Memory.Size)
	}
	if _, err := image.Decode(b, img.Memory.Size-1); !errors.Is(err, image.ErrDamaged) {
		t.Errorf("a memory over the bound: %v", err)
	}
	for _, at := range []int{0, 20, len(b) / 2, len(b) - 1} {
		bad := bytes.Clone(b)
		bad[at] ^= 1
		if _, err := image.Decode(bad, 1<<30); !errors.Is(err, image.ErrDamaged) {
			t.Errorf("a changed byte at %d: %v", at, err)
		}
	}
	if _, err := image.Decode(b[:len(b)/2], 1<<30); !errors.Is(err, image.ErrDamaged) {
		t.Errorf("half a file: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	whole := (&image.Image{Module: []byte{1}, Memory: image.Memory{Size: 9000, Runs: []image.Run{{At: 4096, Bytes: []byte("some")}}}, State: []image.Var{{Export: "a", Value: 1}}}).Encode()
	f.Add(whole[16 : len(whole)-32])
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum would stop nearly everything: put the right one.
		img := image.Resum(b)
		got, err := image.Decode(img, 1<<20)
		if err != nil && !errors.Is(err, image.ErrDamaged) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		if got.Memory.Size > 1<<20 {
			t.Fatal("memory over the bound")
		}
		end := 0
		for _, r := range got.Memory.Runs {
			if r.At < end || r.At > got.Memory.Size || len(r.Bytes) > got.Memory.Size-r.At {
				t.Fatalf("a run of %d bytes at %d in a memory of %d, after %d", len(r.Bytes), r.At, got.Memory.Size, end)
			}
			end = r.At + len(r.Bytes)
		}
	})
}

// BenchmarkInstances prints what an instance costs.
func BenchmarkInstances(b *testing.B) {
	for name, wasm := range map[string][]byte{"c": wasmtest.C(b), "go": wasmtest.Go(b)} {
		make := maker(b, prepare(b, wasm, func(m api.Module) { call(b, m, "keep", 1) }))
		in := make()
		t0 := time.Now()
		const resets = 200
		for range resets {
			call(b, in.Module, "keep", 1)
			if err := in.Reset(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		fmt.Printf("%s: call and reset %v\n", name, time.Since(t0)/resets)
		t0 = time.Now()
		for range 50 {
			call(b, make().Module, "keep", 1)
		}
		fmt.Printf("%s: fresh instance and call %v\n", name, time.Since(t0)/50)
		runtime.GC()
		before := rss(b)
		for range 200 {
			make()
		}
		runtime.GC()
		fmt.Printf("figure\tMiB per further idle instance, %s\t%.3f\t0.12\t-\n", name, float64(rss(b)-before)/200/(1<<20))
	}
}

func rss(b *testing.B) int {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("no /proc here")
	}
	var total, resident int
	fmt.Sscan(string(data), &total, &resident)
	return resident * os.Getpagesize()
}
