package sandbox_test

import (
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/internal/wasmtest"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// curious is a plugin that asks for a variable in a function that is not the
// tool, and says in the tool whether it got it. One that writes to a table has
// no snapshot: it is started anew for each call.
func curious(asks string, writesTable bool) []byte {
	kind := byte(3)
	if asks == abi.ExportReseed {
		kind = 2
	}
	frame := "\x0f\x00\x00\x00" + `{"name":"LANG"}`
	data := frame + strings.Repeat(" ", 48-len(frame)) + "\x00allowed" + strings.Repeat(" ", 8) + "\x00denied"
	ask := wasmtest.Cat(constI32(200), constI32(16), constI32(int32(len(frame))), []byte{0x10, 0, 0x36, 2, 0}) // mem[200] = env.get(16, …)
	if writesTable {
		ask = append(ask, 0x41, 0, 0xd0, 0x70, 0x26, 0)
	}
	answer := wasmtest.Cat(constI32(200), []byte{0x28, 2, 0, 0x41, 0, 0x4e, 0x04, 0x7e}, constI64(64<<32|8), []byte{0x05}, constI64(80<<32|7), []byte{opEnd})
	return wasmtest.Module(
		wasmtest.Section(wasmbin.TypeSection, wasmtest.Vec(fn("\x7f", "\x7f"), fn("\x7f\x7f\x7f\x7f", "\x7e"), fn("\x7f\x7f", ""), fn("", ""), fn("\x7f\x7f", "\x7f"))),
		wasmtest.Section(wasmbin.ImportSection, wasmtest.Vec(importFunc(abi.ModuleEnv, "get", 4))),
		wasmtest.Section(wasmbin.FunctionSection, []byte{3, 0, 1, kind}),
		wasmtest.Section(wasmbin.TableSection, []byte{1, 0x70, 0, 1}),
		wasmtest.Section(wasmbin.MemorySection, []byte{1, 0, 17}),
		wasmtest.Section(wasmbin.ExportSection, wasmtest.Vec(export(abi.ExportAlloc, 0, 1), export(abi.ExportCall, 0, 2), export(asks, 0, 3), export(abi.ExportMemory, 2, 0))),
		wasmtest.Section(wasmbin.CodeSection, wasmtest.Vec(body(constI32(1_000_000)...), body(answer...), body(ask...))),
		wasmtest.Section(wasmbin.DataSection, []byte{1}, wasmtest.Cat([]byte{0}, constI32(16), []byte{opEnd}, wasmtest.Name(data))))
}

// What runs before a call has nobody's rights, whoever's call it is that it
// runs for: nothing that a grant gives can get into what others share.
func TestNoRightsBeforeACall(t *testing.T) {
	for name, wasm := range map[string][]byte{
		"in the snapshot": curious(abi.ExportInitialize, false), "at each start": curious(abi.ExportInitialize, true),
		"after a reset": curious(abi.ExportReseed, false),
	} {
		t.Run(name, func(t *testing.T) {
			l := &sandbox.Loader{Dir: t.TempDir(), Env: func(string) (string, bool) { return "de", true }}
			p := load(t, l, wasm, abi.Manifest{})
			for range 3 {
				r, err := p.Tools()[0].Call(t.Context(), host.Call{Rights: rights(t, "env LANG")})
				if err != nil || r.Text() != "denied" {
					t.Errorf("%q, %v", r.Text(), err)
				}
			}
		})
	}
}
