package foreign_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign"
	"github.com/elfhost/elfhost/host/foreign/extism"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

func sdkModule(t *testing.T, name string) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "wasm", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// echo is a WASI command that exports a memory and does nothing.
const command = "\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01" +
	"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00\x0a\x04\x01\x02\x00\x0b"

// script is the section that makes a module a JavaScript plugin.
const script = "\x00\x11\x0eelf:javascript1;"

func TestFind(t *testing.T) {
	hello := sdkModule(t, "hello.wasm")
	sum := sha256.Sum256(hello)
	manifest := func(hash string) string {
		return fmt.Sprintf(`{"wasm":[{"path":"hello.wasm","hash":%q}],"memory":{"max_pages":100},"config":{"a":"b"},
			"allowed_hosts":["api.example.org","*.github.com","google.*"],"allowed_paths":{"data":"/mnt","ro:docs":"/docs"},"timeout_ms":1500}`, hash)
	}
	type files = map[string]string
	for _, c := range []struct {
		name   string
		files  files
		file   string
		format string
		err    string
	}{
		{name: "Extism alone", files: files{"Hello World.wasm": string(hello)}, format: string(extism.Plain)},
		{name: "Extism with a manifest", files: files{"hello.wasm": string(hello), "manifest.json": manifest(hex.EncodeToString(sum[:]))}, format: string(extism.Plain)},
		{name: "wrong hash", files: files{"hello.wasm": string(hello), "manifest.json": manifest("------")}, err: "has the hash"},
		{name: "module by URL", files: files{"m.json": `{"wasm":[{"url":"https://x.test/a.wasm"}]}`}, err: "download it"},
		{name: "module outside", files: files{"m.json": `{"wasm":[{"path":"../a.wasm"}]}`}, err: "no name of a file"},
		{name: "folder outside", files: files{"hello.wasm": string(hello), "m.json": `{"wasm":[{"path":"hello.wasm"}],"allowed_paths":{"/etc":"/etc"}}`}, err: "outside the workspace"},
		{name: "folder above", files: files{"hello.wasm": string(hello), "m.json": `{"wasm":[{"path":"hello.wasm"}],"allowed_paths":{"../x":"/x"}}`}, err: "out of the workspace"},
		{name: "WASI", files: files{"wc.wasm": command}, format: foreign.Program},
		{name: "a script", files: files{"plugin.wasm": command + script}, format: foreign.Script},
		{name: "no module", files: files{"README.md": "hi", "x.json": `{"a":1}`}},
		{name: "elf/1 is not foreign", files: files{"plugin.wasm": "\x00asm\x01\x00\x00\x00"}},
		{name: "no module at all", files: files{"plugin.wasm": "hello"}, err: "wasm"},
		{name: "two modules", files: files{"a.wasm": command, "b.wasm": command}, err: "name one"},
		{name: "one of two", files: files{"a.wasm": command, "b.wasm": command}, file: "b.wasm", format: foreign.Program},
		{name: "hyper-mcp v2 configuration", files: files{"hello.wasm": string(hello), "config.json": `{"plugins":{"demo":{"url":"file://hello.wasm","runtime_config":{"allowed_hosts":["api.example.org"],"allowed_secrets":[{"service":"s","user":"u"}],"memory_limit":"32Mi"}}}}`}, format: string(extism.Plain)},
		{name: "a component", files: files{"c.wasm": "\x00asm\x0d\x00\x01\x00"}, err: "component"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fstest.MapFS{}
			for name, text := range c.files {
				dir[name] = &fstest.MapFile{Data: []byte(text)}
			}
			f, err := foreign.Find(dir, c.file, nil)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil || (f == nil) != (c.format == "") || f != nil && f.Format != c.format {
				t.Fatalf("%+v %v, want %q", f, err, c.format)
			}
			if f == nil {
				return
			}
			if err := abi.CheckName(f.Package.Manifest.Name); err != nil || f.Package.Digest == "" || f.Package.Format == nil {
				t.Errorf("package %+v: %v", f.Package, err)
			}
			if _, err := policy.FromNeeds(f.Package.Manifest.Needs); err != nil {
				t.Error(err)
			}
		})
	}
	f, err := foreign.Find(fstest.MapFS{"hello.wasm": {Data: hello}, "m.json": {Data: []byte(manifest(""))}}, "m.json", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := f.Package.Manifest
	var got []string
	for _, n := range m.Needs {
		got = append(got, policy.Grant{Cap: n.Cap, Scope: n.Scope}.String())
	}
	for _, want := range []string{"https://api.example.org ", "https://*.github.com ", "public ", "/ws/data/**", "fs.write"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("no %q among the needs %q", want, got)
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "fs.write /ws/docs") {
		t.Error("a read-only folder may be written")
	}
	if m.Limits.Memory != 100<<16 || m.Limits.Time != 1500*time.Millisecond {
		t.Errorf("limits %+v", m.Limits)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &sandbox.Loader{Dir: t.TempDir(), Compiler: self}
	p, err := l.Load(t.Context(), f.Package)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close(context.Background())
	if r, err := p.Tools()[0].Call(t.Context(), host.Call{Args: json.RawMessage(`{}`)}); err != nil || r.Text() != "Hello, world!" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestPluginName(t *testing.T) {
	for in, want := range map[string]string{"Hello World.wasm": "hello-world", "a/b/c_d.wasm": "c-d", "9.wasm": "p-9", "": "p",
		"con.wasm": "plugin", strings.Repeat("x", 99): strings.Repeat("x", 64)} {
		if got := foreign.PluginName(in); got != want || abi.CheckName(got) != nil {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
