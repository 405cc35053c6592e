package foreign_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/sandbox"
)

const linked = `{"wasm":[{"path":"lib.wasm","name":"lib"},{"path":"main.wasm","name":"main"}]}`

func load(t *testing.T, l *sandbox.Loader, files fstest.MapFS) (*sandbox.Plugin, string) {
	t.Helper()
	f, err := foreign.Find(files, "m.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := l.Load(t.Context(), f.Package)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(t.Context()) })
	return p, f.Package.Digest
}

func run(t *testing.T, p *sandbox.Plugin, input string) (abi.Result, abi.Receipt, error) {
	t.Helper()
	args, err := json.Marshal(map[string]string{"input": input})
	if err != nil {
		t.Fatal(err)
	}
	var receipt abi.Receipt
	for _, tool := range p.Tools() {
		if tool.Spec().Name == "run_test" {
			r, err := tool.Call(t.Context(), host.Call{ID: "1", Args: args, Receipt: func(r abi.Receipt) { receipt = r }})
			return r, receipt, err
		}
	}
	t.Fatal("there is no tool run_test")
	return abi.Result{}, receipt, nil
}

// TestModuleLinking is TestModuleLinkingMultipleInstances of Extism's Go SDK:
// a module that calls a function of another, again and again, in several
// instances at once.
func TestModuleLinking(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &sandbox.Loader{Dir: t.TempDir(), Compiler: self}
	files := fstest.MapFS{
		"lib.wasm":  {Data: sdkModule(t, "lib.wasm")},
		"main.wasm": {Data: sdkModule(t, "main.wasm")},
		"m.json":    {Data: []byte(linked)},
	}
	p, digest := load(t, l, files)
	for range 3 {
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if r, receipt, err := run(t, p, "benjamin"); err != nil || r.Text() != "Hello, BENJAMIN" || receipt.Fuel == 0 {
					t.Errorf("%+v, %+v, %v", r, receipt, err)
				}
			})
		}
		all.Wait()
	}
	// Another library is another plugin, though the module is the same.
	changed := append(append([]byte{}, files["lib.wasm"].Data...), 0, 2, 1, 'x')
	files["lib.wasm"] = &fstest.MapFile{Data: changed}
	if _, other := load(t, l, files); other == digest {
		t.Error("the digest does not cover the library")
	}
}

func TestModuleLinkingRefused(t *testing.T) {
	files := fstest.MapFS{
		"lib.wasm":  {Data: sdkModule(t, "lib.wasm")},
		"main.wasm": {Data: sdkModule(t, "main.wasm")},
	}
	for manifest, want := range map[string]string{
		`{"wasm":[{"path":"lib.wasm"},{"path":"main.wasm","name":"main"}]}`:                                         "needs a name",
		`{"wasm":[{"path":"lib.wasm","name":"extism:host/env"},{"path":"main.wasm"}]}`:                              "needs a name",
		`{"wasm":[{"path":"lib.wasm","name":"wasi_snapshot_preview1"},{"path":"main.wasm"}]}`:                       "cannot have the name",
		`{"wasm":[{"path":"lib.wasm","name":"lib"},{"path":"lib.wasm","name":"lib"},{"path":"main.wasm"}]}`:         "two modules have the name",
		`{"wasm":[` + strings.Repeat(`{"path":"lib.wasm","name":"lib"},`, 16) + `{"path":"main.wasm"}]}`:            "the limit is 16",
		`{"wasm":[{"path":"lib.wasm","name":"lib","hash":"` + strings.Repeat("0", 64) + `"},{"path":"main.wasm"}]}`: "has the hash",
	} {
		files["m.json"] = &fstest.MapFile{Data: []byte(manifest)}
		if _, err := foreign.Find(files, "m.json", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", manifest, err, want)
		}
	}
	// A function that the library has not, or has otherwise, is an import of nothing.
	files["m.json"] = &fstest.MapFile{Data: []byte(`{"wasm":[{"path":"main.wasm","name":"lib"},{"path":"main.wasm","name":"main"}]}`)}
	f, err := foreign.Find(files, "m.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&sandbox.Loader{Compiler: self}).Load(t.Context(), f.Package)
	if err == nil {
		defer p.Close(t.Context())
		_, _, err = run(t, p, "x")
	}
	if err == nil || !strings.Contains(err.Error(), "capitalize") {
		t.Errorf("an import without an export: %v", err)
	}
}
