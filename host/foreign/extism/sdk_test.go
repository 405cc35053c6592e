package extism_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/extism"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
)

// These are the results that the tests of Extism's Go SDK expect of its
// modules.

func TestSDKPlain(t *testing.T) {
	for _, c := range []struct {
		module, tool, input, want string
		config                    map[string]string
	}{
		{"alloc.wasm", "run_test", "", "", nil},
		{"noop.wasm", "run_test", "", "", nil},
		{"hello.wasm", "run_test", "", "Hello, world!", nil},
		{"println.wasm", "run_test", "quiet", "", nil},
		{"config.wasm", "run_test", "", `{"config": "hello"}`, map[string]string{"thing": "hello"}},
		{"config.wasm", "run_test", "", `{"config": "<unset by host>"}`, nil},
		{"std_command.wasm", "_start", "ben", "hello ben", nil},
		{"hello_haskell.wasm", "testing", "John", "Howdy, John", map[string]string{"greeting": "Howdy"}},
		{"replace.wasm", "run_test", "a test b", "a wasm b", nil},
		{"replace.wasm", "run_test", strings.Repeat(" test ", 5000), strings.Repeat(" wasm ", 5000), nil},
		{"sleep.wasm", "run_test", "", "slept for 0 seconds", map[string]string{"duration": "0"}},
		{"input_offset.wasm", "input_offset_length", "hello world", "\v\x00\x00\x00\x00\x00\x00\x00", nil},
	} {
		t.Run(c.module, func(t *testing.T) {
			t.Parallel()
			k := (&kit{t: t, opt: extism.Options{Config: c.config}}).load(module(t, c.module))
			k.want(c.tool, c.input, c.want)
			k.want(c.tool, c.input, c.want) // the next call finds the same
		})
	}
}

func TestSDKCountVowels(t *testing.T) {
	t.Parallel()
	for _, m := range []struct{ module, tool string }{{"count_vowels.wasm", "count_vowels"}} {
		k := (&kit{t: t}).load(module(t, m.module))
		k.want(m.tool, "hello world", `{"count":3,"total":3,"vowels":"aeiouAEIOU"}`)
		k.want(m.tool, "bbba", `{"count":1,"total":4,"vowels":"aeiouAEIOU"}`) // variables stay for the session
		k.want(m.tool, "", `{"count":0,"total":4,"vowels":"aeiouAEIOU"}`)
	}
	std := (&kit{t: t}).load(module(t, "count_vowels_std.wasm"))
	std.want("_start", "hello world", `{"count": 3, "config": "<unset by host>", "a": "this is var a"}`)
}

func TestSDKFail(t *testing.T) {
	t.Parallel()
	k := (&kit{t: t}).load(module(t, "fail.wasm"))
	if err := k.fails("run_test", "", "Some error message"); err != nil {
		t.Errorf("a plugin's own error is an answer, not %v", err)
	}
}

func TestSDKExit(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"-1": "4294967295", "500": "500", "abc": "code 1 ", "": "code 2 "} {
		o := extism.Options{Config: map[string]string{}}
		if code != "" {
			o.Config["code"] = code
		}
		k := (&kit{t: t, opt: o}).load(module(t, "exit.wasm"))
		k.fails("_start", "", want)
	}
}

func TestSDKHostFunctions(t *testing.T) {
	t.Parallel()
	type types = []api.ValueType
	i64 := api.ValueTypeI64
	text := func(f func(string) string) func(context.Context, *sandbox.Guest, []uint64) {
		return func(_ context.Context, g *sandbox.Guest, s []uint64) {
			in := extism.Read(g, s[0])
			extism.Free(g, s[0])
			s[0] = extism.Write(g, []byte(f(string(in))))
		}
	}
	def := func(module, name string, params types, run func(context.Context, *sandbox.Guest, []uint64)) sandbox.Func {
		return sandbox.Func{Module: module, Name: name, Params: params, Results: types{i64}, Run: run}
	}
	mult := def(extism.UserModule, "mult", types{i64, i64}, func(_ context.Context, _ *sandbox.Guest, s []uint64) { s[0] *= s[1] })
	upper := def("host", "to_upper", types{i64}, text(strings.ToUpper))
	green := def(extism.UserModule, "hostGreenMessage", types{i64}, text(func(s string) string { return "🟢:" + s }))
	purple := def(extism.UserModule, "hostPurpleMessage", types{i64}, text(func(s string) string { return "🟣:" + s }))
	for _, c := range []struct {
		module, tool, input, want string
		funcs                     []sandbox.Func
	}{
		{"host.wasm", "run_test", "", "42 x 2 = 84", []sandbox.Func{mult}},
		{"host_memory.wasm", "run_test", "Frodo", "HELLO FRODO!", []sandbox.Func{upper}},
		{"host_multiple.wasm", "say_green", "John Doe", "🟢:🫱 Hey from say_green John Doe", []sandbox.Func{green, purple}},
		{"host_multiple.wasm", "say_purple", "Jane Doe", "🟣:👋 Hello from say_purple Jane Doe", []sandbox.Func{green, purple}},
	} {
		k := (&kit{t: t, opt: extism.Options{Functions: c.funcs}}).load(module(t, c.module))
		k.want(c.tool, c.input, c.want)
	}
	// A host that has no such function says which.
	k := (&kit{t: t}).load(module(t, "host.wasm"))
	k.fails("run_test", "", "mult")
}

func TestSDKHTTP(t *testing.T) {
	t.Parallel()
	const todo = `{"userId":1,"id":1,"title":"delectus aut autem","completed":false}`
	web := plugtest.Web(t, "jsonplaceholder.typicode.com", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(todo)) })
	load := func(hosts ...string) *kit {
		k := &kit{t: t, opt: extism.Options{Hosts: hosts}}
		k.loader.HTTP = web
		return k.load(module(t, "http.wasm"))
	}
	const grant, denied = "net.http https://jsonplaceholder.typicode.com", "HTTP request to 'https://jsonplaceholder.typicode.com/todos/1' is not allowed"
	k := load("jsonplaceholder.*.com")
	k.want("run_test", "", todo, grant)
	if len(k.last.Hosts) != 1 || !strings.Contains(k.last.Hosts[0], "jsonplaceholder") || k.last.BytesIn == 0 {
		t.Errorf("receipt %+v", k.last)
	}
	if err := k.fails("run_test", "", denied); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("without a grant: %v", err)
	}
	load().fails("run_test", "", denied, grant)
	load("google.*").fails("run_test", "", denied, grant)
}

func TestSDKHTTPHeaders(t *testing.T) {
	t.Parallel()
	k := &kit{t: t, opt: extism.Options{Hosts: []string{"extism.org"}}}
	k.loader.HTTP = plugtest.Web(t, "extism.org", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write([]byte("<p>hi"))
	})
	k.load(module(t, "http_headers.wasm"))
	r, err := k.run("http_get", `{"url":"https://extism.org"}`, "net.http https://extism.org")
	if err != nil || !strings.Contains(r.Text(), `"content-type":"text/html; charset=utf-8"`) {
		t.Errorf("%+v %v", r, err)
	}
}

func TestSDKLog(t *testing.T) {
	t.Parallel()
	k := (&kit{t: t}).load(module(t, "log.wasm"))
	k.want("run_test", "", "")
	got := ""
	for _, l := range k.logs {
		got += l.Level + ":" + l.Text + "\n"
	}
	for _, want := range []string{"info:this is an info log", "warn:this is a warning log", "error:this is an error log"} {
		if !strings.Contains(got, want) {
			t.Errorf("the log has no %q: %s", want, got)
		}
	}
}

func TestSDKTimeout(t *testing.T) {
	t.Parallel()
	o := extism.Options{Config: map[string]string{"duration": "3"}}
	k := (&kit{t: t, opt: o, limits: abi.Limits{Time: 100 * time.Millisecond, HostCalls: extism.HostCalls}}).load(module(t, "sleep.wasm"))
	if err := k.plugin.Warm(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := k.fails("run_test", "", "time"); !errors.Is(err, abi.ErrDeadline) {
		t.Error(err)
	}
	// The SDK's instance is dead then; the next call here has a new one.
	k.fails("run_test", "", "time")

	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := k.call(ctx, "run_test", "{}"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSDKVars(t *testing.T) {
	t.Parallel()
	k := (&kit{t: t}).load(module(t, "var.wasm"))
	if _, err := k.run("run_test", ""); err != nil {
		t.Fatal(err)
	}
	none := int64(0)
	k = (&kit{t: t, opt: extism.Options{MaxVars: &none}}).load(module(t, "var.wasm"))
	k.fails("run_test", "", "disables variables")
}

// workspace mounts a folder with test.txt as /ws.
func workspace(t testing.TB) (string, func(host.Caller) *reach.Tree) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "test.txt"), []byte("hello world!"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return dir, func(host.Caller) *reach.Tree { return tree }
}

func TestSDKFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"fs.wasm", "fs_std.wasm"} {
		k := &kit{t: t, opt: extism.Options{Paths: map[string]string{"/mnt": "/ws"}}}
		_, k.loader.Tree = workspace(t)
		k.load(module(t, name))
		k.want("run_test", "", "hello world!", "fs.read /ws/**", "fs.write /ws/**")
		if !slices.Contains(k.last.Files, "read /ws/test.txt") {
			t.Errorf("%s: receipt %+v", name, k.last)
		}
		k.fails("run_test", "", "")
	}
}

func TestSDKReadOnlyMount(t *testing.T) {
	t.Parallel()
	k := &kit{t: t, opt: extism.Options{Paths: map[string]string{"/mnt": "/ws"}, Config: map[string]string{"path": "/mnt/test.txt"}}}
	dir, tree := workspace(t)
	k.loader.Tree = tree
	k.load(module(t, "read_write.wasm"))
	k.want("try_read", "", "hello world!", "fs.read /ws/**")
	k.fails("try_write", "hello hello!", "Failed to write file", "fs.read /ws/**")
	if b, _ := os.ReadFile(filepath.Join(dir, "test.txt")); !bytes.Equal(b, []byte("hello world!")) {
		t.Errorf("the file holds %q", b)
	}
	k.want("try_write", "hello hello!", "hello world!hello hello!", "fs.read /ws/**", "fs.write /ws/**")
}

func TestSDKObserve(t *testing.T) {
	t.Parallel()
	k := (&kit{t: t, opt: extism.Options{Kind: extism.Plain}}).load(module(t, "nested.c.instr.wasm"))
	k.want("_start", "", "")
	if len(k.logs) == 0 {
		t.Error("it printed nothing")
	}
}
