package extism

import (
	"context"
	"fmt"
	"strings"

	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// Library is a module of a manifest that others import functions of. All share
// Extism's blocks, so that offsets mean the same in each; linear memories are
// their own.
type Library struct {
	Name    string
	Report  *vet.Report
	Package sandbox.Package // of the kind Lib
}

// CheckLibrary holds a library's name against those that mean something else.
func CheckLibrary(name string) error {
	switch {
	case !plainName(name) || len(name) > 64:
		return fmt.Errorf("a linked module needs a name of up to 64 letters, digits, _ and -, not %q", name)
	case name == "main" || strings.HasPrefix(name, "wasi_") || name == "dylibso_observe" || name == "env":
		return fmt.Errorf("a linked module cannot have the name %q", name)
	}
	return nil
}

// functions are the library's exports, as host functions of who imports them,
// but for those of its language's runtime: nobody else starts it.
func (l Library) functions() []sandbox.Func {
	var list []sandbox.Func
	for _, e := range l.Report.Exports {
		if e.Kind != wasmbin.Function || strings.HasPrefix(e.Name, "_") || !numbers(e.Type.Params) || !numbers(e.Type.Results) {
			continue
		}
		list = append(list, sandbox.Func{Module: l.Name, Name: e.Name, Params: e.Type.Params, Results: e.Type.Results, Local: true,
			Run: func(ctx context.Context, g *sandbox.Guest, stack []uint64) {
				res, err := g.Linked(ctx, l.Name, e.Name, stack[:len(e.Type.Params)]...)
				if err != nil {
					panic(&sandbox.Ended{Err: err})
				}
				copy(stack, res)
			}})
	}
	return list
}

// numbers reports whether values of these types fit the stack of a host function.
func numbers(types []byte) bool {
	for _, t := range types {
		switch wasmbin.ValType(t) {
		case wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64:
		default:
			return false
		}
	}
	return true
}
