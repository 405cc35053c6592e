package pdk

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// A request and its reply are one frame each: the length of a JSON header
// (32 bits, little-endian), the header, then raw bytes up to the end.

func encodeFrame(header any, body []byte) ([]byte, error) {
	head, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	frame := make([]byte, 0, 4+len(head)+len(body))
	frame = binary.LittleEndian.AppendUint32(frame, uint32(len(head)))
	frame = append(frame, head...)
	return append(frame, body...), nil
}

var errFrame = errors.New("the host's reply is cut short")

// decodeFrame fills header, which may be nil, and returns the raw bytes, which
// share frame's memory.
func decodeFrame(frame []byte, header any) ([]byte, error) {
	if len(frame) < 4 {
		return nil, errFrame
	}
	n, rest := binary.LittleEndian.Uint32(frame), frame[4:]
	if uint64(n) > uint64(len(rest)) {
		return nil, errFrame
	}
	if header != nil && n > 0 {
		if err := json.Unmarshal(rest[:n], header); err != nil {
			return nil, fmt.Errorf("decoding the host's reply: %w", err)
		}
	}
	return rest[n:], nil
}

// Error is a host function's refusal or failure. It matches its Code with
// errors.Is: errors.Is(err, abi.ErrDenied).
type Error struct {
	Op     string // "elf:net.request"
	Code   abi.Code
	Detail string // what the host added, if anything
}

func (e *Error) Error() string {
	if e.Detail != "" {
		return e.Op + ": " + e.Detail
	}
	return e.Op + ": " + e.Code.Error()
}

// Unwrap returns the code.
func (e *Error) Unwrap() error { return e.Code }
