package reach

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

func (w world) names(t *testing.T, dir string) string {
	t.Helper()
	list, err := os.ReadDir(w.host(dir))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestWriteFile(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	os.Chmod(w.host("a.txt"), 0o640)
	info, err := w.WriteFile(bg, r, "/ws/a.txt", strings.NewReader("new"), WriteOptions{Perm: 0o777, Sync: true})
	if err != nil || info.Size() != 3 || runtime.GOOS != "windows" && info.Mode() != 0o640 {
		t.Errorf("an old file keeps its mode: %v, %v", info, err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/deep/er/f", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no parents: %v", err)
	}
	if info, err := w.WriteFile(bg, r, "/ws/deep/er/f", strings.NewReader("x"), WriteOptions{Parents: true, Perm: 0o755}); err != nil || runtime.GOOS != "windows" && info.Mode()&0o700 != 0o700 {
		t.Errorf("parents: %v, %v", info, err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/a.txt", strings.NewReader("y"), WriteOptions{New: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("New over an old file: %v", err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/b.txt", strings.NewReader("y"), WriteOptions{New: true}); err != nil {
		t.Errorf("New: %v", err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/sub", strings.NewReader("y"), WriteOptions{}); err == nil {
		t.Error("a folder was replaced")
	}
	os.Chmod(w.host("b.txt"), 0o444)
	if _, err := w.WriteFile(bg, r, "/ws/b.txt", strings.NewReader("z"), WriteOptions{}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a read-only file: %v", err)
	}
	if got := w.names(t, "."); got != "a.txt b.txt deep sub" {
		t.Errorf("left behind: %s", got)
	}
}

func TestFB05LinkTarget(t *testing.T) {
	w := newWorld(t)
	link(t, "sub/b.txt", w.host("l"))
	if _, err := w.WriteFile(bg, readWrite(t), "/ws/l", strings.NewReader("new"), WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.Readlink(w.host("l")); got != "sub/b.txt" || err != nil {
		t.Errorf("the link was replaced: %q, %v", got, err)
	}
	if got, _ := os.ReadFile(w.host("sub/b.txt")); string(got) != "new" {
		t.Errorf("the target is %q", got)
	}
	link(t, "sub/made.txt", w.host("dangling"))
	if _, err := w.WriteFile(bg, readWrite(t), "/ws/dangling", strings.NewReader("made"), WriteOptions{}); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(w.host("sub/made.txt")); string(got) != "made" {
		t.Errorf("through a dangling link: %q", got)
	}
}

func TestNothingHalfWritten(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	broken := errors.New("the source broke")
	ctx, cancel := context.WithCancel(bg)
	cancel()
	for name, err := range map[string]error{
		"source": second(w.WriteFile(bg, r, "/ws/a.txt", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), WriteOptions{})),
		"cancel": second(w.WriteFile(ctx, r, "/ws/a.txt", strings.NewReader("half"), WriteOptions{})),
		"before": second(w.WriteFile(bg, r, "/ws/a.txt", strings.NewReader("half"), WriteOptions{Before: func(old fs.FileInfo) error {
			if old == nil || old.Size() != 5 {
				t.Errorf("Before was given %v", old)
			}
			return broken
		}})),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got, _ := os.ReadFile(w.host("a.txt")); string(got) != "alpha" {
		t.Errorf("%q", got)
	}
	if got := w.names(t, "."); got != "a.txt sub" {
		t.Errorf("left behind: %s", got)
	}
}

func second[T any](_ T, err error) error { return err }

func TestWritersDoNotMix(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), 100_000)
			if _, err := w.WriteFile(bg, r, "/ws/shared", strings.NewReader(text), WriteOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	made := 0
	var mu sync.Mutex
	for range 8 {
		group.Go(func() {
			if _, err := w.WriteFile(bg, r, "/ws/once", strings.NewReader("x"), WriteOptions{New: true}); err == nil {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
	}
	group.Wait()
	got, err := os.ReadFile(w.host("shared"))
	if err != nil || len(got) != 100_000 || strings.Trim(string(got), string(got[:1])) != "" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if made != 1 {
		t.Errorf("New succeeded %d times", made)
	}
}

// editor holds one unsaved buffer.
type editor struct {
	path, text string
	wrote      string
}

func (e *editor) ReadFile(_ context.Context, path string) ([]byte, error) {
	if path != e.path {
		return nil, errors.ErrUnsupported
	}
	return []byte(e.text), nil
}

func (e *editor) WriteFile(_ context.Context, path string, data []byte) error {
	if path != e.path {
		return errors.ErrUnsupported
	}
	e.wrote = string(data)
	return nil
}

func TestEditorServesFiles(t *testing.T) {
	w := newWorld(t)
	e := &editor{path: w.host("a.txt"), text: "unsaved"}
	w.Editor = e
	r := readWrite(t)
	if got, err := read(w, r, "/ws/a.txt"); got != "unsaved" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := read(w, r, "/ws/sub/b.txt"); got != "beta" || err != nil {
		t.Errorf("the disk: %q, %v", got, err)
	}
	if _, err := read(w, policy.Rights{}, "/ws/a.txt"); !errors.Is(err, denied) {
		t.Errorf("without a grant: %v", err)
	}
	if _, err := w.ReadFile(bg, r, "/ws/a.txt", 3); !errors.Is(err, abi.ErrTooLarge) {
		t.Error(err)
	}
	for _, name := range []string{"/ws/a.txt", "/ws/sub/b.txt"} {
		if _, err := w.WriteFile(bg, r, name, strings.NewReader("typed"), WriteOptions{}); err != nil {
			t.Error(err)
		}
	}
	disk, _ := os.ReadFile(w.host("a.txt"))
	other, _ := os.ReadFile(w.host("sub/b.txt"))
	if e.wrote != "typed" || string(disk) != "alpha" || string(other) != "typed" {
		t.Errorf("editor %q, disk %q, other %q", e.wrote, disk, other)
	}
}

// A file that only the editor holds is one; an empty answer about a file that is
// nowhere is none.
func TestUnsavedFiles(t *testing.T) {
	w := newWorld(t)
	e := &editor{path: w.host("sub/new.txt"), text: "unsaved"}
	w.Editor = e
	r := readWrite(t)
	if got, err := read(w, r, "/ws/sub/new.txt"); got != "unsaved" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	got, info, err := w.Unsaved(bg, r, "/ws/sub/new.txt")
	if string(got) != "unsaved" || err != nil || info.Size() != 7 || info.Name() != "new.txt" || !info.Mode().IsRegular() {
		t.Errorf("%q, %v, %+v", got, err, info)
	}
	for name, why := range map[string]string{"/ws/a.txt": "the disk has it", "/ws/other.txt": "nobody has it", "/ws/sub": "it is a folder"} {
		if _, _, err := w.Unsaved(bg, r, name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, _, err := w.Unsaved(bg, policy.Rights{}, "/ws/sub/new.txt"); !errors.Is(err, denied) {
		t.Errorf("without a grant: %v", err)
	}
	if _, err := w.Stat(bg, r, "/ws/sub/new.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("on the disk: %v", err)
	}
	var before fs.FileInfo
	o := WriteOptions{Before: func(old fs.FileInfo) error { before = old; return nil }}
	if _, err := w.WriteFile(bg, r, "/ws/sub/new.txt", strings.NewReader("typed"), o); err != nil || e.wrote != "typed" || before == nil || before.Size() != 7 {
		t.Errorf("%v, wrote %q over %v", err, e.wrote, before)
	}
	e.text = ""
	if got, err := read(w, r, "/ws/sub/new.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty answer is a file: %q, %v", got, err)
	}
	w.Editor = nil
	if _, _, err := w.Unsaved(bg, r, "/ws/sub/new.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an editor: %v", err)
	}
}

func FuzzVirtual(f *testing.F) {
	for _, s := range []string{"a.txt", "../canary", "/etc/passwd", "file:///x", "a\x00b", "..notes", "sub/../..", "C:\\x", "/ws/../ws/a", "//ws//a"} {
		f.Add("/ws", s)
	}
	dir := f.TempDir()
	os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o644)
	tree, err := NewTree(Mount{Name: "/ws", Dir: dir})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { tree.Close() })
	f.Fuzz(func(t *testing.T, cwd, p string) {
		name, err := tree.Virtual(cwd, p)
		if err != nil {
			return
		}
		if name != "/" && name != "/ws" && !strings.HasPrefix(name, "/ws/") || strings.Contains(name+"/", "/../") || strings.Contains(name, "\x00") {
			t.Errorf("%q in %q became %q", p, cwd, name)
		}
		back, err := tree.Virtual(cwd, tree.Display(cwd, name))
		if err == nil && back != name {
			t.Errorf("%q shows as %q, which is %q", name, tree.Display(cwd, name), back)
		}
	})
}
