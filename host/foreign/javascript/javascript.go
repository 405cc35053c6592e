// Package javascript runs plugins that are written in JavaScript, on QuickJS.
//
// Such a plugin is the engine, a core module that every one of them shares,
// with the script in a custom section behind it: one file, whose digest covers
// both. The script is evaluated once, when the plugin is installed, without
// anybody's rights; the engine's memory is kept then, and a call enters the
// handler that the script left there. Machine code is made of the engine alone,
// so that the second script on a machine is compiled no more.
//
// The engine is that of npm's quickjs-wasi, QuickJS-NG behind functions that
// pass values by pointer. It reaches nothing by itself: what a script may do is
// in prelude.js, over the operations of elf/1, and an operation whose
// capability the manifest does not ask for is not there.
package javascript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Section is the custom section that holds the script, UTF-8.
const Section = "elf:javascript"

// MaxScript bounds a script, in bytes.
const MaxScript = 4 << 20

// Pack puts a script behind the engine.
func Pack(engine, script []byte) ([]byte, error) {
	switch {
	case len(script) > MaxScript:
		return nil, fmt.Errorf("the script has %d bytes; the limit is %d", len(script), MaxScript)
	case !utf8.Valid(script):
		return nil, errors.New("the script is not UTF-8")
	case bytes.IndexByte(script, 0) >= 0:
		return nil, errors.New("the script contains a NUL byte")
	}
	if _, ok, err := Script(engine); err != nil || ok {
		return nil, errors.Join(err, errors.New("the engine is none, or holds a script already"))
	}
	body := append(binary.AppendUvarint(nil, uint64(len(Section))), Section...)
	body = append(body, script...)
	out := append(bytes.Clone(engine), byte(wasmbin.Custom))
	return append(binary.AppendUvarint(out, uint64(len(body))), body...), nil
}

// Script finds the script in a module; ok is false when it holds none.
func Script(wasm []byte) (script []byte, ok bool, err error) {
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, false, err
	}
	for s := range m.Customs() {
		switch {
		case s.Name != Section:
		case ok:
			return nil, false, errors.New("the module holds two scripts")
		default:
			script, ok = s.Data, true
		}
	}
	return script, ok, nil
}

// Detect reports whether a module holds a script on a QuickJS.
func Detect(wasm []byte) bool {
	_, ok, err := Script(wasm)
	return ok && err == nil
}

// format is what the calls of one plugin share.
type format struct {
	script []byte
	asked  []abi.Capability
}

// New is the format of the plugin in wasm, with a manifest's needs.
func New(wasm []byte, needs []abi.Need) (*sandbox.Format, error) {
	script, ok, err := Script(wasm)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("the module has no section %q", Section)
	}
	f := &format{script: script}
	for _, n := range needs {
		if !slices.Contains(f.asked, n.Cap) {
			f.asked = append(f.asked, n.Cap)
		}
	}
	slices.Sort(f.asked)
	return &sandbox.Format{
		Name: "javascript", Key: f.key(), Funcs: f.functions(), Caps: f.asked,
		Check: check, Init: f.start, Describe: describe, Call: call,
	}, nil
}

// key covers what decides about the snapshot: the script, our prelude, and
// which operations it finds.
func (f *format) key() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %q\n", len(f.script), f.asked)
	h.Write(f.script)
	h.Write([]byte(prelude))
	return hex.EncodeToString(h.Sum(nil))
}

// signatures are the exports that this package calls.
var signatures = map[string]string{
	"_initialize": "() -> ()", "qjs_init": "() -> (i32)", "qjs_eval": "(i32 i32 i32 i32) -> (i32)",
	"wasm_malloc": "(i32) -> (i32)", "wasm_free": "(i32) -> ()", "qjs_free_value": "(i32) -> ()",
	"qjs_new_string": "(i32 i32) -> (i32)", "qjs_get_string_len": "(i32 i32) -> (i32)", "qjs_free_cstring": "(i32) -> ()",
	"qjs_new_array_buffer": "(i32 i32) -> (i32)", "qjs_get_array_buffer": "(i32 i32) -> (i32)",
	"qjs_new_array": "() -> (i32)", "qjs_set_prop_uint32": "(i32 i32 i32) -> (i32)", "qjs_get_undefined": "() -> (i32)",
	"qjs_get_global": "() -> (i32)", "qjs_get_prop_string": "(i32 i32) -> (i32)", "qjs_new_host_function": "(i32 i32 i32) -> (i32)",
	"qjs_call": "(i32 i32 i32 i32) -> (i32)", "qjs_is_exception": "(i32) -> (i32)", "qjs_get_exception": "() -> (i32)",
	"qjs_is_string": "(i32) -> (i32)", "qjs_is_array_buffer": "(i32) -> (i32)", "qjs_is_promise": "(i32) -> (i32)",
	"qjs_promise_state": "(i32) -> (i32)", "qjs_promise_result": "(i32) -> (i32)",
	"qjs_is_job_pending": "() -> (i32)", "qjs_execute_pending_job": "() -> (i32)", "qjs_run_gc": "() -> ()",
}

func check(r *vet.Report) error {
	for name, want := range signatures {
		if e, ok := r.Export(name); !ok || e.Type.String() != want {
			return fmt.Errorf("the engine has no function %q of type %s: a script runs on the quickjs.wasm of npm's quickjs-wasi", name, want)
		}
	}
	return nil
}

// describe lists the tools that the script declared.
func describe(ctx context.Context, g *sandbox.Guest) (tools []abi.ToolDecl, err error) {
	defer ended(&err)
	reply, err := enter(ctx, g, "describe", "", "")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(reply), &tools); err != nil {
		return nil, fmt.Errorf("the script's declarations: %w", err)
	}
	if len(tools) == 0 {
		return nil, errors.New("the script declares no tool: call elf.tool({name, description, input}, handler)")
	}
	return tools, nil
}

// The kinds of an answer are those of elf/1, as characters.
const (
	textReply    = '0'
	errorReply   = '1'
	contentReply = '2'
)

func call(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (r abi.Result, err error) {
	defer ended(&err)
	reply, err := enter(ctx, g, "call", tool.Name, string(args))
	if err != nil {
		return abi.Result{}, err
	}
	if reply == "" { // the handler awaits something
		if err := settle(ctx, g); err != nil {
			return abi.Result{}, err
		}
		if reply, err = enter(ctx, g, "settled", "", ""); err != nil {
			return abi.Result{}, err
		}
	}
	if reply == "" {
		return abi.Errorf("The tool %s waits for something that never comes: its promise does not settle.", tool.Name), nil
	}
	switch text := reply[1:]; reply[0] {
	case textReply:
		return abi.Text(text), nil
	case errorReply:
		return abi.Errorf("%s", text), nil
	case contentReply:
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			return r, fmt.Errorf("the result of the script is not that of a tool: %w", err)
		}
		if len(r.Content) == 0 && r.Structured == nil {
			return r, errors.New("the result of the script has neither content nor structured content")
		}
		return r, nil
	}
	return abi.Result{}, errors.New("the script replaced elfhost's own functions")
}

// clean is a text of the script as others may have it: JavaScript's strings
// may hold halves of characters.
func clean(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
