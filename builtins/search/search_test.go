package search

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host"
	"github.com/elfhost/elfhost/host/policy"
	"github.com/elfhost/elfhost/host/reach"
)

// workspace is a folder with the tools over it.
type workspace struct {
	t     testing.TB
	dir   string
	tree  *reach.Tree
	tools map[string]host.Tool
}

func (w *workspace) room() *room {
	return &room{tree: w.tree, cwd: func() string { return "" }}
}

func newWorkspace(t testing.TB, o Options) *workspace {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return over(t, dir, o)
}

func over(t testing.TB, dir string, o Options) *workspace {
	t.Helper()
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	o.Tree = tree
	w := &workspace{t: t, dir: dir, tree: tree, tools: make(map[string]host.Tool)}
	for _, tool := range Tools(o) {
		w.tools[tool.Spec().Name] = tool
	}
	return w
}

type args = map[string]any

func readRights(t testing.TB) policy.Rights {
	t.Helper()
	g, err := policy.New("test", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**"}})
	if err != nil {
		t.Fatal(err)
	}
	return policy.Rights{Grants: g}
}

func (w *workspace) call(name string, a args) abi.Result {
	w.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := w.tools[name].Call(context.Background(), host.Call{Tool: name, Args: raw, Rights: readRights(w.t)})
	if err != nil {
		return abi.Errorf("%s", err)
	}
	return res
}

func (w *workspace) ok(name string, a args) string {
	w.t.Helper()
	res := w.call(name, a)
	if res.IsError {
		w.t.Fatalf("%s %v failed: %s", name, a, res.Text())
	}
	return res.Text()
}

func (w *workspace) fails(name string, a args, words ...string) {
	w.t.Helper()
	res := w.call(name, a)
	if !res.IsError {
		w.t.Fatalf("%s %v succeeded: %s", name, a, res.Text())
	}
	wants(w.t, res.Text(), words...)
}

func wants(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("answer lacks %q:\n%s", w, text[max(0, len(text)-800):])
		}
	}
}

func lacks(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("answer has %q:\n%s", w, text[max(0, len(text)-800):])
		}
	}
}

func (w *workspace) put(name, content string) {
	w.t.Helper()
	full := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *workspace) link(target, name string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.dir, name)); err != nil {
		w.t.Skip(err)
	}
}

func (w *workspace) age(name string, hours int) {
	w.t.Helper()
	at := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(filepath.Join(w.dir, name), at, at); err != nil {
		w.t.Fatal(err)
	}
}
