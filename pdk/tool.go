package pdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unsafe"

	"github.com/elfhost/elfhost/abi"
)

// Spec names a tool and tells the model when and how to use it.
type Spec struct {
	Name        string
	Description string
	ReadOnly    bool // a hint that the tool changes nothing; it never changes who is asked
}

// Tool registers a tool. Call it from an init function; a second tool of the
// same name, or an input that is not a struct, panics.
//
// The input's JSON Schema is made from In: the tags json, desc (or
// description), enum ("a,b"), min, max and default are read, and a field is
// required unless it is a pointer or has omitempty or omitzero. The host
// validates the arguments before the tool sees them.
//
// Out is what the model gets: a string is text, an [abi.Result] is sent as it
// is, [abi.Content] and []abi.Content are blocks, []byte is text. Any other type is sent as JSON, and a
// struct also declares the tool's output schema. An error becomes an answer
// that the model reads: write whole sentences (what happened, what is allowed,
// what to try); [Failf] makes one.
func Tool[In, Out any](s Spec, run func(ctx context.Context, in In) (Out, error)) {
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	if s.Name == "" || in.Kind() != reflect.Struct {
		panic(fmt.Sprintf("pdk: tool %q: it needs a name, and a struct as its input", s.Name))
	}
	fields, plain := plainFields(in)
	plugin.add(tool{
		spec: s, in: in, out: out,
		run: func(ctx context.Context, args json.RawMessage) (abi.Result, error) {
			var v In
			if !plain || !readPlain(args, unsafe.Pointer(&v), fields) {
				v = *new(In)
				if err := decodeArgs(args, &v); err != nil {
					return abi.Result{}, err
				}
			}
			r, err := run(ctx, v)
			if err != nil {
				return abi.Result{}, err
			}
			return result(r)
		},
	})
}

// Failf makes an error for the model out of whole sentences, where Go's other
// errors are fragments.
func Failf(format string, args ...any) error { return failure(fmt.Sprintf(format, args...)) }

type failure string

func (f failure) Error() string { return string(f) }

// tool is a registered tool with its types erased.
type tool struct {
	spec    Spec
	in, out reflect.Type
	run     func(context.Context, json.RawMessage) (abi.Result, error)
}

// toolset is what one plugin registers. It is written by init functions only.
type toolset struct{ tools []tool }

var plugin toolset

func (s *toolset) add(t tool) {
	if _, taken := s.find(t.spec.Name); taken {
		panic(fmt.Sprintf("pdk: tool %q is registered twice", t.spec.Name))
	}
	s.tools = append(s.tools, t)
}

func (s *toolset) find(name string) (tool, bool) {
	for _, t := range s.tools {
		if t.spec.Name == name {
			return t, true
		}
	}
	return tool{}, false
}

// describe returns what elf_describe replies: every registered tool.
func describe() abi.Description {
	d := abi.Description{ABI: abi.Version}
	for _, t := range plugin.tools {
		decl := abi.ToolDecl{
			Name: t.spec.Name, Description: t.spec.Description, ReadOnly: t.spec.ReadOnly,
			Input: inputSchema(t.in),
		}
		if structured(t.out) {
			decl.Output = inputSchema(t.out)
		}
		d.Tools = append(d.Tools, decl)
	}
	return d
}

// Call runs a registered tool the way the host does. A failure of the tool, a
// panic included, is a Result with IsError. The tool may keep parts of args,
// which must not change afterwards.
func Call(ctx context.Context, name string, args json.RawMessage) (r abi.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = abi.Errorf("The tool %s failed inside: %v", name, p)
		}
	}()
	t, ok := plugin.find(name)
	if !ok {
		return abi.Errorf("This plugin has no tool %q.", name)
	}
	r, err := t.run(ctx, args)
	if err != nil {
		return abi.Errorf("%s", err.Error())
	}
	return r
}

func decodeArgs(args json.RawMessage, v any) error {
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return Failf("The arguments do not fit the tool: %s.", strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Failf("There is more than one JSON value in the arguments.")
	}
	return nil
}

// structured reports whether a tool's answer of type t has an output schema.
func structured(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[abi.Result]() && t != reflect.TypeFor[abi.Content]()
}

// result turns what a tool returned into what the host is sent.
func result(v any) (abi.Result, error) {
	switch v := v.(type) {
	case abi.Result:
		return v, nil
	case *abi.Result:
		return *v, nil
	case string:
		return abi.Text(v), nil
	case []byte:
		return abi.Text(string(v)), nil
	case abi.Content:
		return abi.Result{Content: []abi.Content{v}}, nil
	case []abi.Content:
		return abi.Result{Content: v}, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return abi.Result{}, fmt.Errorf("encoding the answer: %w", err)
	}
	r := abi.Text(string(data))
	if data[0] == '{' {
		r.Structured = data
	}
	return r, nil
}
