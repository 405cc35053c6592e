package extism

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// start begins a module as Extism's hosts do: Haskell's runtime by hs_init,
// others by _initialize, or else by the constructors of a command.
func start(ctx context.Context, g *sandbox.Guest) error {
	run := func(name string, params ...uint64) error {
		if !g.Has(name) {
			return nil
		}
		_, err := g.Call(ctx, name, params...)
		return err
	}
	if g.Has("hs_init") {
		return errors.Join(run("_initialize"), run("hs_init", 0, 0))
	}
	if g.Has("_initialize") {
		return run("_initialize")
	}
	return run("__wasm_call_ctors")
}

// Input is the schema of a plain export: its one parameter is what the plugin
// reads as its input.
const Input = `{"type":"object","properties":{"input":{"type":"string","description":"What the plugin reads as its input."}}}`

// callExport calls one export of a plain plugin.
func (p *plugin) callExport(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
	var in struct {
		Input string `json:"input"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return abi.Result{}, fmt.Errorf("the arguments: %w", err)
	}
	p.paths(g)
	out, err := exchange(ctx, g, tool.Name, []byte(in.Input))
	if err != nil {
		var said *Error
		if errors.As(err, &said) {
			return abi.Errorf("%s", said.Text), nil
		}
		return abi.Result{}, err
	}
	return bytesResult(out), nil
}

// bytesResult is text where it is text, else a block of bytes.
func bytesResult(b []byte) abi.Result {
	if utf8.Valid(b) {
		return abi.Text(string(b))
	}
	return abi.Result{Content: []abi.Content{{Type: abi.TypeResource, Resource: &abi.Resource{
		URI: "extism:output", MIMEType: "application/octet-stream", Blob: b,
	}}}}
}

// Error is a failure that the plugin itself reports: a code other than 0, with
// the text that it set or a sentence of ours.
type Error struct {
	Code uint32
	Text string
}

func (e *Error) Error() string { return e.Text }

// exchange hands a plugin its input and returns its output. An *Error is the
// plugin's own; any other is the end of the instance.
func exchange(ctx context.Context, g *sandbox.Guest, export string, input []byte) ([]byte, error) {
	k := of(g)
	off := k.write(input)
	if off == 0 && len(input) > 0 {
		return nil, fmt.Errorf("the input of %d bytes is larger than the plugin's memory may be: %w", len(input), abi.ErrTooLarge)
	}
	k.input = span{off, uint64(len(input))}
	res, err := g.Call(ctx, export)
	code := uint32(0)
	if exit, ok := sandbox.Exited(err); ok {
		code, err = exit, nil
	} else if err == nil && len(res) > 0 {
		code = uint32(res[0])
	}
	if err != nil {
		return nil, err
	}
	if code != 0 {
		text := string(Read(g, k.err))
		if text == "" {
			text = fmt.Sprintf("The plugin's function %s ended with code %d and said nothing else.", export, code)
		}
		return nil, &Error{code, text}
	}
	if n, most := int64(k.output.len), g.Limits().Output; most > 0 && n > most {
		return nil, fmt.Errorf("the plugin's output has %d bytes, over its limit of %d: %w", n, most, abi.ErrLimit)
	}
	return append([]byte{}, k.view(k.output)...), nil
}

// paths shows a plugin its allowed_paths, and nothing else of the root.
func (p *plugin) paths(g *sandbox.Guest) {
	if len(p.Paths) > 0 {
		g.System(func(c *wasi.Config) { c.Paths = p.Paths })
	}
}
