// Package wasicmd makes tools of WASI programs: commands of preview 1 that read
// arguments and standard input and write standard output.
//
// Each call runs the program once, in a sandbox of its own. What it writes to
// standard output is the result; a code other than 0 makes it an error, with
// what was written to standard error. The program sees the files of the
// workspace, as far as rights go, under "/" and under "/ws" alike, because
// programs take relative names; files and variables that the manifest names are
// there beside.
package wasicmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasi"
)

// HostCalls is the limit of programs that ask for none: reading and writing a
// little at a time is what they do.
const HostCalls = 1_000_000

const entry = "_start"

// Detect reports whether a module is a command of WASI preview 1: it has a
// _start, and imports nothing else.
func Detect(r *vet.Report) bool {
	for _, s := range r.Imports {
		if s.Module != wasi.ModuleName {
			return false
		}
	}
	return check(r) == nil
}

func check(r *vet.Report) error {
	if e, ok := r.Export(entry); !ok || e.Type.String() != "() -> ()" {
		return errors.New("the module is no WASI command: it does not export _start")
	}
	return nil
}

// Default is the tool for a program of which nothing else is known.
func Default(name, description string) abi.ToolDecl {
	if description == "" {
		description = "Run the program " + name + ". Its result is what it writes to standard output."
	}
	return abi.ToolDecl{
		Name: name, Description: description,
		Input: json.RawMessage(`{"type":"object","properties":{` +
			`"args":{"type":"array","items":{"type":"string"},"description":"Arguments, without the program's name."},` +
			`"stdin":{"type":"string","description":"What the program reads as standard input."}}}`),
		Program: &abi.Program{Args: [][]string{{"{args...}"}}, Stdin: "{stdin}"},
	}
}

// New is the format of a program. Files says whether it sees the workspace: a
// program without a need of files finds an empty root.
func New(files bool) *sandbox.Format {
	return &sandbox.Format{
		Name: "wasi", Check: check, Keep: []string{entry},
		// A command has no start-up of its own: _start is all of it.
		Init: func(context.Context, *sandbox.Guest) error { return nil },
		Call: func(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage) (abi.Result, error) {
			return call(ctx, g, tool, args, files)
		},
	}
}

// maxStderr is how much of standard error an answer carries.
const maxStderr = 16 << 10

func call(ctx context.Context, g *sandbox.Guest, tool abi.ToolDecl, args json.RawMessage, files bool) (abi.Result, error) {
	if tool.Program == nil {
		return abi.Result{}, fmt.Errorf("the manifest does not say how the tool %q runs its program", tool.Name)
	}
	run, err := Expand(*tool.Program, args)
	if err != nil {
		return abi.Result{}, err
	}
	out := &bounded{most: g.Limits().Output}
	stderr := &tail{most: maxStderr}
	g.System(func(c *wasi.Config) {
		c.Args = append([]string{tool.Name}, run.Args...)
		c.Env, c.Files = run.Env, run.Files
		c.Stdin = strings.NewReader(run.Stdin)
		c.Stdout, c.Stderr = out, stderr
		if files {
			c.Paths = map[string]string{"/": "/ws", "/ws": "/ws"}
		}
	})
	_, err = g.Call(ctx, entry)
	code, exited := sandbox.Exited(err)
	switch {
	case out.over:
		return abi.Result{}, fmt.Errorf("the program writes more than %d bytes: %w", out.most, abi.ErrLimit)
	case err != nil && !exited:
		return abi.Result{}, err
	case code == 0 || slices.Contains(tool.Program.Exit, code):
		return output(out.Bytes()), nil
	}
	return failure(code, out.String(), stderr.String()), nil
}

// output is text where it is text, else a block of bytes.
func output(b []byte) abi.Result {
	if utf8.Valid(b) {
		return abi.Text(string(b))
	}
	return abi.Result{Content: []abi.Content{{Type: abi.TypeResource, Resource: &abi.Resource{
		URI: "wasi:stdout", MIMEType: "application/octet-stream", Blob: b,
	}}}}
}

func failure(code uint32, out, stderr string) abi.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "The program ended with code %d.", code)
	for _, part := range []string{stderr, out} {
		if part = strings.TrimRight(strings.ToValidUTF8(part, "\uFFFD"), "\n"); part != "" {
			b.WriteString("\n" + part)
		}
	}
	return abi.Errorf("%s", b.String())
}

// bounded is standard output up to the limit of a result.
type bounded struct {
	bytes.Buffer
	most int64
	over bool
}

func (w *bounded) Write(p []byte) (int, error) {
	if w.most > 0 && int64(w.Len()+len(p)) > w.most {
		w.over = true
		return 0, errors.New("the output is full")
	}
	return w.Buffer.Write(p)
}

// tail keeps the last bytes: that is where programs say what went wrong.
type tail struct {
	b    []byte
	most int
}

func (w *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > w.most {
		p = p[len(p)-w.most:]
	}
	if over := len(w.b) + len(p) - w.most; over > 0 {
		w.b = append(w.b[:0], w.b[over:]...)
	}
	w.b = append(w.b, p...)
	return n, nil
}

func (w *tail) String() string { return string(w.b) }

// Run is one run of a program.
type Run struct {
	Args  []string
	Env   []string // "K=V", sorted
	Stdin string
	Files map[string][]byte
}

// Expand fills a program's texts from the arguments of a call.
func Expand(p abi.Program, args json.RawMessage) (Run, error) {
	var r Run
	var params map[string]json.RawMessage
	if err := json.Unmarshal(args, &params); err != nil {
		return r, fmt.Errorf("the arguments: %w", err)
	}
	v := values(params)
	for _, group := range p.Args {
		list, ok, err := v.group(group)
		if err != nil {
			return r, err
		}
		if ok {
			r.Args = append(r.Args, list...)
		}
	}
	var err error
	if r.Stdin, _, err = v.fill(p.Stdin); err != nil {
		return r, err
	}
	for name, text := range p.Files {
		s, present, err := v.fill(text)
		if err != nil {
			return r, err
		}
		if present {
			if r.Files == nil {
				r.Files = map[string][]byte{}
			}
			r.Files[name] = []byte(s)
		}
	}
	for k, s := range p.Env {
		r.Env = append(r.Env, k+"="+s)
	}
	sort.Strings(r.Env)
	return r, nil
}
