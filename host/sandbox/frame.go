package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/elfhost/elfhost/abi"
)

// Limits of one request, told in docs/abi.md.
const (
	maxHeader = 1 << 20
	maxFrame  = 16 << 20
)

// splitFrame cuts a request or a reply into its JSON header and its body.
func splitFrame(b []byte) (header, body []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("a frame begins with the four bytes of its header's length: %w", abi.ErrInvalid)
	}
	n := binary.LittleEndian.Uint32(b)
	switch {
	case n > maxHeader:
		return nil, nil, fmt.Errorf("a header of %d bytes; the limit is %d: %w", n, maxHeader, abi.ErrTooLarge)
	case uint64(n) > uint64(len(b)-4):
		return nil, nil, fmt.Errorf("a header of %d bytes in a frame of %d: %w", n, len(b), abi.ErrInvalid)
	}
	return b[4 : 4+n], b[4+n:], nil
}

// joinFrame makes a frame. A nil header is {}.
func joinFrame(header any, body []byte) ([]byte, error) {
	head := []byte("{}")
	if header != nil {
		var err error
		if head, err = json.Marshal(header); err != nil {
			return nil, err
		}
	}
	b := make([]byte, 0, 4+len(head)+len(body))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	return append(append(b, head...), body...), nil
}

// headerOf decodes headers of one operation.
type headerOf[H any] struct{ keys []string }

func newHeader[H any]() headerOf[H] {
	var keys []string
	t := reflect.TypeFor[H]()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		keys = append(keys, name)
	}
	return headerOf[H]{keys}
}

// decode is strict: what the host does not know is an error, so that a guest
// never relies on an option that is not there. Keys count by their exact bytes.
func (d headerOf[H]) decode(b []byte) (h H, err error) {
	if len(b) == 0 {
		return h, nil
	}
	top, err := checkJSON(b, maxDepth)
	if err != nil {
		return h, fmt.Errorf("the header: %w: %w", err, abi.ErrInvalid)
	}
	for _, k := range top {
		if !slices.Contains(d.keys, k) {
			return h, fmt.Errorf("the header has an unknown key %q: %w", k, abi.ErrInvalid)
		}
	}
	dec := json.NewDecoder(strings.NewReader(string(b)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return h, fmt.Errorf("the header: %w: %w", err, abi.ErrInvalid)
	}
	return h, nil
}
