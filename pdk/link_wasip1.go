//go:build wasip1

package pdk

import (
	"context"
	"unsafe"

	"github.com/elfhost/elfhost/abi"
)

// operation is one host function. Each has a variable of its own, so that the
// linker drops the imports of those that a plugin does not use.
type operation struct {
	name string // for errors: "elf:net.http"
	call func(req unsafe.Pointer, n uint32) int32
}

//go:wasmimport elf:io take
func ioTake(dst unsafe.Pointer, n uint32) int32

//go:wasmimport elf:io error
func ioError() int32

// do sends a request and fetches the reply. In a guest the context is not
// looked at: the host watches the call's deadline and ends the guest.
func (o *operation) do(_ context.Context, header any, body []byte, reply any) ([]byte, error) {
	frame, err := encodeFrame(header, body)
	if err != nil {
		return nil, err
	}
	n := o.call(unsafe.Pointer(unsafe.SliceData(frame)), uint32(len(frame)))
	if n < 0 {
		return nil, &Error{Op: o.name, Code: abi.Code(n), Detail: string(take(ioError()))}
	}
	if n == 0 {
		return nil, nil
	}
	return decodeFrame(take(n), reply)
}

// take copies the pending reply of n bytes out of the host.
func take(n int32) []byte {
	if n <= 0 {
		return nil
	}
	buf := make([]byte, n)
	got := ioTake(unsafe.Pointer(&buf[0]), uint32(n))
	return buf[:max(got, 0)]
}

func localPath(_ context.Context, name string) string { return name }
