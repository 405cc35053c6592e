//go:build wasip1

// Package wire is the little of Extism's ABI that the test guests need.
package wire

import "encoding/json"

//go:wasmimport extism:host/env alloc
func alloc(n uint64) uint64

//go:wasmimport extism:host/env length
func length(off uint64) uint64

//go:wasmimport extism:host/env load_u8
func load(off uint64) uint32

//go:wasmimport extism:host/env store_u8
func store(off uint64, v uint32)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad(off uint64) uint32

//go:wasmimport extism:host/env output_set
func outputSet(off, n uint64)

//go:wasmimport extism:host/env error_set
func errorSet(off uint64)

//go:wasmimport extism:host/env config_get
func configGet(off uint64) uint64

//go:wasmimport extism:host/env http_request
func httpRequest(request, body uint64) uint64

//go:wasmimport extism:host/env http_status_code
func httpStatus() int32

// Put makes a block.
func Put(b []byte) uint64 {
	off := alloc(uint64(len(b)))
	for i, c := range b {
		store(off+uint64(i), uint32(c))
	}
	return off
}

// Take reads a block.
func Take(off uint64) []byte {
	b := make([]byte, length(off))
	for i := range b {
		b[i] = byte(load(off + uint64(i)))
	}
	return b
}

// Input is what the host passed.
func Input() []byte {
	b := make([]byte, inputLength())
	for i := range b {
		b[i] = byte(inputLoad(uint64(i)))
	}
	return b
}

// Answer sets the output.
func Answer(v any) int32 {
	b, err := json.Marshal(v)
	if err != nil {
		return Fail(err.Error())
	}
	outputSet(Put(b), uint64(len(b)))
	return 0
}

// Fail sets the error.
func Fail(text string) int32 {
	errorSet(Put([]byte(text)))
	return 1
}

// Config reads a setting, "" when it is not set.
func Config(name string) string { return string(Take(configGet(Put([]byte(name))))) }

// Get sends a request with a header, and returns the status and the body.
func Get(url, header, value string) (int32, string) {
	b, _ := json.Marshal(map[string]any{"url": url, "headers": map[string]string{header: value, "Content-Length": "7"}})
	body := string(Take(httpRequest(Put(b), 0)))
	return httpStatus(), body
}
