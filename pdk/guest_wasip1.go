//go:build wasip1

package pdk

import (
	"context"
	"encoding/json"
	"reflect"
	"runtime"
	"unicode/utf8"
	"unsafe"

	"github.com/elfhost/elfhost/abi"
)

// Main is the body of a plugin's main function. In a guest there is nothing to
// do: the host calls the exports. Natively it describes the tools or calls one.
func Main() {}

// guest keeps memory that the host holds a pointer to from being collected.
var guest struct {
	places []([]byte) // given by elf_alloc, until the call that uses them returns
	reply  []byte     // until the next export is entered

	pointers []*byte // of prime
}

//go:wasmexport elf_alloc
func elfAlloc(size uint32) unsafe.Pointer {
	if size > 1<<30 {
		return nil
	}
	place := make([]byte, max(size, 1))
	guest.places = append(guest.places, place) // room for some is kept from call to call
	return unsafe.Pointer(&place[0])
}

//go:wasmexport elf_call
func elfCall(tool unsafe.Pointer, toolLen uint32, args unsafe.Pointer, argsLen uint32) uint64 {
	name := unsafe.String((*byte)(tool), toolLen)
	input := unsafe.Slice((*byte)(args), argsLen)
	clear(guest.places) // they are the tool's now
	guest.places = guest.places[:0]
	return reply(frameResult(Call(context.Background(), name, input)))
}

//go:wasmexport elf_describe
func elfDescribe() uint64 {
	for _, t := range plugin.tools {
		t.warm()
	}
	data, err := json.Marshal(describe())
	if err != nil {
		return reply(abi.ReplyError, []byte(err.Error()))
	}
	// The snapshot is taken now. A collection that were under way, or near, would
	// be gone through again by every call.
	runtime.GC()
	prime()
	return reply(abi.ReplyText, data)
}

// prime fills the allocator's caches of small objects, which a collection
// empties: else every call would fill those that it needs.
func prime() {
	for n := 8; n <= 512; n += 8 {
		guest.reply = make([]byte, n)
		guest.pointers = make([]*byte, n/int(unsafe.Sizeof(uintptr(0))))
	}
	guest.places, guest.pointers = make([][]byte, 0, 4), nil
}

// frameResult chooses the shortest form of a Result: text needs no JSON.
func frameResult(r abi.Result) (abi.ReplyKind, []byte) {
	if len(r.Content) == 1 && r.Structured == nil {
		if c := r.Content[0]; c.Type == abi.TypeText && c.Annotations == nil && utf8.ValidString(c.Text) {
			text := unsafe.Slice(unsafe.StringData(c.Text), len(c.Text)) // reply copies it
			if r.IsError {
				return abi.ReplyError, text
			}
			return abi.ReplyText, text
		}
	}
	if r.Content == nil {
		r.Content = []abi.Content{}
	}
	data, err := json.Marshal(r)
	if err != nil {
		return abi.ReplyError, []byte("The tool's answer cannot be encoded: " + err.Error())
	}
	return abi.ReplyContent, data
}

func reply(kind abi.ReplyKind, payload []byte) uint64 {
	guest.reply = make([]byte, 1+len(payload))
	guest.reply[0] = byte(kind)
	copy(guest.reply[1:], payload)
	p := uintptr(unsafe.Pointer(&guest.reply[0]))
	return uint64(p)<<32 | uint64(len(guest.reply))
}

// warm builds what encoding/json keeps per type. The host takes its snapshot
// after elf_describe, so that no call pays for it.
func (t tool) warm() {
	_ = decodeArgs(json.RawMessage("{}"), reflect.New(t.in).Interface())
	_, _ = result(abi.Result{})
	if structured(t.out) {
		_, _ = json.Marshal(reflect.New(t.out).Interface())
	}
}
