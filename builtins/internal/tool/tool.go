// Package tool turns a Go function and two text files into a host.Tool: the
// description in tools/NAME.md and the input schema in tools/NAME.json, both
// embedded by the room that owns the tool.
package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
)

// Func is a native tool.
type Func struct {
	S   host.Spec
	Run func(ctx context.Context, c host.Call) (abi.Result, error)
}

// Spec implements host.Tool.
func (f *Func) Spec() host.Spec { return f.S }

// Call implements host.Tool.
func (f *Func) Call(ctx context.Context, c host.Call) (abi.Result, error) { return f.Run(ctx, c) }

// Spec reads a tool's texts. They are part of the binary, so that a missing
// one is a bug of the build and panics.
func Spec(texts fs.FS, name string, kind host.Kind) host.Spec {
	description, err := fs.ReadFile(texts, "tools/"+name+".md")
	if err != nil {
		panic(err)
	}
	input, err := fs.ReadFile(texts, "tools/"+name+".json")
	if err != nil {
		panic(err)
	}
	return host.Spec{
		Name:        name,
		Description: strings.TrimSpace(string(description)),
		Input:       json.RawMessage(input),
		Origin:      host.Origin{Source: host.Builtin},
		Kind:        kind,
	}
}

// Args decodes a call's arguments. Invoke has validated them against the
// schema; a tool that is called otherwise still gets an error, not a panic.
func Args[T any](c host.Call) (T, error) {
	var v T
	if len(c.Args) == 0 {
		return v, nil
	}
	err := json.Unmarshal(c.Args, &v)
	if bad, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what, _, _ := strings.Cut(strings.TrimPrefix(bad.Value, "number "), " ")
		return v, fmt.Errorf("the argument `%s` is %.60s, and no such value is taken; a number that is too large for it may be left out", bad.Field, what)
	}
	if err != nil {
		return v, fmt.Errorf("the arguments of %s cannot be read: %w", c.Tool, err)
	}
	return v, nil
}
