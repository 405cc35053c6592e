package wasicmd_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/foreign/wasicmd"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

var work string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	dir, err := os.MkdirTemp("", "wasicmd-test-")
	if err != nil {
		panic(err)
	}
	work = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var wazeroDir = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	return strings.TrimSpace(string(out)), err
})

// program reads a module that comes with the runtime's own tests.
func program(t testing.TB, name string) []byte {
	t.Helper()
	dir, err := wazeroDir()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "imports/wasi_snapshot_preview1", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func load(t testing.TB, wasm []byte, l *sandbox.Loader, d abi.ToolDecl, limits abi.Limits, files bool) host.Tool {
	t.Helper()
	var err error
	l.Dir = filepath.Join(work, "cache")
	if l.Compiler, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wasm)
	p, err := l.Load(t.Context(), sandbox.Package{
		Manifest: abi.Manifest{ABI: abi.Version, Name: "program", Tools: []abi.ToolDecl{d}, Limits: limits},
		Digest:   hex.EncodeToString(sum[:]), Source: host.Plugin, Format: wasicmd.New(files), Wasm: func() ([]byte, error) { return wasm, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(context.Background()) })
	return p.Tools()[0]
}

// TestCat runs the same program from three compilers: over a file of the
// workspace, and over a file made of a parameter.
func TestCat(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("from the workspace\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, name := range []string{"tinygo", "cargo-wasi", "zig-cc"} {
		t.Run(name, func(t *testing.T) {
			decl := wasicmd.Default("cat", "")
			decl.Program.Files = map[string]string{"/in/text.txt": "{text}"}
			l := &sandbox.Loader{Tree: func(host.Caller) *reach.Tree { return tree }}
			cat := load(t, program(t, "example/testdata/"+name+"/cat.wasm"), l, decl, abi.Limits{HostCalls: wasicmd.HostCalls}, true)
			run := func(args string, give ...string) (abi.Result, error) {
				return cat.Call(t.Context(), host.Call{Args: json.RawMessage(args), Rights: plugtest.Rights(t, give...)})
			}
			for range 2 { // the second run finds what the first found
				for _, c := range []struct{ args, want string }{
					{`{"args":["a.txt"]}`, "from the workspace\n"},
					{`{"args":["/ws/a.txt"]}`, "from the workspace\n"},
					{`{"args":["/in/text.txt"],"text":"{} from a parameter"}`, "{} from a parameter"},
				} {
					r, err := run(c.args, "fs.read /ws/**")
					if err != nil || r.IsError || r.Text() != c.want {
						t.Errorf("%s: %+v, %v; want %q", c.args, r, err, c.want)
					}
				}
			}
			r, err := run(`{"args":["a.txt"]}`)
			if err == nil && !r.IsError {
				t.Errorf("a file without a grant: %+v", r)
			}
			r, err = run(`{"args":["missing.txt"]}`, "fs.read /ws/**")
			if err == nil && (!r.IsError || !strings.Contains(r.Text(), "ended with code")) {
				t.Errorf("a missing file: %+v %v", r, err)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	show := load(t, program(t, "testdata/print_args.wasm"), &sandbox.Loader{}, abi.ToolDecl{
		Name: "show", Description: "Shows its arguments.", Input: json.RawMessage(`{"type":"object"}`),
		Program: &abi.Program{Args: [][]string{{"--width", "{width}"}, {"-v", "{?verbose}"}, {"{rest...}"}}},
	}, abi.Limits{}, false)
	r, err := show.Call(t.Context(), host.Call{Args: json.RawMessage(`{"width":7,"verbose":false,"rest":["a b","c"]}`)})
	if err != nil || r.IsError || strings.Trim(r.Text(), "\x00") != "show\x00--width\x007\x00a b\x00c" {
		t.Errorf("%q %+v %v", r.Text(), r, err)
	}
}

// exits is a program that ends with code 2.
var exits = []byte("\x00asm\x01\x00\x00\x00" +
	"\x01\x08\x02\x60\x01\x7f\x00\x60\x00\x00" + // types: (i32) -> (), () -> ()
	"\x02\x24\x01\x16wasi_snapshot_preview1\x09proc_exit\x00\x00" +
	"\x03\x02\x01\x01" + "\x05\x03\x01\x00\x01" + // one function, one memory
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01" +
	"\x0a\x08\x01\x06\x00\x41\x02\x10\x00\x0b")

func TestExitCodes(t *testing.T) {
	exit := load(t, exits, &sandbox.Loader{}, wasicmd.Default("exit", ""), abi.Limits{}, false)
	r, err := exit.Call(t.Context(), host.Call{Args: json.RawMessage(`{}`)})
	if err != nil || !r.IsError || !strings.Contains(r.Text(), "ended with code 2") {
		t.Errorf("%+v %v", r, err)
	}
	fine := wasicmd.Default("exit", "")
	fine.Program.Exit = []uint32{2}
	exit = load(t, exits, &sandbox.Loader{}, fine, abi.Limits{}, false)
	if r, err := exit.Call(t.Context(), host.Call{Args: json.RawMessage(`{}`)}); err != nil || r.IsError {
		t.Errorf("an exit code that the manifest allows: %+v %v", r, err)
	}
}

func TestExpand(t *testing.T) {
	p := abi.Program{
		Args: [][]string{{"-n", "{n}"}, {"{?all}", "-a"}, {"{{{name}}}"}, {"{list...}"}}, Stdin: "<{text}>",
		Files: map[string]string{"/f": "{data}"}, Env: map[string]string{"B": "2", "A": "1"},
	}
	for _, c := range []struct {
		args string
		want wasicmd.Run
	}{
		{`{}`, wasicmd.Run{Stdin: "<>"}},
		{`{"n":3,"all":true,"name":"x","list":[1,"two",{"a":1}],"text":"t","data":{"k":[1]}}`, wasicmd.Run{
			Args: []string{"-n", "3", "-a", "{x}", "1", "two", `{"a":1}`}, Stdin: "<t>", Files: map[string][]byte{"/f": []byte(`{"k":[1]}`)}}},
		{`{"n":null,"all":false,"name":""}`, wasicmd.Run{Args: []string{"{}"}, Stdin: "<>"}},
	} {
		c.want.Env = []string{"A=1", "B=2"}
		got, err := wasicmd.Expand(p, json.RawMessage(c.args))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v; want %+v", c.args, got, err, c.want)
		}
	}
	for _, args := range []string{`[]`, `{"list":"x"}`, `{"name":"a\u0000b"}`} {
		if _, err := wasicmd.Expand(p, json.RawMessage(args)); err == nil {
			t.Errorf("%s is accepted", args)
		}
	}
	if names, err := wasicmd.Names(p); err != nil || !reflect.DeepEqual(names, []string{"n", "all", "name", "list", "text", "data"}) {
		t.Errorf("names %q, %v", names, err)
	}
	for _, bad := range []string{"{", "{}", "x}", "{a"} {
		if _, err := wasicmd.Names(abi.Program{Stdin: bad}); err == nil {
			t.Errorf("the text %q is accepted", bad)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("{a}", `{"a":1}`)
	f.Add("{a...}{{x}}", `{"a":[1,"b"]}`)
	f.Fuzz(func(t *testing.T, text, args string) {
		p := abi.Program{Args: [][]string{{text}, {text, text}}, Stdin: text}
		r, err := wasicmd.Expand(p, json.RawMessage(args))
		if err != nil {
			return
		}
		for _, a := range r.Args {
			if strings.Contains(a, "\x00") && !strings.Contains(text, "\x00") {
				t.Fatalf("the argument %q holds a NUL", a)
			}
		}
		if _, err := wasicmd.Names(p); err != nil {
			t.Fatalf("it expands, but its names are refused: %v", err)
		}
	})
}

func BenchmarkCall(b *testing.B) {
	wasm := program(b, "example/testdata/cargo-wasi/cat.wasm")
	decl := wasicmd.Default("cat", "")
	decl.Program.Files = map[string]string{"/in/text.txt": "{text}"}
	cat := load(b, wasm, &sandbox.Loader{}, decl, abi.Limits{HostCalls: wasicmd.HostCalls}, false)
	args := json.RawMessage(`{"args":["/in/text.txt"],"text":"some text"}`)
	if r, err := cat.Call(b.Context(), host.Call{Args: args}); err != nil || r.Text() != "some text" {
		b.Fatal(r, err)
	}
	b.Run("isolated", func(b *testing.B) {
		for b.Loop() {
			if _, err := cat.Call(b.Context(), host.Call{Args: args}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("wazero-fresh", func(b *testing.B) { rawFresh(b, wasm) })
}

// rawFresh is a fresh instance for each run, with the deadline that the runtime
// can enforce.
func rawFresh(b *testing.B, wasm []byte) {
	ctx := b.Context()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(true))
	defer rt.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "text.txt"), []byte("some text"), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		var out strings.Builder
		conf := wazero.NewModuleConfig().WithName("").WithArgs("cat", "/in/text.txt").WithStdout(&out).
			WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(dir, "/in"))
		mod, err := rt.InstantiateModule(ctx, code, conf)
		if code, ok := sandbox.Exited(err); err != nil && (!ok || code != 0) {
			b.Fatal(err)
		}
		if mod != nil {
			err = mod.Close(ctx)
		}
		if out.String() != "some text" || err != nil && errors.Is(err, context.Canceled) {
			b.Fatal(out.String(), err)
		}
		cancel()
	}
}
