// Jq runs a jq filter over JSON. It shows a library that was written for
// servers (gojq) at work inside the sandbox, and answers that stay bounded.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/itchyny/gojq"

	"github.com/elfhost/elfhost/pdk"
)

// Limits of one call: the values that are read and answered, and the bytes of both.
const (
	maxResults = 10_000
	maxOutput  = 512 << 10
	maxInput   = 32 << 20
)

type args struct {
	Filter  string         `json:"filter" desc:"The jq filter, for example '.items[] | {name, price}'."`
	Path    string         `json:"path,omitempty" desc:"A JSON file, or one with a JSON value per line, relative to the workspace. Give this or json."`
	JSON    string         `json:"json,omitempty" desc:"The JSON text itself, instead of path."`
	Args    map[string]any `json:"args,omitempty" desc:"Values that the filter uses as $name."`
	Slurp   bool           `json:"slurp,omitempty" desc:"Put all input values into one array first."`
	Raw     bool           `json:"raw,omitempty" desc:"Write strings without quotes."`
	Compact bool           `json:"compact,omitempty" desc:"One line per result."`
}

func init() {
	pdk.Tool(pdk.Spec{
		Name: "jq", ReadOnly: true,
		Description: "Filters and reshapes JSON with a jq program. Reads a file of the workspace (JSON or JSON Lines) or a text, and writes each result on its own.",
	}, run)
}

func main() { pdk.Main() }

func run(ctx context.Context, in args) (string, error) {
	code, values, err := compile(in)
	if err != nil {
		return "", err
	}
	src, err := open(ctx, in)
	if err != nil {
		return "", err
	}
	defer src.Close()
	inputs, err := decode(src, in.Slurp)
	if err != nil {
		return "", err
	}
	out := writer{raw: in.Raw, compact: in.Compact}
	for _, v := range inputs {
		results := code.RunWithContext(ctx, v, values...)
		for {
			r, ok := results.Next()
			if !ok {
				break
			}
			if err, failed := r.(error); failed {
				if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
					return out.text(), nil
				}
				return "", pdk.Failf("The filter failed after %d results: %v. Test a part of it, or use `?` to skip values that do not fit.", out.n, err)
			}
			if err := out.write(r); err != nil {
				return "", err
			}
			if out.full() {
				return out.text() + fmt.Sprintf("… cut after %d results. Select less, or use first, limit or length.\n", out.n), nil
			}
		}
	}
	if out.n == 0 {
		return "The filter has no result.", nil
	}
	return out.text(), nil
}

// compile parses the filter. It reads no module and no environment.
func compile(in args) (*gojq.Code, []any, error) {
	q, err := gojq.Parse(in.Filter)
	if err != nil {
		return nil, nil, pdk.Failf("The filter does not parse: %v.", err)
	}
	var names []string
	var values []any
	for k, v := range in.Args {
		names, values = append(names, "$"+k), append(values, v)
	}
	code, err := gojq.Compile(q, gojq.WithVariables(names), gojq.WithEnvironLoader(func() []string { return nil }))
	if err != nil {
		return nil, nil, pdk.Failf("The filter cannot be used: %v.", err)
	}
	return code, values, nil
}

func open(ctx context.Context, in args) (io.ReadCloser, error) {
	switch {
	case (in.Path == "") == (in.JSON == ""):
		return nil, pdk.Failf("Give either path or json.")
	case in.JSON != "":
		return io.NopCloser(strings.NewReader(in.JSON)), nil
	}
	f, err := os.Open(pdk.Path(ctx, in.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, pdk.Failf("There is no file %q in the workspace.", in.Path)
	case errors.Is(err, fs.ErrPermission):
		return nil, pdk.Failf("The file %q may not be read.", in.Path)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err == nil && !info.Mode().IsRegular():
		err = pdk.Failf("%q is not a file.", in.Path)
	case err == nil && info.Size() > maxInput:
		err = pdk.Failf("The file %q has %d bytes; %d are read at the most. Cut it first.", in.Path, info.Size(), maxInput)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// decode reads the values, numbers as they are written.
func decode(r io.Reader, slurp bool) ([]any, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))))
	dec.UseNumber()
	values := []any{}
	for {
		var v any
		switch err := dec.Decode(&v); {
		case err == io.EOF:
			if slurp {
				return []any{values}, nil
			}
			if len(values) == 0 {
				return nil, pdk.Failf("The input is empty.")
			}
			return values, nil
		case err != nil:
			at := dec.InputOffset()
			if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
				at = bad.Offset
			}
			return nil, pdk.Failf("The input is not JSON: %v, near byte %d (line %d).", err, at, 1+bytes.Count(b[:min(int(at), len(b))], []byte("\n")))
		}
		values = append(values, v)
	}
}

// writer collects the results.
type writer struct {
	raw, compact bool
	b            bytes.Buffer
	n            int
}

func (w *writer) write(v any) error {
	w.n++
	if s, ok := v.(string); ok && w.raw {
		w.b.WriteString(s + "\n")
		return nil
	}
	text, err := gojq.Marshal(v)
	if err != nil {
		return err
	}
	if w.compact {
		w.b.Write(text)
	} else if err := json.Indent(&w.b, text, "", "  "); err != nil {
		return err
	}
	w.b.WriteByte('\n')
	return nil
}

func (w *writer) full() bool { return w.n >= maxResults || w.b.Len() >= maxOutput }

func (w *writer) text() string { return w.b.String() }
