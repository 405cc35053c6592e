// Package ironclaw runs tools made for IronClaw: components of the world
// near:agent/sandboxed-tool, versions 0.3 and 0.4.1.
//
// The engine knows core modules only. But such a component holds one core
// module with all of its code, beside small ones that only tie it to its
// imports: so the core module is taken out, its imports are served here in the
// form that the canonical ABI gives them, and its exports are called likewise.
// Of WASI 0.2 it gets what Rust's standard library links: clocks, random
// numbers, standard output and error. Everything else of it ends the call, by
// name, when it is used.
//
// Credentials are never given to a tool: its manifest says where the host puts
// them in, which it does with placeholders of secrets that a person granted.
package ironclaw

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

const (
	toolInterface = "near:agent/tool"
	hostInterface = "near:agent/host"
)

// Tool is a tool taken out of its component.
type Tool struct {
	Core    []byte // the core module
	Version string // of near:agent: "0.4.1"
	report  *vet.Report
}

// typed reports whether results and failures have kinds: since 0.4.1.
func (t *Tool) typed() bool { return !strings.HasPrefix(t.Version, "0.3") }

// Other is the error for a component of another world.
type Other struct{ Imports, Exports []string }

func (e *Other) Error() string {
	what := "exports nothing"
	if len(e.Exports) > 0 {
		what = "exports " + strings.Join(e.Exports[:min(len(e.Exports), 4)], ", ")
	}
	s := "this is a WebAssembly component that " + what + "; elfhost runs core modules, and of components only IronClaw's tools (near:agent/tool 0.3 and 0.4.1)"
	for _, n := range e.Exports {
		switch name, _ := interfaceName(n); name {
		case "wasi:cli/run":
			return s + ". It is a command of WASI 0.2: wasmtime runs it; built for wasm32-wasip1 it runs here"
		case "wasi:http/incoming-handler":
			return s + ". It is an HTTP handler: `wasmtime serve` or Spin run it"
		}
	}
	return s + ". wasmtime can run a component whose world you know"
}

// Open reads a component. The error is an *Other when it is none of IronClaw's.
func Open(wasm []byte) (*Tool, error) {
	c, err := parse(wasm)
	if err != nil {
		return nil, err
	}
	t := &Tool{}
	for _, n := range c.exports {
		if name, version := interfaceName(n); name == toolInterface {
			t.Version = version
		}
	}
	switch {
	case t.Version == "":
		return nil, &Other{c.imports, c.exports}
	case t.Version != "0.4.1" && !strings.HasPrefix(t.Version, "0.3."):
		return nil, fmt.Errorf("the tool is made for near:agent %s, and this host knows 0.3 and 0.4.1", clip(t.Version))
	}
	p := vet.Standard()
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	for _, m := range c.modules {
		r, err := vet.Check(m, p)
		if err != nil {
			continue // the modules that tie things together import tables
		}
		if _, ok := r.Export(t.export("execute")); ok {
			t.Core, t.report = m, r
			return t, nil
		}
	}
	return nil, fmt.Errorf("the component exports %s, but none of its %d core modules that elfhost accepts has the code", toolInterface, len(c.modules))
}

func clip(s string) string { return s[:min(len(s), 40)] }

func (t *Tool) export(name string) string { return toolInterface + "@" + t.Version + "#" + name }

// World says what a component is: "IronClaw tool", or an *Other error.
func World(wasm []byte) (string, error) {
	if _, err := Open(wasm); err != nil {
		return "", err
	}
	return "IronClaw tool", nil
}

// format is what the calls of one plugin share.
type format struct {
	*Tool
	credentials map[string][]Credential // by the tool's name
	ids         map[string]string       // name → id of the capability
}

// New is the format of a tool. m may be nil: then the component is one tool,
// which describes itself.
func New(t *Tool, m *Manifest) (*sandbox.Format, error) {
	f := &format{Tool: t, ids: map[string]string{}, credentials: map[string][]Credential{}}
	if m != nil {
		for _, d := range m.Tools {
			f.ids[d.Name()] = d.ID
			f.credentials[d.Name()] = d.Credentials
		}
	}
	funcs, err := f.functions()
	if err != nil {
		return nil, err
	}
	return &sandbox.Format{
		Name: "ironclaw", Key: t.Version, Funcs: funcs, Check: f.check,
		State: func() any { return new(state) }, Describe: f.describe, Call: f.call,
	}, nil
}

// state belongs to one call.
type state struct{ credentials []Credential }

func (f *format) check(r *vet.Report) error {
	for name, want := range map[string]string{
		f.export("execute"): "(i32 i32 i32 i32 i32) -> (i32)", f.export("schema"): "() -> (i32)",
		f.export("description"): "() -> (i32)", "cabi_realloc": "(i32 i32 i32 i32) -> (i32)",
	} {
		e, ok := r.Export(name)
		if !ok || e.Type.String() != want {
			return fmt.Errorf("the core module has no function %q of type %s", name, want)
		}
	}
	return nil
}

// describe asks a tool without a manifest for what it says of itself.
func (f *format) describe(ctx context.Context, g *sandbox.Guest) ([]abi.ToolDecl, error) {
	text, err := f.text(ctx, g, "description")
	if err != nil {
		return nil, err
	}
	schema, err := f.text(ctx, g, "schema")
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(schema), &object) != nil {
		return nil, errors.New("the tool's schema is no JSON object")
	}
	return []abi.ToolDecl{{Name: "execute", Description: text, Input: json.RawMessage(schema)}}, nil
}

// text calls an export that returns a string.
func (f *format) text(ctx context.Context, g *sandbox.Guest, name string) (string, error) {
	res, err := g.Call(ctx, f.export(name))
	if err != nil {
		return "", err
	}
	return (&view{g: g}).at(uint32(res[0]), 8).str(0)
}

// call runs execute.
func (f *format) call(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
	g.State.(*state).credentials = f.credentials[tool.Name]
	params, err := lower(ctx, g, args)
	if err != nil {
		return abi.Result{}, err
	}
	about := make([]uint64, 3) // no context
	if id := f.ids[tool.Name]; id != "" {
		b, err := json.Marshal(map[string]string{"capability_id": id})
		if err != nil {
			return abi.Result{}, err
		}
		at, err := lower(ctx, g, b)
		if err != nil {
			return abi.Result{}, err
		}
		about = []uint64{1, at[0], at[1]}
	}
	res, err := g.Call(ctx, f.export("execute"), append(params, about...)...)
	if err != nil {
		return abi.Result{}, err
	}
	return f.response(g, uint32(res[0]))
}

// response reads what execute returns.
func (f *format) response(g *sandbox.Guest, ptr uint32) (abi.Result, error) {
	if !f.typed() { // record { output, error: option<string> }
		v := (&view{g: g}).at(ptr, 24)
		if v.u8(12) == 1 {
			return failure(v.str(16))
		}
		return success(v.option(0))
	}
	v := (&view{g: g}).at(ptr, 32)
	if v.u8(0) == 0 {
		return success(v.str(4))
	}
	kind := kinds[min(int(v.u8(4)), len(kinds)-1)]
	code, err := v.option(8)
	if err != nil {
		return abi.Result{}, err
	}
	message, err := v.option(20)
	if err != nil {
		return abi.Result{}, err
	}
	text := kind
	for _, more := range []string{code, message} {
		if more != "" {
			text += ": " + more
		}
	}
	return failure(text, nil)
}

// kinds are the kinds of failure, in the order of their numbers.
var kinds = []string{"auth-required", "input", "output-too-large", "executor", "network-denied", "client", "operation-failed"}

func success(s string, err error) (abi.Result, error) {
	if err != nil {
		return abi.Result{}, err
	}
	r := abi.Text(s)
	if json.Valid([]byte(s)) && strings.HasPrefix(strings.TrimSpace(s), "{") {
		r.Structured = json.RawMessage(s)
	}
	return r, nil
}

func failure(s string, err error) (abi.Result, error) {
	if err != nil {
		return abi.Result{}, err
	}
	return abi.Errorf("%s", s), nil
}

// lower puts bytes where the guest wants them: pointer and length.
func lower(ctx context.Context, g *sandbox.Guest, b []byte) ([]uint64, error) {
	ptr, err := place(ctx, g, uint32(len(b)), 1)
	if err != nil {
		return nil, err
	}
	if !g.Memory().Write(ptr, b) {
		return nil, errors.New("cabi_realloc gave a place outside the memory")
	}
	return []uint64{uint64(ptr), uint64(len(b))}, nil
}

// place asks the guest for memory.
func place(ctx context.Context, g *sandbox.Guest, n, align uint32) (uint32, error) {
	if n == 0 {
		return align, nil
	}
	res, err := g.Call(ctx, "cabi_realloc", 0, 0, uint64(align), uint64(n))
	if err != nil {
		return 0, err
	}
	return uint32(res[0]), nil
}

// view reads a value that the guest returned in memory.
type view struct {
	g *sandbox.Guest
	b []byte // nil: it lies outside the memory
}

var errOutside = errors.New("the tool returned a pointer outside its memory")

func (v *view) at(ptr, n uint32) *view {
	v.b, _ = v.g.Memory().Copy(ptr, n)
	if v.b == nil {
		v.b = make([]byte, n) // reads as nothing; strings fail below
		v.g = nil
	}
	return v
}

func (v *view) u8(off int) byte { return v.b[off] }

// str reads a string whose pointer and length lie at off.
func (v *view) str(off int) (string, error) {
	if v.g == nil {
		return "", errOutside
	}
	ptr, n := binary.LittleEndian.Uint32(v.b[off:]), binary.LittleEndian.Uint32(v.b[off+4:])
	if most := v.g.Limits().Output; most > 0 && int64(n) > most {
		return "", fmt.Errorf("the tool returned %d bytes, over the limit of %d: %w", n, most, abi.ErrLimit)
	}
	b, ok := v.g.Memory().Copy(ptr, n)
	switch {
	case !ok:
		return "", errOutside
	case !utf8.Valid(b):
		return "", errors.New("the tool returned a string that is no UTF-8")
	}
	return string(b), nil
}

// option reads an option<string>, "" for none.
func (v *view) option(off int) (string, error) {
	if v.g == nil {
		return "", errOutside
	}
	if v.u8(off) == 0 {
		return "", nil
	}
	return v.str(off + 4)
}
