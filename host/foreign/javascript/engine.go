package javascript

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// prelude gives scripts the global elf, fetch, console and what else they meet.
//
//go:embed prelude.js
var prelude string

// Flags of qjs_eval.
const (
	evalGlobal = 0
	evalModule = 1
)

// room is what the heap is grown to before the script is evaluated, in bytes.
// A memory that a call grows cannot be reset in place; and scripts whose
// snapshots have the same size share their machine code.
const room = 3 << 20

// dispatcher is the function that prelude.js leaves on the global object.
const dispatcher = "__elf"

// start brings the engine up and evaluates the script, with nobody's rights.
// Its error is the script's, and no trap of the engine.
func (f *format) start(ctx context.Context, g *sandbox.Guest) error {
	if err := f.boot(ctx, g); err != nil {
		return &sandbox.Ended{Err: err}
	}
	return nil
}

func (f *format) boot(ctx context.Context, g *sandbox.Guest) (err error) {
	defer ended(&err)
	e := engine{ctx, g}
	if g.Has("_initialize") {
		e.do("_initialize")
	}
	if e.do("qjs_init") != 0 {
		return errors.New("the engine does not start")
	}
	e.do("wasm_free", e.do("wasm_malloc", room))
	if err := e.prelude(f); err != nil {
		return fmt.Errorf("elfhost's prelude: %w", err)
	}
	ns, err := e.eval(f.script, "plugin.js", evalModule)
	if err != nil {
		return fmt.Errorf("the script: %w", err)
	}
	if err := settle(ctx, g); err != nil {
		return fmt.Errorf("the script: %w", err)
	}
	switch e.do("qjs_promise_state", ns) {
	case 0:
		return errors.New("the script: its top level awaits something that never comes")
	case 2:
		return fmt.Errorf("the script: %s", e.describe(e.do("qjs_promise_result", ns)))
	}
	e.do("qjs_run_gc")
	return nil
}

// prelude evaluates to a function, which is given the hook into the host and
// the names of what the manifest asks for.
func (e engine) prelude(f *format) error {
	setup, err := e.eval([]byte(prelude), "elf", evalGlobal)
	if err != nil {
		return err
	}
	name, n := e.put([]byte(hook))
	hook := e.do("qjs_new_host_function", uint64(name), uint64(n), 3)
	e.do("wasm_free", uint64(name))
	asked := e.do("qjs_new_array")
	for i, c := range f.asked {
		e.do("qjs_set_prop_uint32", asked, uint64(i), e.str(string(c)))
	}
	_, err = e.call(setup, hook, asked)
	return err
}

// settle runs what promises left to do.
func settle(ctx context.Context, g *sandbox.Guest) error {
	e := engine{ctx, g}
	for e.do("qjs_is_job_pending") != 0 {
		if int32(e.do("qjs_execute_pending_job")) < 0 {
			return e.exception()
		}
	}
	return nil
}

// enter calls the dispatcher. The reply is "" when there is none yet.
func enter(ctx context.Context, g *sandbox.Guest, what, tool, args string) (string, error) {
	e := engine{ctx, g}
	global := e.do("qjs_get_global")
	name, _ := e.put(append([]byte(dispatcher), 0))
	fn := e.do("qjs_get_prop_string", global, uint64(name))
	reply, err := e.call(fn, e.str(what), e.str(tool), e.str(args))
	if err != nil {
		return "", err
	}
	if e.do("qjs_is_string", reply) == 0 {
		return "", nil
	}
	return clean(e.bytes("qjs_get_string_len", reply, g.Limits().Output)), nil
}

// engine is QuickJS in one guest. Values are pointers, which it owns until the
// call is over: then the whole memory is reset, so most are never freed.
//
// What an engine does that traps, or that points outside its memory, ends the
// guest; the methods panic with that, and [sandbox.Format]'s callers recover.
type engine struct {
	ctx context.Context
	g   *sandbox.Guest
}

// do calls an export, and gives its result or 0.
func (e engine) do(export string, params ...uint64) uint64 {
	res, err := e.g.Call(e.ctx, export, params...)
	if err != nil {
		panic(&sandbox.Ended{Err: err})
	}
	if len(res) == 0 {
		return 0
	}
	return uint64(uint32(res[0]))
}

// put copies bytes into memory of the engine.
func (e engine) put(b []byte) (ptr, n uint32) {
	ptr = uint32(e.do("wasm_malloc", uint64(max(len(b), 1))))
	if ptr == 0 {
		panic(&sandbox.Ended{Err: fmt.Errorf("the script's memory is full: %w", abi.ErrLimit)})
	}
	if !e.g.Memory().Write(ptr, b) {
		panic(&sandbox.Ended{Err: errOutside})
	}
	return ptr, uint32(len(b))
}

var errOutside = fmt.Errorf("the engine passed a pointer outside its memory: %w", abi.ErrFault)

// str makes a string of JavaScript.
func (e engine) str(s string) uint64 {
	ptr, n := e.put([]byte(s))
	v := e.do("qjs_new_string", uint64(ptr), uint64(n))
	e.do("wasm_free", uint64(ptr))
	return v
}

// buffer makes an ArrayBuffer.
func (e engine) buffer(b []byte) uint64 {
	ptr, n := e.put(b)
	v := e.do("qjs_new_array_buffer", uint64(ptr), uint64(n))
	e.do("wasm_free", uint64(ptr))
	return v
}

// bytes copies what an export finds for a value: it returns a pointer and
// writes the length to where its second parameter says.
func (e engine) bytes(export string, v uint64, most int64) []byte {
	at, _ := e.put(make([]byte, 4))
	ptr := uint32(e.do(export, v, uint64(at)))
	size, ok := e.g.Memory().Copy(at, 4)
	e.do("wasm_free", uint64(at))
	if !ok {
		panic(&sandbox.Ended{Err: errOutside})
	}
	n := binary.LittleEndian.Uint32(size)
	switch {
	case ptr == 0 || n == 0:
		return nil
	case most > 0 && int64(n) > most:
		panic(&sandbox.Ended{Err: fmt.Errorf("the script passes %d bytes, over the limit of %d: %w", n, most, abi.ErrLimit)})
	}
	b, ok := e.g.Memory().Copy(ptr, n)
	if !ok {
		panic(&sandbox.Ended{Err: errOutside})
	}
	if export == "qjs_get_string_len" {
		e.do("qjs_free_cstring", uint64(ptr))
	}
	return b
}

// eval evaluates a source.
func (e engine) eval(source []byte, name string, flags uint64) (uint64, error) {
	code, n := e.put(append(append(make([]byte, 0, len(source)+1), source...), 0))
	file, _ := e.put(append([]byte(name), 0))
	v := e.do("qjs_eval", uint64(code), uint64(n)-1, uint64(file), flags)
	e.do("wasm_free", uint64(code))
	e.do("wasm_free", uint64(file))
	if e.do("qjs_is_exception", v) != 0 {
		return 0, e.exception()
	}
	return v, nil
}

// call calls a function of JavaScript.
func (e engine) call(fn uint64, args ...uint64) (uint64, error) {
	list := make([]byte, 0, 4*len(args))
	for _, a := range args {
		list = binary.LittleEndian.AppendUint32(list, uint32(a))
	}
	argv, _ := e.put(list)
	v := e.do("qjs_call", fn, e.do("qjs_get_undefined"), uint64(len(args)), uint64(argv))
	if e.do("qjs_is_exception", v) != 0 {
		return 0, e.exception()
	}
	return v, nil
}

// exception is what was thrown.
func (e engine) exception() error { return errors.New(e.describe(e.do("qjs_get_exception"))) }

// maxThrown bounds what is said of a thrown value, in bytes.
const maxThrown = 8 << 10

// describe says what a thrown value is: its message, and where.
func (e engine) describe(v uint64) string {
	text := clean(e.bytes("qjs_get_string_len", v, maxThrown))
	name, _ := e.put([]byte("stack\x00"))
	stack := e.do("qjs_get_prop_string", v, uint64(name))
	if e.do("qjs_is_string", stack) != 0 {
		if s := clean(e.bytes("qjs_get_string_len", stack, maxThrown)); s != "" {
			text += "\n" + s
		}
	}
	if text == "" {
		return "something was thrown that has no text"
	}
	return text
}

// ended turns what [engine] panicked with into an error.
func ended(err *error) {
	switch r := recover().(type) {
	case nil:
	case *sandbox.Ended:
		*err = r.Err
	default:
		panic(r)
	}
}
