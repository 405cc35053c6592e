package compile_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/meter"
	"github.com/elfhost/elfhost/host/sandbox/vet"
)

const loadVerb = "__load"

// load is a whole host in a process of its own: it takes the module on stdin
// through every stage, runs its start function and its exports within limits,
// and then shows that it still serves another module.
func load(cache string) int {
	wasm, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	fmt.Println("bomb:", serve(wasm, cache))
	good := wasmtest.Program([]wasmtest.Func{{Export: "f", Code: []byte{0x01}}})
	if err := serve(good, cache); err != nil {
		fmt.Println("afterwards:", err)
		return 1
	}
	fmt.Println("alive")
	return 0
}

func serve(wasm []byte, cache string) error {
	r, err := vet.Check(wasm, vet.Standard())
	if err != nil {
		return err
	}
	m, _, err := meter.Rewrite(r.Module, meter.Options{})
	if err != nil {
		return err
	}
	module, ctx := m.Encode(), context.Background()
	a, err := compile.Run(ctx, module, compile.Options{Cache: cache, Limits: compile.Limits{CPU: 10 * time.Second}})
	if err != nil {
		return err
	}
	config, code, err := a.Config()
	if err != nil {
		return err
	}
	defer code.Close(ctx)
	rt := wazero.NewRuntimeWithConfig(ctx, config.WithMemoryLimitPages(1024))
	defer rt.Close(ctx)
	if err := meter.Instantiate(ctx, rt); err != nil {
		return err
	}
	ctx, b := meter.Start(ctx, meter.Limits{Fuel: 1 << 24}) // ends what has no end, on any machine
	mod, err := rt.InstantiateWithConfig(ctx, a.Module, wazero.NewModuleConfig().WithStartFunctions())
	if err == nil {
		err = a.Loaded()
	}
	if err != nil {
		return err
	}
	for name := range mod.ExportedFunctionDefinitions() {
		if err := b.Arm(mod); err != nil {
			return err
		}
		fn := mod.ExportedFunction(name)
		stack := make([]uint64, 1+len(fn.Definition().ParamTypes())+len(fn.Definition().ResultTypes()))
		if err := fn.CallWithStack(ctx, stack); err != nil {
			return err
		}
	}
	return nil
}

func TestWL01VectorCounts(t *testing.T) { loaderRow(t, "WL-01", nil) }
func TestWL02Locals(t *testing.T)       { loaderRow(t, "WL-02", nil) }
func TestWL03NameSection(t *testing.T)  { loaderRow(t, "WL-03", nil) }
func TestWL04Nesting(t *testing.T)      { loaderRow(t, "WL-04", nil) }
func TestWL05BranchTables(t *testing.T) { loaderRow(t, "WL-05", nil) }
func TestWL06BigFunctions(t *testing.T) { loaderRow(t, "WL-06", nil) }

func TestWL07Tables(t *testing.T) {
	loaderRow(t, "WL-07", []wasmtest.Bomb{{Name: "loop of table.grow", Wasm: wasmtest.Program(
		[]wasmtest.Func{{Export: "f", Code: []byte{0x03, 0x40, 0xd0, 0x70, 0x41, 0xe8, 0x07, 0xfc, 15, 0, 0x1a, 0x0c, 0, 0x0b}}},
		wasmtest.Section(4, []byte{1, 0x70, 0, 1}))}})
}

func TestWL08Memories(t *testing.T) {
	loaderRow(t, "WL-08", []wasmtest.Bomb{{Name: "loop of memory.grow", Wasm: wasmtest.Program(
		[]wasmtest.Func{{Export: "f", Code: []byte{0x03, 0x40, 0x41, 1, 0x40, 0, 0x1a, 0x0c, 0, 0x0b}}})}})
}

func TestWL10StartFunctions(t *testing.T) {
	start := func(code ...byte) []byte {
		return wasmtest.Program([]wasmtest.Func{{Code: code}}, wasmtest.Section(8, []byte{0}))
	}
	loaderRow(t, "WL-10", []wasmtest.Bomb{
		{Name: "endless", Wasm: start(0x03, 0x40, 0x0c, 0, 0x0b)},
		{Name: "recursive", Wasm: start(0x10, 0)},
	})
}

func TestWL12Noise(t *testing.T) {
	loaderRow(t, "WL-12", []wasmtest.Bomb{
		{Name: "empty file"},
		{Name: "component", Wasm: []byte("\x00asm\x0d\x00\x01\x00")},
		{Name: "1 MB of noise", Wasm: noise(1 << 20)},
	})
}

// loaderRow loads the bombs of a row, and more, each in a host process of its
// own, which must say what is wrong and still answer another call.
func loaderRow(t *testing.T, row string, more []wasmtest.Bomb) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, bomb := range wasmtest.Bombs() {
		if bomb.Row == row {
			more = append(more, bomb)
		}
	}
	if len(more) == 0 {
		t.Fatalf("no module for %s", row)
	}
	cache := t.TempDir()
	for _, bomb := range more {
		t.Run(bomb.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self, loadVerb, cache)
			cmd.Stdin = bytes.NewReader(bomb.Wasm)
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasSuffix(string(out), "alive\n") {
				t.Fatalf("%v: %.2000s", err, out)
			}
			if refused := !strings.Contains(string(out), "bomb: <nil>"); refused == bomb.Edge {
				t.Errorf("refused %v: %.300s", refused, out)
			}
		})
	}
}

// noise is the same on every run.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}
