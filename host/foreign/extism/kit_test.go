package extism_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/extism"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/vet"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

// work holds the machine code that the tests of one run share.
var work string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	dir, err := os.MkdirTemp("", "extism-test-")
	if err != nil {
		panic(err)
	}
	work = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// sdk finds the folder of modules that Extism's own SDK is tested with.
var sdk = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "wasm"), err
})

func module(t testing.TB, name string) []byte {
	t.Helper()
	dir, err := sdk()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// kit loads modules and calls them.
type kit struct {
	t       testing.TB
	opt     extism.Options
	limits  abi.Limits
	session string
	loader  sandbox.Loader
	plugin  *sandbox.Plugin

	mu   sync.Mutex
	logs []sandbox.LogLine
	last abi.Receipt
}

func (k *kit) load(wasm []byte) *kit {
	k.t.Helper()
	p, err := k.try(wasm)
	if err != nil {
		k.t.Fatal(err)
	}
	k.plugin = p
	k.t.Cleanup(func() { p.Close(context.Background()) })
	return k
}

func (k *kit) try(wasm []byte) (*sandbox.Plugin, error) {
	p := vet.Standard()
	p.Import = func(string, string, wasmbin.FuncType) error { return nil }
	r, err := vet.Check(wasm, p)
	if err != nil {
		return nil, err
	}
	if k.opt.Kind == "" {
		k.opt.Kind, _ = extism.Detect(r)
	}
	f, err := extism.New(k.opt)
	if err != nil {
		return nil, err
	}
	m := abi.Manifest{ABI: abi.Version, Name: "probe", Limits: k.limits}
	if k.opt.Kind == extism.Plain || k.opt.Kind == "" {
		for _, name := range extism.Exports(r) {
			m.Tools = append(m.Tools, abi.ToolDecl{Name: name, Description: name, Input: json.RawMessage(extism.Input)})
		}
	}
	k.loader.Dir = filepath.Join(work, "cache")
	k.loader.Log = func(l sandbox.LogLine) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.logs = append(k.logs, l)
	}
	if k.loader.Compiler, err = os.Executable(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(wasm)
	return k.loader.Load(k.t.Context(), sandbox.Package{Manifest: m, Digest: hex.EncodeToString(sum[:]), Source: host.Plugin,
		Format: f, Wasm: func() ([]byte, error) { return wasm, nil }})
}

// call calls a tool with arguments.
func (k *kit) call(ctx context.Context, tool, args string, grants ...string) (abi.Result, error) {
	k.t.Helper()
	for _, t := range k.plugin.Tools() {
		if t.Spec().Name == tool {
			return t.Call(ctx, host.Call{ID: "c1", Tool: tool, Args: json.RawMessage(args), Caller: host.Caller{Session: k.session},
				Rights: plugtest.Rights(k.t, grants...), Receipt: func(r abi.Receipt) { k.mu.Lock(); k.last = r; k.mu.Unlock() }})
		}
	}
	k.t.Fatalf("there is no tool %q among %v", tool, k.plugin.Description().Tools)
	return abi.Result{}, nil
}

// run calls a plain export with an input.
func (k *kit) run(tool, input string, grants ...string) (abi.Result, error) {
	k.t.Helper()
	b, err := json.Marshal(map[string]string{"input": input})
	if err != nil {
		k.t.Fatal(err)
	}
	return k.call(k.t.Context(), tool, string(b), grants...)
}

func (k *kit) want(tool, input, text string, grants ...string) {
	k.t.Helper()
	r, err := k.run(tool, input, grants...)
	if err != nil || r.IsError || r.Text() != text {
		k.t.Errorf("%s(%.40q) is %+v, %v; want %q", tool, input, r, err, text)
	}
}

// fails expects an error of either sort that has the text.
func (k *kit) fails(tool, input, text string, grants ...string) error {
	k.t.Helper()
	r, err := k.run(tool, input, grants...)
	got := r.Text()
	if err != nil {
		got = err.Error()
	}
	if err == nil && !r.IsError || !strings.Contains(got, text) {
		k.t.Errorf("%s(%.40q) is %q, %v; want an error with %q", tool, input, got, err, text)
	}
	return err
}
