package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
)

// readReply finds what a packed pointer and length name, and cuts off the kind.
// The bytes are the guest's own: copy them before it, or a reset, runs again.
func readReply(mod api.Module, packed uint64, limit int64) (abi.ReplyKind, []byte, error) {
	ptr, n := uint32(packed>>32), uint32(packed)
	switch {
	case n == 0:
		return 0, nil, abiErrorf("the reply is empty; it begins with a byte for its kind")
	case limit > 0 && int64(n)-1 > limit:
		return 0, nil, &LimitError{limitOutput, fmt.Sprintf("%d bytes", limit)}
	}
	b, ok := mod.Memory().Read(ptr, n)
	if !ok {
		return 0, nil, abiErrorf("the reply (%d bytes at %#x) lies outside the memory", n, ptr)
	}
	kind := abi.ReplyKind(b[0])
	if kind > abi.ReplyContent {
		return 0, nil, abiErrorf("there is no reply of kind %d", kind)
	}
	return kind, b[1:], nil
}

// result turns a reply into what the tool answers, which shares nothing with it.
func result(kind abi.ReplyKind, b []byte) (abi.Result, error) {
	switch kind {
	case abi.ReplyText:
		return abi.Text(textOf(b)), nil
	case abi.ReplyError:
		r := abi.Text(textOf(b))
		r.IsError = true
		return r, nil
	}
	if _, err := checkJSON(b, maxDepth); err != nil {
		return abi.Result{}, abiErrorf("the result is no acceptable JSON: %v", err)
	}
	var r abi.Result
	if err := json.Unmarshal(b, &r); err != nil {
		return abi.Result{}, abiErrorf("the result is not that of a tool: %v", err)
	}
	for i, c := range r.Content {
		if err := checkContent(c); err != nil {
			return abi.Result{}, abiErrorf("content block %d: %v", i+1, err)
		}
	}
	if len(r.Content) == 0 && r.Structured == nil {
		return abi.Result{}, abiErrorf("the result has neither content nor structured content")
	}
	return r, nil
}

// textOf copies a guest's text; what is not UTF-8 is replaced. To look first
// costs less than to replace nothing.
func textOf(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return strings.ToValidUTF8(string(b), "\uFFFD")
}

func checkContent(c abi.Content) error {
	switch c.Type {
	case abi.TypeText:
		return nil
	case abi.TypeImage, abi.TypeAudio:
		if len(c.Data) == 0 || c.MIMEType == "" {
			return fmt.Errorf("a block of type %q needs data and mimeType", c.Type)
		}
	case abi.TypeResourceLink:
		if c.URI == "" {
			return fmt.Errorf("a block of type %q needs a uri", c.Type)
		}
	case abi.TypeResource:
		if c.Resource == nil || c.Resource.URI == "" {
			return fmt.Errorf("a block of type %q needs a resource with a uri", c.Type)
		}
	default:
		return fmt.Errorf("there is no type %q", oneLine(c.Type))
	}
	return nil
}
