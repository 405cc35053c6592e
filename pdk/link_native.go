//go:build !wasip1

package pdk

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/elfhost/elfhost/abi"
)

// Host stands in for the host functions when a plugin's code runs natively.
// Package pdktest has one. module and op name the operation ("elf:net",
// "http"), as in docs/abi.md. An error should be an [Error].
type Host interface {
	Operate(ctx context.Context, module, op string, header json.RawMessage, body []byte) (reply any, replyBody []byte, err error)
	// Path says where the virtual path name ("/ws/a.txt") is on this machine.
	Path(name string) string
}

type hostKey struct{}

// WithHost gives the tools that run under the context a host.
func WithHost(ctx context.Context, h Host) context.Context {
	return context.WithValue(ctx, hostKey{}, h)
}

type operation struct{ module, op string }

// do goes through a frame as it would in a guest, so that what cannot be
// encoded there fails here too.
func (o *operation) do(ctx context.Context, header any, body []byte, reply any) ([]byte, error) {
	name := o.module + "." + o.op
	h, ok := ctx.Value(hostKey{}).(Host)
	if !ok {
		return nil, &Error{Op: name, Code: abi.ErrUnsupported, Detail: "there is no host: pass the context that the tool was given"}
	}
	frame, err := encodeFrame(header, body)
	if err != nil {
		return nil, err
	}
	var head json.RawMessage
	if body, err = decodeFrame(frame, &head); err != nil {
		return nil, err
	}
	out, data, err := h.Operate(ctx, o.module, o.op, head, body)
	if err != nil {
		return nil, err
	}
	if frame, err = encodeFrame(out, data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return decodeFrame(frame, reply)
}

func localPath(ctx context.Context, name string) string {
	if h, ok := ctx.Value(hostKey{}).(Host); ok {
		return h.Path(name)
	}
	return name
}
