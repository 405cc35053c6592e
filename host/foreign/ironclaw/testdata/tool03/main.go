//go:build wasip1

// Tool03 is the core module of an IronClaw tool of version 0.3.0.
package main

import "unsafe"

func main() {}

//go:wasmimport near:agent/host@0.3.0 http-request
func httpRequest(m unsafe.Pointer, mn uint32, u unsafe.Pointer, un uint32, h unsafe.Pointer, hn uint32,
	bodyTag uint32, b unsafe.Pointer, bn uint32, timeTag, timeout uint32, ret unsafe.Pointer)

var kept [][]byte

//go:wasmexport cabi_realloc
func realloc(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	b := make([]byte, size)
	kept = append(kept, b)
	return unsafe.Pointer(unsafe.SliceData(b))
}

func data(s string) uint32 { return uint32(uintptr(unsafe.Pointer(unsafe.StringData(s)))) }

var words [6]uint32

//go:wasmexport near:agent/tool@0.3.0#description
func description() unsafe.Pointer {
	const s = "An older tool."
	words = [6]uint32{data(s), uint32(len(s))}
	return unsafe.Pointer(&words)
}

//go:wasmexport near:agent/tool@0.3.0#schema
func schema() unsafe.Pointer {
	const s = `{"type":"object"}`
	words = [6]uint32{data(s), uint32(len(s))}
	return unsafe.Pointer(&words)
}

//go:wasmexport near:agent/tool@0.3.0#execute
func execute(params unsafe.Pointer, n uint32, tag uint32, about unsafe.Pointer, an uint32) unsafe.Pointer {
	if n == 2 { // {}
		words = [6]uint32{1, uint32(uintptr(params)), n}
		return unsafe.Pointer(&words)
	}
	const get, url = "GET", "https://api.example.org/"
	var r [6]uint32
	httpRequest(unsafe.Pointer(unsafe.StringData(get)), 3, unsafe.Pointer(unsafe.StringData(url)), uint32(len(url)), nil, 0, 0, nil, 0, 0, 0, unsafe.Pointer(&r))
	words = [6]uint32{0, 0, 0, 1, r[1], r[2]}
	if r[0]&0xff == 0 {
		words = [6]uint32{1, r[4], r[5]}
	}
	return unsafe.Pointer(&words)
}
