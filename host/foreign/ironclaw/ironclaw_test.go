package ironclaw_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/foreign/ironclaw"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/reach/secret"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/host/sandbox/wasmbin"
)

var work string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	dir, err := os.MkdirTemp("", "ironclaw-test-")
	if err != nil {
		panic(err)
	}
	work = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var cores sync.Map // name → func() ([]byte, error)

// core builds testdata/<name>, once a run.
func core(t testing.TB, name string) []byte {
	t.Helper()
	once, _ := cores.LoadOrStore(name, sync.OnceValues(func() ([]byte, error) {
		out := filepath.Join(work, name+".wasm")
		cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, "./testdata/"+name)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, b)
		}
		return os.ReadFile(out)
	}))
	b, err := once.(func() ([]byte, error))()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// component wraps a core module as component compilers do, with a small module
// in front of it.
func component(export string, core []byte) []byte {
	b := []byte("\x00asm\x0d\x00\x01\x00")
	section := func(id byte, body []byte) {
		b = append(wasmbin.AppendUint(append(b, id), uint32(len(body))), body...)
	}
	name := func(s string) []byte { return append(wasmbin.AppendUint([]byte{0}, uint32(len(s))), s...) }
	section(0, append([]byte{4}, "note"...))
	section(1, []byte("\x00asm\x01\x00\x00\x00"))
	section(1, core)
	section(10, append(append([]byte{2}, append(name("near:agent/host@0.4.1"), 5, 0)...), append(name("wasi:io/error@0.2.0"), 5, 1)...))
	section(11, append(append([]byte{1}, name(export)...), 5, 2, 0))
	return b
}

type kit struct {
	sandbox.Loader
	plugin *sandbox.Plugin
	logs   []sandbox.LogLine
	mu     sync.Mutex
}

func (k *kit) load(t testing.TB, wasm []byte, m *ironclaw.Manifest, limits abi.Limits) *kit {
	t.Helper()
	tool, err := ironclaw.Open(wasm)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ironclaw.New(tool, m)
	if err != nil {
		t.Fatal(err)
	}
	manifest := abi.Manifest{ABI: abi.Version, Name: "tool", Limits: limits}
	if m != nil {
		if manifest.Tools, err = m.Declarations(func(string) ([]byte, error) { return []byte(`{"type":"object"}`), nil }); err != nil {
			t.Fatal(err)
		}
	}
	k.Log = func(l sandbox.LogLine) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.logs = append(k.logs, l)
	}
	k.Dir = filepath.Join(work, "cache")
	if k.Compiler, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(tool.Core)
	if k.plugin, err = k.Load(t.Context(), sandbox.Package{Manifest: manifest, Digest: hex.EncodeToString(sum[:]), Source: host.Plugin,
		Format: f, Wasm: func() ([]byte, error) { return tool.Core, nil }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.plugin.Close(context.Background()) })
	return k
}

func (k *kit) do(t testing.TB, tool, what, arg string, grants ...string) (string, error) {
	t.Helper()
	args, err := json.Marshal(map[string]string{"do": what, "arg": arg})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range k.plugin.Tools() {
		if x.Spec().Name == tool {
			r, err := x.Call(t.Context(), host.Call{ID: "c", Tool: tool, Args: args, Rights: plugtest.Rights(t, grants...)})
			if r.IsError {
				return "ERROR " + r.Text(), err
			}
			return r.Text(), err
		}
	}
	t.Fatalf("no tool %q", tool)
	return "", nil
}

const export041 = "near:agent/tool@0.4.1"

func TestTool(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("in the workspace"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	k := &kit{}
	k.Tree = func(host.Caller) *reach.Tree { return tree }
	k.HTTP = &reach.HTTP{Secrets: &secret.Vault{Store: plugtest.Secrets{"token": "value-of-token"}}}
	k.Invoke = func(_ context.Context, c host.Call) abi.Result { return abi.Text(c.Tool + string(c.Args)) }
	k.load(t, component(export041, core(t, "tool")), nil, abi.Limits{Time: 5 * time.Minute})
	if d := k.plugin.Description().Tools[0]; d.Description != "Does what it is told." || !strings.Contains(string(d.Input), `"do"`) {
		t.Errorf("description %+v", d)
	}
	for _, c := range []struct {
		what, arg, want string
		grants          []string
	}{
		{"context", "", "none", nil},
		{"log", "a line", "true true", nil},
		{"env", "", "0", nil},
		{"read", "a.txt", "in the workspace", []string{"fs.read /ws/**"}},
		{"read", "a.txt", "none", nil},
		{"read", "../a.txt", "none", []string{"fs.read /ws/**"}},
		{"read", "/a.txt", "none", []string{"fs.read /ws/**"}},
		{"secret", "token", "1", []string{"secret token@api.example.org"}},
		{"secret", "token", "0", nil},
		{"invoke", "Read", `0 Read{"a":1}`, []string{"tool.call Read"}},
		{"fail", "", "ERROR operation-failed", nil},
		{"other", "", "ERROR input: unknown", nil},
	} {
		got, err := k.do(t, "execute", c.what, c.arg, c.grants...)
		if err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %q, %v; want %q", c.what, c.arg, got, err, c.want)
		}
	}
	if got, err := k.do(t, "execute", "invoke", "Read"); err != nil || !strings.HasPrefix(got, "1 ") || !strings.Contains(got, "denied") {
		t.Errorf("a tool without a grant: %q %v", got, err)
	}
	if _, err := k.do(t, "execute", "files", ""); err == nil || !strings.Contains(err.Error(), "descriptor.stat") {
		t.Errorf("what is not offered: %v", err)
	}
	short := &kit{}
	short.load(t, component(export041, core(t, "tool")), nil, abi.Limits{Time: 300 * time.Millisecond})
	if _, err := short.do(t, "execute", "spin", ""); !errors.Is(err, abi.ErrDeadline) {
		t.Errorf("a loop: %v", err)
	}
	if len(k.logs) == 0 || k.logs[0].Text != "a line" || k.logs[0].Level != "warn" {
		t.Errorf("logs %+v", k.logs)
	}
}

const extension = `
schema_version = "reborn.extension_manifest.v3"
id = "demo"
version = "1.2.0"
description = "A demonstration."

[runtime]
kind = "wasm"
module = "wasm/demo.wasm"

[[tools]]
id = "demo.fetch"
description = "Fetches."
effects = ["network", "use_secret"]
input_schema_ref = "schemas/fetch.json"

[[tools.credentials]]
handle = "demo_token"
vendor = "demo"
audience = { scheme = "https", host = "api.example.org" }
injection = { type = "header", name = "authorization", prefix = "Bearer " }

[[tools]]
id = "demo.open"
description = "Fetches without a credential."

[[tools]]
id = "demo.hook"
description = "Not for the model."
visibility = "internal"
`

func TestManifest(t *testing.T) {
	m, err := ironclaw.ParseManifest([]byte(extension))
	if err != nil {
		t.Fatal(err)
	}
	needs, err := m.Needs()
	if err != nil || len(needs) != 2 || needs[0].Scope[0] != "https://api.example.org GET,HEAD,POST,PUT,PATCH,DELETE" || needs[1].Scope[0] != "demo_token@api.example.org" {
		t.Errorf("needs %+v, %v", needs, err)
	}
	k := &kit{}
	k.HTTP = plugtest.Web(t, "api.example.org", func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.Host, r.Header.Get("Authorization"), r.Header.Get("X-A"), b)
	})
	k.HTTP.Secrets = &secret.Vault{Store: plugtest.Secrets{"demo_token": "value-of-token"}}
	k.load(t, component(export041, core(t, "tool")), m, abi.Limits{})
	if n := len(k.plugin.Tools()); n != 2 {
		t.Errorf("%d tools", n)
	}
	const net, secret, url = "net.http https://api.example.org GET,POST", "secret demo_token@api.example.org", "https://api.example.org/"
	for _, c := range []struct {
		tool, what, url, want string
		grants                []string
	}{
		{"demo_fetch", "context", "", `{"capability_id":"demo.fetch"}`, nil},
		// The value is scrubbed where it comes back: no tool sees it.
		{"demo_fetch", "fetch", url, "200 POST api.example.org Bearer [secret] b hello", []string{net, secret}},
		{"demo_open", "fetch", url, "200 POST api.example.org  b hello", []string{net, secret}},
		{"demo_fetch", "fetch", url, "ERROR auth-required: http: ", []string{net}},
		{"demo_open", "fetch", url, "ERROR network-denied: http: ", nil},
		{"demo_open", "fetch", "https://other.test/", "ERROR network-denied: http: ", []string{net}},
		{"demo_open", "fetch", "no url", "ERROR input: http: ", []string{net}},
	} {
		got, err := k.do(t, c.tool, c.what, c.url, c.grants...)
		if err != nil || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s %s: %q, %v; want %q", c.tool, c.what, c.url, got, err, c.want)
		}
	}
}

func TestTool03(t *testing.T) {
	k := &kit{}
	k.HTTP = plugtest.Web(t, "api.example.org", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "the body") })
	k.load(t, component("near:agent/tool@0.3.0", core(t, "tool03")), nil, abi.Limits{})
	call := func(grants ...string) (string, bool) {
		r, err := k.plugin.Tools()[0].Call(t.Context(), host.Call{Args: json.RawMessage(`{"a":1}`), Rights: plugtest.Rights(t, grants...)})
		if err != nil {
			t.Fatal(err)
		}
		return r.Text(), r.IsError
	}
	if got, bad := call("net.http https://api.example.org"); bad || got != "the body" {
		t.Errorf("%q %v", got, bad)
	}
	if got, bad := call(); !bad || !strings.Contains(got, "denied") {
		t.Errorf("without a grant: %q %v", got, bad)
	}
	r, err := k.plugin.Tools()[0].Call(t.Context(), host.Call{Args: json.RawMessage(`{}`)})
	if err != nil || r.Text() != "{}" || string(r.Structured) != "{}" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestOtherWorlds(t *testing.T) {
	small := []byte("\x00asm\x01\x00\x00\x00")
	for export, want := range map[string]string{
		"wasi:cli/run@0.2.0":               "wasmtime runs it",
		"wasi:http/incoming-handler@0.2.0": "Spin",
		"acme:thing/api@1.0.0":             "acme:thing/api@1.0.0",
		"near:agent/tool@0.5.0":            "0.5.0",
		export041:                          "none of its 2 core modules",
	} {
		_, err := ironclaw.Open(component(export, small))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", export, err, want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(component(export041, []byte("\x00asm\x01\x00\x00\x00")))
	f.Add(component("wasi:cli/run@0.2.0", nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		tool, err := ironclaw.Open(b)
		if err == nil && len(tool.Core) > len(b) {
			t.Fatal("the core module is larger than the component")
		}
	})
}
