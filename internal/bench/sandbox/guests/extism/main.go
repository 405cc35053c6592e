//go:build wasip1

// Command extism is the same guest in Extism's ABI, without its kit.
package main

import (
	"encoding/binary"
	"encoding/json"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u64
func inputLoad64(off uint64) uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad8(off uint64) uint32

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env store_u64
func store64(off, v uint64)

//go:wasmimport extism:host/env store_u8
func store8(off uint64, v uint32)

//go:wasmimport extism:host/env output_set
func outputSet(off, n uint64)

func input() []byte {
	n := inputLength()
	b := make([]byte, n+8)
	i := uint64(0)
	for ; i+8 <= n; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], inputLoad64(i))
	}
	for ; i < n; i++ {
		b[i] = byte(inputLoad8(i))
	}
	return b[:n]
}

func output(b []byte) {
	n := uint64(len(b))
	at := alloc(n)
	i := uint64(0)
	for ; i+8 <= n; i += 8 {
		store64(at+i, binary.LittleEndian.Uint64(b[i:]))
	}
	for ; i < n; i++ {
		store8(at+i, uint32(b[i]))
	}
	outputSet(at, n)
}

//go:wasmexport echo
func echo() int32 {
	var in struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(input(), &in) != nil {
		return 1
	}
	output([]byte(in.Text))
	return 0
}

//go:wasmexport copy
func pass() int32 {
	output(input())
	return 0
}

func main() {}
