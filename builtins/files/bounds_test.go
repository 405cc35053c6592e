package files

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elfhost/elfhost/host/reach"
)

// The rows of the file tree's attacks, as a model would try them: through the
// tools, with every right to the workspace.
func TestFSRowsThroughTools(t *testing.T) {
	b := newBench(t)
	top := filepath.Dir(b.dir)
	canary := filepath.Join(top, "canary")
	if err := os.WriteFile(canary, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	os.MkdirAll(top+"/ws-evil", 0o755)
	os.WriteFile(top+"/ws-evil/f", []byte("secret"), 0o644)
	b.put("sub/in", "x")
	for name, target := range map[string]string{"l": "../canary", "d": "../", "abs": canary, "out": "../ws-evil"} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Skip(err)
		}
	}
	for row, path := range map[string]string{
		"FS-01": "../canary", "FS-02": "sub/../../canary", "FS-03": "/etc/passwd", "FS-04": "../ws-evil/f", "FS-04 absolute": top + "/ws-evil/f",
		"FS-05": "l", "FS-05 absolute": "abs", "FS-07": "d/canary", "FS-08": "out/f", "FS-17": "a\x00/../../canary", "uri": "file://" + canary,
		"FS-20": "/proc/self/environ", "other mount": "/host/etc/passwd",
	} {
		for _, tool := range []string{"Read", "ReadFile"} {
			if res := b.call(tool, args{"path": path}); !res.IsError || strings.Contains(res.Text(), "secret") || strings.Contains(res.Text(), "root:") {
				t.Errorf("%s: %s %q gives %s", row, tool, path, res.Text())
			}
		}
		if res := b.call("Write", args{"path": path, "content": "pwned"}); !res.IsError {
			t.Errorf("%s: Write %q gives %s", row, path, res.Text())
		}
	}
	b.fails("Write", args{"path": "d/new", "content": "x"})
	if res := b.call("ListDir", args{"path": "out/"}); !res.IsError {
		t.Errorf("FS-08: ListDir gives %s", res.Text())
	}
	for _, name := range []string{canary, top + "/ws-evil/f"} {
		if text, _ := os.ReadFile(name); string(text) != "secret" {
			t.Errorf("%s holds %q", name, text)
		}
	}
	if left, _ := os.ReadDir(top); len(left) != 3 {
		t.Errorf("%d names beside the workspace, want 3", len(left))
	}
}

func TestFS26FS27ProtectedNames(t *testing.T) {
	b := newBench(t)
	b.put(".git/config", "[core]\n")
	for _, p := range []string{".git/hooks/post-checkout", ".git/config", ".GIT/config", ".elfhost/policy.json", ".mcp.json", "sub/.git/config"} {
		b.fails("Write", args{"path": p, "content": "x"})
		b.fails("WriteFile", args{"path": p, "content": "x"})
	}
	b.ok("Read", args{"path": ".git/config"})
	b.fails("Edit", args{"path": ".git/config", "old_string": "core", "new_string": "x"})
	b.holds(".git/config", "[core]\n")
}

// A path out of the workspace is told as one, whatever its form.
func TestOutsidePathsAreNamed(t *testing.T) {
	b := newBench(t)
	for _, p := range []string{"../x", "a/../../x", "/etc/passwd", "file:///etc/passwd"} {
		b.fails("Read", args{"path": p}, "is outside the workspace", "absolute inside it")
		b.fails("Write", args{"path": p, "content": "x"}, "is outside the workspace")
	}
	b.fails("Read", args{"path": "nothing-like-it.txt"}, "does not exist. Look for it with Glob or ListDir.")
}

func TestFS21SpecialFilesDoNotHang(t *testing.T) {
	b := newBench(t)
	if !mkfifo(filepath.Join(b.dir, "p")) {
		t.Skip("no FIFOs here")
	}
	// An open that waits there would have no end.
	b.fails("Read", args{"path": "p"}, "p is a named pipe. Only regular files and folders are opened here")
	b.fails("ReadFile", args{"path": "p"}, "named pipe")
	b.fails("Write", args{"path": "p", "content": "x"})
	b.fails("Edit", args{"path": "p", "old_string": "a", "new_string": "b"})
	wants(t, b.ok("ListDir", args{"path": "."}), "p (pipe)")
}

// Clipped outputs lie in a mount that reading alone can see.
func TestReadAloneSeesHiddenMounts(t *testing.T) {
	b := newBench(t)
	clips := t.TempDir()
	if err := os.WriteFile(filepath.Join(clips, "out.txt"), []byte("the whole output\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: b.dir}, reach.Mount{Name: "/session", Dir: clips, Hidden: true})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	for _, acp := range []bool{false, true} {
		for _, tool := range Tools(Options{Tree: tree, ACP: acp, State: b.state}) {
			b.tools[tool.Spec().Name] = tool
		}
	}
	for _, p := range []string{"/session/out.txt", filepath.Join(clips, "out.txt")} {
		wants(t, b.ok("Read", args{"path": p}), "the whole output")
		wants(t, b.ok("ReadFile", args{"path": p}), "the whole output")
		b.fails("Edit", args{"path": p, "old_string": "whole", "new_string": "x"})
		b.fails("Write", args{"path": p, "content": "x"})
	}
	b.fails("ListDir", args{"path": "/session"})
	if text := b.ok("ListDir", args{"path": "/"}); strings.Contains(text, "session") {
		t.Errorf("the root shows it: %s", text)
	}
}

func TestTheUnsavedTextOfAnEditorCounts(t *testing.T) {
	b := newBench(t)
	b.put("f.txt", "on disk\n")
	ed := &editor{text: map[string]string{filepath.Join(b.dir, "f.txt"): "unsaved\n"}}
	tree, err := reach.NewTree(reach.Mount{Name: "/ws", Dir: b.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	tree.Editor = ed
	for _, tool := range Tools(Options{Tree: tree}) {
		b.tools[tool.Spec().Name] = tool
	}
	wants(t, b.ok("Read", args{"path": "f.txt"}), "1→unsaved")
	b.ok("Edit", args{"path": "f.txt", "old_string": "unsaved", "new_string": "changed"})
	if got := ed.text[filepath.Join(b.dir, "f.txt")]; got != "changed\n" {
		t.Errorf("the editor holds %q", got)
	}
	ed.text[filepath.Join(b.dir, "f.txt")] = "typed by a person\n"
	b.fails("Edit", args{"path": "f.txt", "old_string": "typed", "new_string": "x"}, "changed")
}

type editor struct{ text map[string]string }

func (e *editor) ReadFile(_ context.Context, path string) ([]byte, error) {
	if t, ok := e.text[path]; ok {
		return []byte(t), nil
	}
	return nil, errors.ErrUnsupported
}

func (e *editor) WriteFile(_ context.Context, path string, data []byte) error {
	e.text[path] = string(data)
	return nil
}
