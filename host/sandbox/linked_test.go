package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
)

// counter is a module that counts its calls in its memory, traps, or spins.
func counter() []byte {
	count := []byte{0x41, 0, 0x41, 0, 0x28, 2, 0, 0x41, 1, 0x6a, 0x36, 2, 0, 0x41, 0, 0x28, 2, 0} // mem[0]++; mem[0]
	return wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(fn("", "\x7f"), fn("", ""))),
		wasmtest.Section(3, []byte{3, 0, 1, 1}),
		wasmtest.Section(5, []byte{1, 0, 1}),
		wasmtest.Section(7, wasmtest.Vec(export("count", 0, 0), export("trap", 0, 1), export("spin", 0, 2), export("memory", 2, 0))),
		wasmtest.Section(10, wasmtest.Vec(body(count...), body(0x00), body(0x03, 0x40, 0x0c, 0, 0x0b))))
}

// user is a module whose exports call those of counter; twice counts twice.
func user() []byte {
	imported := func(name string, kind byte) []byte {
		return wasmtest.Cat(wasmtest.Name("lib"), wasmtest.Name(name), []byte{0, kind})
	}
	return wasmtest.Module(
		wasmtest.Section(1, wasmtest.Vec(fn("", "\x7f"), fn("", ""))),
		wasmtest.Section(2, wasmtest.Vec(imported("count", 0), imported("trap", 1), imported("spin", 1))),
		wasmtest.Section(3, []byte{3, 0, 0, 0}),
		wasmtest.Section(5, []byte{1, 0, 1}),
		wasmtest.Section(7, wasmtest.Vec(export("twice", 0, 3), export("trap", 0, 4), export("spin", 0, 5), export("memory", 2, 0))),
		wasmtest.Section(10, wasmtest.Vec(
			body(0x10, 0, 0x1a, 0x10, 0),
			body(0x10, 0, 0x1a, 0x10, 1, 0x41, 0),
			body(0x10, 2, 0x41, 0))))
}

// mappings counts the memories of instances, where the system tells.
func mappings(t *testing.T) int {
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return strings.Count(string(b), "elf-image")
}

// TestLinked: a linked module is one instance in a call and a fresh one in the
// next, under the call's deadline; a trap of it ends the call, and no other.
func TestLinked(t *testing.T) {
	var funcs []sandbox.Func
	for name, results := range map[string][]api.ValueType{"count": {api.ValueTypeI32}, "trap": nil, "spin": nil} {
		funcs = append(funcs, sandbox.Func{Module: "lib", Name: name, Results: results, Local: true,
			Run: func(ctx context.Context, g *sandbox.Guest, stack []uint64) {
				res, err := g.Linked(ctx, "lib", name)
				if err != nil {
					panic(&sandbox.Ended{Err: err})
				}
				copy(stack, res)
			}})
	}
	lib := pkgOf(counter(), abi.Manifest{Name: "lib"})
	lib.Format = &sandbox.Format{Name: "test"}
	pkg := pkgOf(user(), abi.Manifest{Name: "user", Limits: abi.Limits{Time: time.Hour, Parallel: 2}})
	for _, tool := range []string{"twice", "trap", "spin"} {
		pkg.Manifest.Tools = append(pkg.Manifest.Tools, abi.ToolDecl{Name: tool, Input: []byte(`{}`)})
	}
	pkg.Format = &sandbox.Format{Name: "test", Funcs: funcs, Links: []sandbox.Link{{Name: "lib", Package: lib}},
		Call: func(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, _ json.RawMessage) (abi.Result, error) {
			res, err := g.Call(ctx, tool.Name)
			if err != nil {
				return abi.Result{}, err
			}
			return abi.Text(fmt.Sprint(res[0])), nil
		}}
	p, err := (&sandbox.Loader{Compiler: self(t)}).Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(t.Context())
	call := func(ctx context.Context, tool int) (abi.Result, error) {
		return p.Tools()[tool].Call(ctx, host.Call{ID: "1"})
	}
	for i := range 4 {
		if r, err := call(t.Context(), 0); err != nil || r.Text() != "2" {
			t.Errorf("call %d: %+v, %v", i, r, err)
		}
		var trap *sandbox.TrapError
		if _, err := call(t.Context(), 1); !errors.As(err, &trap) {
			t.Errorf("a trap of the linked module: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		if _, err := call(ctx, 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an endless loop of the linked module: %v", err)
		}
		cancel()
	}
	before := mappings(t)
	for range 20 {
		call(t.Context(), 0)
	}
	if n := mappings(t); n > before+4 {
		t.Errorf("%d memories after 20 calls, %d before: instances are not given back", n, before)
	}
	pkg.Manifest.Limits.Time = 300 * time.Millisecond
	short, err := (&sandbox.Loader{Compiler: self(t)}).Load(t.Context(), pkg)
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close(t.Context())
	var limit *sandbox.LimitError
	if _, err := short.Tools()[2].Call(t.Context(), host.Call{ID: "1"}); !errors.As(err, &limit) {
		t.Errorf("an endless loop of the linked module: %v", err)
	}
	var rec sandbox.Recording
	if _, err := call(sandbox.Record(t.Context(), &rec), 0); err == nil || !strings.Contains(err.Error(), "neither recorded") {
		t.Errorf("recorded: %v", err)
	}
}
