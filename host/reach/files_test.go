package reach

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elfhost/elfhost/abi"
	"github.com/elfhost/elfhost/host/policy"
)

func TestVirtual(t *testing.T) {
	w := newWorld(t)
	root := newWorld(t, Mount{Name: "/host", Dir: "/"})
	abs := filepath.ToSlash
	for _, c := range []struct {
		w          world
		cwd, p     string
		want, back string
	}{
		{w, "", "a.txt", "/ws/a.txt", "a.txt"},
		{w, "", "", "/ws", "."},
		{w, "/ws/sub", "./b.txt", "/ws/sub/b.txt", "b.txt"},
		{w, "", w.host("sub/b.txt"), "/ws/sub/b.txt", "sub/b.txt"},
		{w, "", w.dir, "/ws", "."},
		{w, "", "FILE://localhost" + abs(w.host("a%20b")), "/ws/a b", "a b"},
		{w, "/ws/sub", "/ws/a.txt", "/ws/a.txt", w.host("a.txt")},
		{root, "", "/etc/hosts", "/host/etc/hosts", "/etc/hosts"},
		{root, "", "../canary", "/host" + abs(root.canary), root.canary},
		{root, "", root.host("a.txt"), "/ws/a.txt", "a.txt"},
		{root, "", "/host/etc", "/host/etc", "/etc"},
	} {
		got, err := c.w.Virtual(c.cwd, c.p)
		if err != nil || got != c.want {
			t.Errorf("%q in %q: %q, %v; want %q", c.p, c.cwd, got, err, c.want)
		}
		if back := c.w.Display(c.cwd, got); back != c.back {
			t.Errorf("%q shows as %q, want %q", got, back, c.back)
		}
	}
	for _, bad := range []string{"file://other/x", "file:relative", "file:///x?q", "file://%zz"} {
		if got, err := w.Virtual("", bad); err == nil {
			t.Errorf("%s became %s", bad, got)
		}
	}
}

func TestHiddenMount(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "clip.txt"), "whole")
	w := newWorld(t, Mount{Name: "/clipped", Dir: dir, Hidden: true})
	all := give(t, "fs.read /**", "fs.write /**")
	if _, err := read(w, all, "/clipped/clip.txt"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("seen: %v", err)
	}
	list, err := w.ReadDir(bg, all, "/")
	if err != nil || len(list) != 1 || list[0].Name() != "ws" {
		t.Errorf("listed: %v, %v", list, err)
	}
	reader := w.Reveal()
	if got, err := reader.ReadFile(bg, give(t, "fs.read /ws/**"), "/clipped/clip.txt", 0); err != nil || string(got) != "whole" {
		t.Errorf("%q, %v", got, err)
	}
	if name, err := reader.Virtual("", filepath.Join(dir, "clip.txt")); err != nil || name != "/clipped/clip.txt" {
		t.Errorf("%q, %v", name, err)
	}
	if _, err := reader.WriteFile(bg, all, "/clipped/x", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, denied) {
		t.Errorf("written: %v", err)
	}
}

func TestReadOnlyMount(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "f"), "text")
	w := newWorld(t, Mount{Name: "/docs", Dir: dir, ReadOnly: true})
	r := give(t, "fs.read /docs/**", "fs.write /docs/**")
	if _, err := w.Open(bg, r, "/docs/f", os.O_WRONLY, 0); !errors.Is(err, denied) {
		t.Error(err)
	}
	if err := w.Remove(bg, r, "/docs/f"); !errors.Is(err, denied) {
		t.Error(err)
	}
	if got, err := read(w, r, "/docs/f"); err != nil || got != "text" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFileMethods(t *testing.T) {
	w := newWorld(t)
	f, err := w.Open(bg, readWrite(t), "/ws/n.txt", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Write([]byte("hello"))
	f.WriteAt([]byte("J"), 0)
	if n, err := f.Seek(1, io.SeekStart); n != 1 || err != nil {
		t.Error(n, err)
	}
	if got, _ := io.ReadAll(f); string(got) != "ello" {
		t.Errorf("%q", got)
	}
	if err := f.Truncate(2); err != nil {
		t.Error(err)
	}
	b := make([]byte, 9)
	if n, err := f.ReadAt(b, 0); string(b[:n]) != "Je" || err != io.EOF {
		t.Errorf("%q %v", b[:n], err)
	}
	info, err := f.Stat()
	if err != nil || info.Name() != "n.txt" || info.Size() != 2 {
		t.Error(info, err)
	}
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
	f.Close()
	if _, err := f.Read(b); !errors.Is(err, fs.ErrClosed) || strings.Contains(err.Error(), w.dir) {
		t.Error(err)
	}
	if _, err := w.Open(bg, readWrite(t), "/ws/n.txt", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if _, err := w.Open(bg, readWrite(t), "/ws/none", os.O_RDONLY, 0); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), w.dir) {
		t.Error(err)
	}
}

func TestListing(t *testing.T) {
	w := newWorld(t)
	link(t, "a.txt", w.host("l"))
	list, err := w.ReadDir(bg, readWrite(t), "/ws")
	var got []string
	for _, e := range list {
		info, err := e.Info()
		if err != nil || info.Name() != e.Name() || info.Mode().Type() != e.Type() {
			t.Error(e, info, err)
		}
		got = append(got, fs.FormatDirEntry(e))
	}
	if want := []string{"- a.txt", "L l", "d sub/"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	f, err := w.Open(bg, readWrite(t), "/ws", os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	n := 0
	for {
		part, err := f.ReadDir(1)
		n += len(part)
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Error(n)
	}
	if target, err := w.ReadLink(bg, readWrite(t), "/ws/l"); target != "a.txt" || err != nil {
		t.Error(target, err)
	}
	link(t, w.canary, w.host("abs"))
	if target, err := w.ReadLink(bg, readWrite(t), "/ws/abs"); !errors.Is(err, denied) {
		t.Error(target, err)
	}
}

func TestOnTheWay(t *testing.T) {
	w := newWorld(t)
	put(t, w.host("docs/in/f"), "text")
	link(t, "docs", w.host("way"))
	r := give(t, "fs.read /ws/docs/in/**", "fs.write /ws/way/x")
	r.Note = func(u policy.Use, err error) { t.Errorf("%v was noted: %v", u, err) }
	for _, name := range []string{"/ws", "/ws/docs"} {
		if info, err := w.Stat(bg, r, name); err != nil || !info.IsDir() {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	list, err := w.ReadDir(bg, r, "/")
	if err != nil || len(list) != 1 {
		t.Error(list, err)
	}
	r.Note = nil
	for _, name := range []string{"/ws/a.txt", "/ws/sub", "/ws/way"} {
		if info, err := w.Stat(bg, r, name); !errors.Is(err, denied) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, err := w.ReadDir(bg, r, "/ws"); !errors.Is(err, denied) {
		t.Errorf("listing: %v", err)
	}
}

func TestChanges(t *testing.T) {
	w := newWorld(t)
	r := readWrite(t)
	when := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, step := range []error{
		w.MkdirAll(bg, r, "/ws/x/y/z", 0o755), w.MkdirAll(bg, r, "/ws", 0o755),
		w.Rename(bg, r, "/ws/sub", "/ws/x/y/z/sub"), w.Chtimes(bg, r, "/ws/a.txt", time.Time{}, when),
		w.Mkdir(bg, r, "/ws/e", 0o755), w.Remove(bg, r, "/ws/e"),
	} {
		if step != nil {
			t.Error(step)
		}
	}
	if got, err := read(w, r, "/ws/x/y/z/sub/b.txt"); got != "beta" || err != nil {
		t.Error(got, err)
	}
	if info, err := w.Stat(bg, r, "/ws/a.txt"); err != nil || !info.ModTime().Equal(when) {
		t.Error(info, err)
	}
	link(t, "a.txt", w.host("l"))
	if err := w.Remove(bg, r, "/ws/l/"); err != nil {
		t.Error(err)
	}
	if got, err := read(w, r, "/ws/a.txt"); got != "alpha" || err != nil {
		t.Error("the target of a removed link:", got, err)
	}
	for _, bad := range []error{w.Remove(bg, r, "/ws"), w.Remove(bg, r, "/"), w.Rename(bg, r, "/ws", "/ws/sub"), w.Remove(bg, r, "/ws/x")} {
		if bad == nil {
			t.Error("no error")
		}
	}
}

// A folder that is made later is mounted then, for views that are there already
// as well.
func TestLateMounts(t *testing.T) {
	dir := t.TempDir()
	late := filepath.Join(dir, "skills")
	tree, err := NewTree(Mount{Name: "/ws", Dir: dir}, Mount{Name: "/skills", Dir: late, ReadOnly: true, Late: true}, Mount{Name: "/own", Dir: filepath.Join(dir, "own"), Hidden: true, Late: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	view := tree.Reveal()
	if _, err := NewTree(Mount{Name: "/gone", Dir: late}); err == nil {
		t.Error("a mount that is not late needs its folder")
	}
	grants, err := policy.New("t", policy.Grant{Cap: abi.FSRead, Scope: []string{"/ws/**", "/skills/**"}}, policy.Grant{Cap: abi.FSWrite, Scope: []string{"/ws/**", "/skills/**"}})
	if err != nil {
		t.Fatal(err)
	}
	r := policy.Rights{Grants: grants}
	names := func() (out []string) {
		list, err := tree.ReadDir(bg, r, "/")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.Name())
		}
		return out
	}
	if _, err := tree.ReadFile(bg, r, "/skills/a.md", 0); !errors.Is(err, fs.ErrNotExist) || !slices.Equal(names(), []string{"ws"}) {
		t.Errorf("before: %v, %q", err, names())
	}
	if n := len(tree.Mounts()); n != 2 {
		t.Errorf("%d mounts are declared", n)
	}
	for _, name := range []string{late, filepath.Join(dir, "own")} {
		if err := errors.Join(os.Mkdir(name, 0o755), os.WriteFile(filepath.Join(name, "a.md"), []byte("how to"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tr := range []*Tree{view, tree} {
		if b, err := tr.ReadFile(bg, r, "/skills/a.md", 0); err != nil || string(b) != "how to" {
			t.Errorf("after: %q, %v", b, err)
		}
	}
	if _, err := tree.WriteFile(bg, r, "/skills/a.md", strings.NewReader("x"), WriteOptions{}); !errors.Is(err, denied) {
		t.Errorf("writing: %v", err)
	}
	if !slices.Equal(names(), []string{"skills", "ws"}) {
		t.Errorf("the root has %q", names())
	}
	if _, err := tree.ReadFile(bg, r, "/own/a.md", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is hidden: %v", err)
	}
	if b, err := view.ReadFile(bg, r, "/own/a.md", 0); err != nil || string(b) != "how to" {
		t.Errorf("what is revealed: %q, %v", b, err)
	}
}
