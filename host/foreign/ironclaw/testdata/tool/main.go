//go:build wasip1

// Tool is the core module of an IronClaw tool of version 0.4.1, as a compiler
// of components lowers it.
package main

import (
	"encoding/json"
	"fmt"
	"unsafe"
)

func main() {}

//go:wasmimport near:agent/host@0.4.1 log
func hostLog(level uint32, ptr unsafe.Pointer, n uint32)

//go:wasmimport near:agent/host@0.4.1 now-millis
func nowMillis() uint64

//go:wasmimport near:agent/host@0.4.1 workspace-read
func workspaceRead(ptr unsafe.Pointer, n uint32, ret unsafe.Pointer)

//go:wasmimport near:agent/host@0.4.1 http-request
func httpRequest(m unsafe.Pointer, mn uint32, u unsafe.Pointer, un uint32, h unsafe.Pointer, hn uint32,
	bodyTag uint32, b unsafe.Pointer, bn uint32, timeTag, timeout uint32, ret unsafe.Pointer)

//go:wasmimport near:agent/host@0.4.1 tool-invoke
func toolInvoke(a unsafe.Pointer, an uint32, p unsafe.Pointer, pn uint32, ret unsafe.Pointer)

//go:wasmimport near:agent/host@0.4.1 secret-exists
func secretExists(ptr unsafe.Pointer, n uint32) uint32

//go:wasmimport wasi:random/random@0.2.3 get-random-u64
func random() uint64

//go:wasmimport wasi:cli/environment@0.2.0 get-environment
func environment(ret unsafe.Pointer)

//go:wasmimport wasi:filesystem/types@0.2.0 [method]descriptor.stat
func descriptorStat(fd uint32, ret unsafe.Pointer)

var kept = map[uintptr][]byte{}

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	b := make([]byte, size)
	p := unsafe.Pointer(unsafe.SliceData(b))
	kept[uintptr(p)] = b
	return p
}

func data(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }

func text(ptr, n uint32) string { return unsafe.String((*byte)(unsafe.Pointer(uintptr(ptr))), n) }

// words are a returned record.
var words [9]uint32

func ret(s string) unsafe.Pointer {
	kept[uintptr(data(s))] = []byte(s)
	words = [9]uint32{uint32(uintptr(data(s))), uint32(len(s))}
	last = s
	return unsafe.Pointer(&words)
}

var last string

//go:wasmexport near:agent/tool@0.4.1#description
func description() unsafe.Pointer { return ret("Does what it is told.") }

//go:wasmexport near:agent/tool@0.4.1#schema
func schema() unsafe.Pointer {
	return ret(`{"type":"object","properties":{"do":{"type":"string"},"arg":{"type":"string"}}}`)
}

//go:wasmexport near:agent/tool@0.4.1#execute
func execute(params unsafe.Pointer, n uint32, tag uint32, about unsafe.Pointer, an uint32) unsafe.Pointer {
	var q struct {
		Do  string `json:"do"`
		Arg string `json:"arg"`
	}
	if err := json.Unmarshal([]byte(unsafe.String((*byte)(params), n)), &q); err != nil {
		return fail(1, "bad_json", err.Error())
	}
	var r [9]uint32
	out := unsafe.Pointer(&r)
	switch q.Do {
	case "context":
		if tag == 0 {
			return succeed("none")
		}
		return succeed(unsafe.String((*byte)(about), an))
	case "log":
		hostLog(3, data(q.Arg), uint32(len(q.Arg)))
		return succeed(fmt.Sprint(nowMillis() > 1e12, random() != random()))
	case "env":
		environment(out)
		return succeed(fmt.Sprint(r[1]))
	case "read":
		workspaceRead(data(q.Arg), uint32(len(q.Arg)), out)
		if r[0]&0xff == 0 {
			return succeed("none")
		}
		return succeed(text(r[1], r[2]))
	case "secret":
		return succeed(fmt.Sprint(secretExists(data(q.Arg), uint32(len(q.Arg)))))
	case "invoke":
		const args = `{"a":1}`
		toolInvoke(data(q.Arg), uint32(len(q.Arg)), data(args), uint32(len(args)), out)
		return succeed(fmt.Sprint(r[0]&0xff, " ", text(r[1], r[2])))
	case "fetch":
		const method, headers, body = "post", `{"x-a":"b","Host":"evil.test"}`, "hello"
		httpRequest(data(method), 4, data(q.Arg), uint32(len(q.Arg)), data(headers), uint32(len(headers)), 1, data(body), 5, 0, 0, out)
		if r[0]&0xff == 0 {
			return succeed(fmt.Sprint(r[1]&0xffff, " ", text(r[4], r[5])))
		}
		message := ""
		if r[5]&0xff == 1 {
			message = text(r[6], r[7])
		}
		return fail(r[1]&0xff, "http", fmt.Sprint(message, " sent ", r[8]&0xff))
	case "fail":
		return fail(6, "", "")
	case "files":
		descriptorStat(3, out)
	case "spin":
		for {
		}
	}
	return fail(1, "unknown", q.Do)
}

func succeed(s string) unsafe.Pointer {
	last = s
	words = [9]uint32{0, uint32(uintptr(data(s))), uint32(len(s))}
	return unsafe.Pointer(&words)
}

var lastCode string

func fail(kind uint32, code, message string) unsafe.Pointer {
	last, lastCode = message, code
	words = [9]uint32{1, kind}
	if code != "" {
		words[2], words[3], words[4] = 1, uint32(uintptr(data(code))), uint32(len(code))
	}
	if message != "" {
		words[5], words[6], words[7] = 1, uint32(uintptr(data(message))), uint32(len(message))
	}
	return unsafe.Pointer(&words)
}
