package javascript_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/foreign/internal/plugtest"
	"github.com/elfhost/elfhost/host/foreign/javascript"
	"github.com/elfhost/elfhost/host/reach"
	"github.com/elfhost/elfhost/host/sandbox"
	"github.com/elfhost/elfhost/host/sandbox/compile"
	"github.com/elfhost/elfhost/internal/kit/quickjs"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == compile.Verb {
		os.Exit(compile.Child(os.Args[2:], os.Stdin, os.Stderr))
	}
	os.Exit(m.Run())
}

// plugin is a script in the sandbox.
type plugin struct {
	*sandbox.Plugin
	t   testing.TB
	dir string // is /ws
}

func need(caps ...abi.Capability) []abi.Need {
	var out []abi.Need
	scope := map[abi.Capability]string{
		abi.FSRead: "/ws/**", abi.FSWrite: "/ws/**", abi.NetHTTP: "https://api.example.org", abi.KV: "1MiB",
		abi.Env: "LANG", abi.Secret: "token@api.example.org", abi.ToolCall: "Read",
	}
	for _, c := range caps {
		out = append(out, abi.Need{Cap: c, Scope: []string{scope[c]}, Reason: "a test"})
	}
	return out
}

func open(t testing.TB, l *sandbox.Loader, script string, needs ...abi.Need) (*plugin, error) {
	t.Helper()
	engine, err := quickjs.Engine()
	if errors.Is(err, quickjs.ErrNotBuilt) {
		t.Skip("the JavaScript engine is not here: make javascript")
	}
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := javascript.Pack(engine, []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	if !javascript.Detect(wasm) || javascript.Detect(engine) {
		t.Fatal("the script is not detected, or where there is none")
	}
	f, err := javascript.New(wasm, needs)
	if err != nil {
		t.Fatal(err)
	}
	p := &plugin{t: t, dir: t.TempDir()}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	l.Tree = func(host.Caller) *reach.Tree { return tree }
	l.Dir = filepath.Join(os.TempDir(), "elfhost-javascript-test")
	if l.Compiler, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(wasm)
	p.Plugin, err = l.Load(t.Context(), sandbox.Package{
		Manifest: abi.Manifest{ABI: abi.Version, Name: "script", Needs: needs},
		Digest:   hex.EncodeToString(sum[:]), Source: host.Plugin, Format: f, Wasm: func() ([]byte, error) { return wasm, nil },
	})
	if err == nil {
		t.Cleanup(func() { p.Close(context.Background()) })
	}
	return p, err
}

func load(t testing.TB, l *sandbox.Loader, script string, needs ...abi.Need) *plugin {
	t.Helper()
	p, err := open(t, l, script, needs...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *plugin) try(ctx context.Context, tool, args string, grants ...string) (abi.Result, error) {
	p.t.Helper()
	for _, x := range p.Tools() {
		if x.Spec().Name == tool {
			return x.Call(ctx, host.Call{Tool: tool, Args: json.RawMessage(args), Rights: plugtest.Rights(p.t, grants...)})
		}
	}
	p.t.Fatalf("no tool %q", tool)
	return abi.Result{}, nil
}

func (p *plugin) call(tool, args string, grants ...string) abi.Result {
	p.t.Helper()
	r, err := p.try(p.t.Context(), tool, args, grants...)
	if err != nil {
		p.t.Fatalf("%s: %v", tool, err)
	}
	return r
}

const hello = `elf.tool({
  name: "hello",
  description: "Greets somebody by name.",
  input: { properties: { name: { type: "string" } }, required: ["name"] },
}, ({ name }) => "Hello, " + name + "!");`

func TestHello(t *testing.T) {
	p := load(t, new(sandbox.Loader), hello)
	d := p.Description().Tools[0]
	if d.Name != "hello" || d.Description != "Greets somebody by name." || !strings.Contains(string(d.Input), `"required":["name"]`) {
		t.Errorf("declared: %+v", d)
	}
	for _, name := range []string{"Ada", "Zoë 😀", ""} {
		if r := p.call("hello", fmt.Sprintf(`{"name":%q}`, name)); r.IsError || r.Text() != "Hello, "+name+"!" {
			t.Errorf("%q: %+v", name, r)
		}
	}
}

// TestAnswers is what handlers may return, and what they throw.
func TestAnswers(t *testing.T) {
	p := load(t, new(sandbox.Loader), `
const t = (name, f) => elf.tool({ name, description: name }, f);
t("object", () => ({ n: 1 }));
t("number", () => 42);
t("nothing", () => undefined);
t("blocks", () => ({ content: [{ type: "text", text: "a block" }] }));
t("later", async () => { await null; return "later"; });
t("throws", () => { throw new Error("No such city. Give another."); });
t("rejects", async () => { await null; throw new TypeError("not today"); });
t("string", () => { throw "only a string"; });
t("never", () => new Promise(() => {}));
t("half", () => "\ud800");
t("hostile", () => { throw { toString() { elf.log("again"); throw 1; } }; });
t("function", () => () => 1);
t("stack", () => { const f = () => f() + 1; return f(); });
`)
	for tool, want := range map[string]struct {
		text  string
		error bool
	}{
		"object": {`{"n":1}`, false}, "number": {"42", false}, "nothing": {"", false}, "blocks": {"a block", false}, "later": {"later", false},
		"throws": {"No such city. Give another.", true}, "rejects": {"not today", true}, "string": {"only a string", true},
		"never": {"never comes", true}, "half": {"\uFFFD", false}, "hostile": {"{}", true}, "function": {"returned a function", true},
	} {
		if r := p.call(tool, "{}"); r.IsError != want.error || !strings.Contains(r.Text(), want.text) || want.text == "" && r.Text() != "" {
			t.Errorf("%s: %+v", tool, r)
		}
	}
	if r := p.call("object", "{}"); string(r.Structured) != `{"n":1}` {
		t.Errorf("structured: %s", r.Structured)
	}
	// Recursion ends in an error of the script or at the limit, and the next call is well.
	if r, err := p.try(t.Context(), "stack", "{}"); err == nil && !r.IsError {
		t.Errorf("endless recursion: %+v", r)
	}
	if r := p.call("number", "{}"); r.Text() != "42" {
		t.Errorf("afterwards: %+v", r)
	}
}

// TestEveryCallIsTheFirst: what a script keeps is gone, what it draws is new,
// and what it made at install is there.
func TestEveryCallIsTheFirst(t *testing.T) {
	p := load(t, new(sandbox.Loader), `
let n = 0;
const table = Array.from({ length: 1000 }, (_, i) => i * i);
elf.tool({ name: "count", description: "d" }, () => String(++n) + table[31]);
elf.tool({ name: "draw", description: "d" }, () => [Math.random(), crypto.randomUUID()].join(" "));
elf.tool({ name: "now", description: "d" }, () => Date.now());
`)
	seen := map[string]bool{}
	for range 5 {
		if r := p.call("count", "{}"); r.Text() != "1961" {
			t.Errorf("a call sees the last one's state: %q", r.Text())
		}
		for _, s := range strings.Fields(p.call("draw", "{}").Text()) {
			if seen[s] {
				t.Errorf("two calls drew %s", s)
			}
			seen[s] = true
		}
	}
	var ms int64
	if err := json.Unmarshal([]byte(p.call("now", "{}").Text()), &ms); err != nil || time.Since(time.UnixMilli(ms)).Abs() > time.Minute {
		t.Errorf("the clock says %v, %v", time.UnixMilli(ms), err)
	}
}

const reaches = `
const t = (name, f) => elf.tool({ name, description: name, input: { additionalProperties: true } }, f);
t("read", ({ path }) => elf.read(path));
t("write", ({ path, text }) => { elf.write(path, text); return "written"; });
t("list", ({ path }) => elf.list(path).map((e) => e.name + (e.dir ? "/" : "")).join(" "));
t("get", async ({ url }) => { const r = await fetch(url, { headers: { "X-A": "b" } }); return r.status + " " + r.headers.get("content-type") + " " + (await r.text()); });
t("keep", ({ key, value }) => { elf.kv.set(key, value); return elf.kv.keys().join() + "=" + elf.kv.get(key) + (elf.kv.get("other") === undefined); });
t("code", ({ path }) => { try { elf.read(path); } catch (e) { return e.code + " " + (e instanceof elf.Error); } });
t("raw", () => { const f = new Uint8Array([1, 2, 255]); elf.write("/ws/raw", f); return [...elf.readBytes("/ws/raw")].join(); });
t("utf8", () => { const b = new TextEncoder().encode("ä😀"); return b.length + new TextDecoder().decode(b.subarray(0, 2)); });
`

func TestReaches(t *testing.T) {
	l := &sandbox.Loader{HTTP: plugtest.Web(t, "api.example.org", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprintf(w, "%s %s", r.URL.Path, r.Header.Get("X-A"))
	}), KV: &reach.KV{Dir: t.TempDir()}}
	p := load(t, l, reaches, need(abi.FSRead, abi.FSWrite, abi.NetHTTP, abi.KV)...)
	if err := os.WriteFile(filepath.Join(p.dir, "a.txt"), []byte("from the workspace"), 0o600); err != nil {
		t.Fatal(err)
	}
	files := []string{"fs.read /ws/**", "fs.write /ws/**"}
	for _, c := range []struct {
		tool, args, want string
		grants           []string
	}{
		{"read", `{"path":"/ws/a.txt"}`, "from the workspace", files},
		{"write", `{"path":"/ws/sub/b.txt","text":"b"}`, "written", files},
		{"list", `{"path":"/ws"}`, "a.txt sub/", files},
		{"code", `{"path":"/ws/none"}`, "not found true", files},
		{"code", `{"path":"/etc/passwd"}`, "not found true", files},
		{"raw", `{}`, "1,2,255", files},
		{"utf8", `{}`, "6ä", nil},
		{"get", `{"url":"https://api.example.org/x"}`, "200 text/plain /x b", []string{"net.http https://api.example.org"}},
		{"keep", `{"key":"k","value":"v"}`, "k=vtrue", []string{"kv 1MiB"}},
	} {
		if r := p.call(c.tool, c.args, c.grants...); r.IsError || r.Text() != c.want {
			t.Errorf("%s %s: %+v", c.tool, c.args, r)
		}
		if len(c.grants) == 0 || c.tool == "code" {
			continue
		}
		if r := p.call(c.tool, c.args); !r.IsError { // nobody granted it
			t.Errorf("%s without a grant: %+v", c.tool, r)
		}
	}
	if b, err := os.ReadFile(filepath.Join(p.dir, "sub/b.txt")); err != nil || string(b) != "b" {
		t.Errorf("written: %q, %v", b, err)
	}
}

// TestNeedsAreTheCeiling: what elf.toml does not ask for is not there, whatever
// is granted.
func TestNeedsAreTheCeiling(t *testing.T) {
	p := load(t, new(sandbox.Loader), reaches)
	r := p.call("read", `{"path":"/ws/a"}`, "fs.read /ws/**")
	if !r.IsError || !strings.Contains(r.Text(), "fs.read") || !strings.Contains(r.Text(), "elf.toml") {
		t.Errorf("%+v", r)
	}
}

// TestInstallHasNoRights: the top level of a script runs before anybody's rights.
func TestInstallHasNoRights(t *testing.T) {
	_, err := open(t, new(sandbox.Loader), `elf.read("/ws/a");`+hello, need(abi.FSRead)...)
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("a file was read at install: %v", err)
	}
}

func TestBadScripts(t *testing.T) {
	for script, want := range map[string]string{
		"let = ;":                         "plugin.js:1",
		"\n\nthrow new Error('at start')": "at start",
		"1":                               "declares no tool",
		"await new Promise(() => {})":     "never comes",
		"import './other.js'":             "other.js",
		"elf.tool({})":                    "elf.tool takes",
		hello + hello:                     "two tools",
		"__elf = null; " + hello:          "__elf",
		"for (;;) ;":                      "time",
		"elf.tool({name:'a b',description:''},()=>1)": "a b",
	} {
		start := time.Now()
		_, err := open(t, &sandbox.Loader{Ceiling: abi.Limits{Time: 3 * time.Second}}, script)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something with %q", script, err, want)
		}
		if d := time.Since(start); d > 3*time.Minute {
			t.Errorf("%q took %v", script, d)
		}
	}
}

// TestHostile: a call that does not end, that eats memory, that tampers.
func TestHostile(t *testing.T) {
	p := load(t, &sandbox.Loader{Ceiling: abi.Limits{Time: 2 * time.Second, Memory: 16 << 20}}, `
const t = (name, f) => elf.tool({ name, description: name }, f);
t("spin", () => { for (;;); });
t("spinLater", async () => { for (;;) await null; });
t("eat", () => { const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1)); });
t("long", () => "x".repeat(4 << 20));
t("tamper", () => { JSON.parse = () => { throw 1 }; Array.prototype.map = null; String.prototype.toString = null; return "fine"; });
t("deep", () => { const o = { toString() { elf.log({ toString: () => o + "" }); return "x"; } }; throw o; });
t("fine", () => "fine");
`)
	// On a busy machine not every call comes to its end in its time.
	fine := func(tool, after string) {
		t.Helper()
		var r abi.Result
		err := error(abi.ErrDeadline)
		for i := 0; i < 50 && errors.Is(err, abi.ErrDeadline); i++ {
			r, err = p.try(t.Context(), tool, "{}")
		}
		if err != nil || r.Text() != "fine" {
			t.Errorf("%s after %s: %+v, %v", tool, after, r, err)
		}
	}
	for _, tool := range []string{"spin", "spinLater", "eat", "long", "deep"} {
		if r, err := p.try(t.Context(), tool, "{}"); err == nil && !r.IsError {
			t.Errorf("%s: %.80q", tool, r.Text())
		}
		fine("fine", tool)
	}
	fine("tamper", "all that")
	fine("fine", "a script that tampers")
	err := error(abi.ErrDeadline)
	for i := 0; i < 20 && errors.Is(err, abi.ErrDeadline); i++ {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		_, err = p.try(ctx, "spin", "{}")
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestReplay: a call answers the same from its recording, with the world gone.
func TestReplay(t *testing.T) {
	p := load(t, new(sandbox.Loader), reaches+`t("all", ({ path }) => elf.read(path) + Math.random() + Date.now());`, need(abi.FSRead)...)
	name := filepath.Join(p.dir, "a")
	if err := os.WriteFile(name, []byte("was here"), 0o600); err != nil {
		t.Fatal(err)
	}
	var rec sandbox.Recording
	if _, err := p.try(sandbox.Record(t.Context(), &rec), "all", `{"path":"/ws/a"}`, "fs.read /ws/**"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := p.Replay(t.Context(), &rec); err != nil {
		t.Error(err)
	}
}

func TestPackRefuses(t *testing.T) {
	engine, err := quickjs.Engine()
	if err != nil {
		t.Skip("the JavaScript engine is not here: make javascript")
	}
	packed, err := javascript.Pack(engine, []byte(hello))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ engine, script []byte }{
		"a second script": {packed, []byte(hello)}, "no module": {[]byte("x"), []byte(hello)},
		"no text": {engine, []byte{0xff}}, "NUL": {engine, []byte("a\x00b")}, "too long": {engine, make([]byte, javascript.MaxScript+1)},
	} {
		if _, err := javascript.Pack(c.engine, c.script); err == nil {
			t.Errorf("%s is packed", name)
		}
	}
}

func FuzzScript(f *testing.F) {
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x11\x0eelf:javascript1;"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, wasm []byte) {
		script, ok, err := javascript.Script(wasm)
		if len(script) > len(wasm) || err != nil && ok {
			t.Errorf("%d bytes of script in %d, %v, %v", len(script), len(wasm), ok, err)
		}
	})
}
