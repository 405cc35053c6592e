package files

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// bench is a workspace with the tools of both dialects over it.
type bench struct {
	t     testing.TB
	dir   string
	state *Memory
	tools map[string]host.Tool
	tree  *reach.Tree
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	b := &bench{t: t, dir: dir, state: new(Memory), tools: make(map[string]host.Tool), tree: tree}
	for _, acp := range []bool{false, true} {
		for _, tool := range Tools(Options{Tree: tree, ACP: acp, State: b.state}) {
			b.tools[tool.Spec().Name] = tool
		}
	}
	return b
}

func rights(t testing.TB, scopes ...string) policy.Rights {
	t.Helper()
	if len(scopes) == 0 {
		scopes = []string{"/ws/**"}
	}
	g, err := policy.New("test", policy.Grant{Cap: abi.FSRead, Scope: scopes}, policy.Grant{Cap: abi.FSWrite, Scope: scopes})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: g}
}

type args = map[string]any

// call runs a tool. A Go error becomes what Invoke would make of it.
func (b *bench) call(name string, a args) abi.Result {
	b.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	res, err := b.tools[name].Call(context.Background(), host.Call{Tool: name, Args: raw, Rights: rights(b.t)})
	if err != nil {
		return abi.Errorf("%s", err)
	}
	return res
}

// ok is call for what must succeed.
func (b *bench) ok(name string, a args) string {
	b.t.Helper()
	res := b.call(name, a)
	if res.IsError {
		b.t.Fatalf("%s %v failed: %s", name, a, res.Text())
	}
	return res.Text()
}

// fails is call for what must be refused, with each of the words in the answer.
func (b *bench) fails(name string, a args, words ...string) string {
	b.t.Helper()
	res := b.call(name, a)
	if !res.IsError {
		b.t.Fatalf("%s %v succeeded: %s", name, a, res.Text())
	}
	wants(b.t, res.Text(), words...)
	return res.Text()
}

func wants(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("answer lacks %q:\n%s", w, text[max(0, len(text)-800):])
		}
	}
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	full := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// holds checks a file's bytes.
func (b *bench) holds(name, want string) {
	b.t.Helper()
	if got := b.get(name); got != want {
		b.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}
