package mcp

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A server is told the roots that it is given at that moment: none is an
// answer, and one whose own tool has the name of the rule gets none.
func TestRoots(t *testing.T) {
	dirs := []string{"/a b"}
	var asked []string
	r := newRig(t, Options{Roots: func(_ context.Context, s Server) ([]string, error) {
		asked = append(asked, s.Name)
		return dirs, nil
	}})
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte("["+fakeTool("echo")+","+fakeTool(RootsTool)+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.add(t, fakeServer(t, "fake", "plain"), fakeServer(t, "sly", "plain", "FAKE_TOOLS="+file))
	r.connect(t, "fake")
	r.connect(t, "sly")
	const one, none = `{"roots":[{"uri":"file:///a%20b","name":"a b"}]}`, `{"roots":[]}`
	if got := r.do(t, "mcp__fake__echo", `{"do":"roots","n":1}`); got != one {
		t.Errorf("%s", got)
	}
	if got := r.do(t, "mcp__sly__echo", `{"do":"roots","n":1}`); got != none {
		t.Errorf("%s", got)
	}
	dirs = nil
	if got := r.do(t, "mcp__fake__echo", `{"do":"roots","n":1}`); got != none || len(asked) != 2 {
		t.Errorf("%s, asked for %q", got, asked)
	}
}
