package javascript

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
)

// hook is the name of the one function of the host that prelude.js is given:
// hook(operation, header as JSON, body) → [header as JSON, body], or
// [null, code, message].
const hook = "elf"

const envModule = "env"

// functions are what the engine imports beside WASI.
func (f *format) functions() []sandbox.Func {
	i := api.ValueTypeI32
	none := func(context.Context, *sandbox.Guest, []uint64) {}
	zero := func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] = 0 }
	fn := func(name string, params int, result bool, run func(context.Context, *sandbox.Guest, []uint64)) sandbox.Func {
		out := sandbox.Func{Module: envModule, Name: name, Params: slices.Repeat([]api.ValueType{i}, params), Run: run, Local: true}
		if result {
			out.Results = []api.ValueType{i}
		}
		return out
	}
	call := fn("host_call", 5, true, f.serve)
	call.Local = false
	return []sandbox.Func{
		call,
		fn("host_interrupt", 0, true, zero), // the meter stops what runs too long
		fn("host_promise_rejection", 3, false, none),
		fn("host_module_normalize", 2, true, zero), // a script is one file
		fn("host_module_load", 2, true, zero),
		fn("host_get_timezone_offset", 2, true, zero), // UTC
	}
}

// maxBody bounds what one operation takes, in bytes: a frame of elf/1.
const maxBody = 16 << 20

// serve is host_call: the script called the hook.
func (f *format) serve(ctx context.Context, g *sandbox.Guest, s []uint64) {
	e := engine{ctx, g}
	argc, argv := uint32(s[3]), uint32(s[4])
	list, ok := g.Memory().Copy(argv, 4*min(argc, 3))
	if !ok || argc < 3 {
		panic(&sandbox.Ended{Err: errOutside})
	}
	arg := func(i int) uint64 { return uint64(binary.LittleEndian.Uint32(list[4*i:])) }
	op := clean(e.text(arg(0)))
	header := e.text(arg(1))
	var body []byte
	switch {
	case e.do("qjs_is_string", arg(2)) != 0:
		body = []byte(clean(e.text(arg(2))))
	case e.do("qjs_is_array_buffer", arg(2)) != 0:
		body = e.bytes("qjs_get_array_buffer", arg(2), maxBody)
	}
	head, out, err := f.operation(ctx, g, op, header, body)
	reply := e.do("qjs_new_array")
	put := func(i int, v uint64) { e.do("qjs_set_prop_uint32", reply, uint64(i), v) }
	if err != nil {
		put(1, e.str(codeName(err)))
		put(2, e.str(err.Error()))
	} else {
		if len(head) == 0 {
			head = []byte("{}")
		}
		put(0, e.str(string(head)))
		if op == "decode" {
			put(1, e.str(clean(out)))
		} else {
			put(1, e.buffer(out))
		}
	}
	s[0] = reply
}

// text is a string argument. The prelude passes nothing else there: converting
// another value would run code of the script in the middle of a host function.
func (e engine) text(v uint64) []byte {
	if e.do("qjs_is_string", v) == 0 {
		panic(&sandbox.Ended{Err: errors.New("the script called the host's hook with what is no text")})
	}
	return e.bytes("qjs_get_string_len", v, maxBody)
}

// operation does what the hook was asked. Names are those of elf/1 without
// "elf:", and a few of our own.
func (f *format) operation(ctx context.Context, g *sandbox.Guest, op string, header, body []byte) (json.RawMessage, []byte, error) {
	if !json.Valid(header) {
		return nil, nil, fmt.Errorf("the header is no JSON: %w", abi.ErrInvalid)
	}
	switch op {
	case "encode", "decode": // the host has what they take: UTF-8
		return nil, body, nil
	case "random":
		return random(g, header)
	case "files.read", "files.write", "files.list":
		return f.files(ctx, g, op, header, body)
	}
	o, ok := operations[op]
	if !ok {
		return nil, nil, fmt.Errorf("there is no operation %q: %w", op, abi.ErrUnsupported)
	}
	if err := f.asks(o.cap); err != nil {
		return nil, nil, err
	}
	return g.Do(ctx, o.module, o.name, json.RawMessage(header), body)
}

type operation struct {
	module, name string
	cap          abi.Capability // "": none
}

var operations = map[string]operation{
	"log.write": {abi.ModuleLog, "write", ""}, "progress.report": {abi.ModuleProgress, "report", ""},
	"net.http": {abi.ModuleNet, "http", abi.NetHTTP}, "model.generate": {abi.ModuleModel, "generate", abi.Model},
	"kv.get": {abi.ModuleKV, "get", abi.KV}, "kv.set": {abi.ModuleKV, "set", abi.KV},
	"kv.delete": {abi.ModuleKV, "delete", abi.KV}, "kv.list": {abi.ModuleKV, "list", abi.KV},
	"secret.placeholder": {abi.ModuleSecret, "placeholder", abi.Secret},
	"env.get":            {abi.ModuleEnv, "get", abi.Env}, "env.list": {abi.ModuleEnv, "list", abi.Env},
	"exec.run": {abi.ModuleExec, "run", abi.Exec}, "tool.call": {abi.ModuleTool, "call", abi.ToolCall},
}

// asks refuses what the manifest does not ask for: what an import that is
// missing is to a compiled module.
func (f *format) asks(c abi.Capability) error {
	if c == "" || slices.Contains(f.asked, c) {
		return nil
	}
	return fmt.Errorf("elf.toml asks for no %s: add [[needs]] with cap = %q: %w", c, c, abi.ErrDenied)
}

// files reads, writes and lists below the virtual root.
func (f *format) files(ctx context.Context, g *sandbox.Guest, op string, header, body []byte) (json.RawMessage, []byte, error) {
	var h struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(header, &h); err != nil {
		return nil, nil, fmt.Errorf("the header: %w: %w", err, abi.ErrInvalid)
	}
	switch op {
	case "files.write":
		if err := f.asks(abi.FSWrite); err != nil {
			return nil, nil, err
		}
		return nil, nil, g.WriteFile(ctx, h.Path, body)
	case "files.list":
		if err := f.asks(abi.FSRead); err != nil {
			return nil, nil, err
		}
		b, err := g.ReadDir(ctx, h.Path)
		return b, nil, err
	}
	if err := f.asks(abi.FSRead); err != nil {
		return nil, nil, err
	}
	b, err := g.ReadFile(ctx, h.Path, maxBody)
	return nil, b, err
}

// maxRandom bounds one request for random bytes, as crypto.getRandomValues is.
const maxRandom = 65536

func random(g *sandbox.Guest, header []byte) (json.RawMessage, []byte, error) {
	var h struct {
		N int `json:"n"`
	}
	if err := json.Unmarshal(header, &h); err != nil || h.N < 0 || h.N > maxRandom {
		return nil, nil, fmt.Errorf("0 to %d random bytes: %w", maxRandom, abi.ErrInvalid)
	}
	b, err := g.Effect("random", header, func() ([]byte, error) {
		b := make([]byte, h.N)
		rand.Read(b) // does not fail
		return b, nil
	})
	return nil, b, err
}

// codeName is what a script finds in the code of an error.
func codeName(err error) string {
	for _, c := range []struct {
		is   error
		name string
	}{
		{abi.ErrDenied, "denied"}, {fs.ErrPermission, "denied"}, {abi.ErrNotFound, "not found"}, {fs.ErrNotExist, "not found"},
		{abi.ErrInvalid, "invalid"}, {abi.ErrTooLarge, "too large"}, {abi.ErrLimit, "limit"}, {abi.ErrDeadline, "deadline"},
		{abi.ErrUnavailable, "unavailable"}, {abi.ErrUnsupported, "unsupported"}, {abi.ErrReentrant, "reentrant"},
	} {
		if errors.Is(err, c.is) {
			return c.name
		}
	}
	return "internal"
}
