package reach

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ws")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk can be mounted by root only: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	put(t, filepath.Join(dir, "f"), "old")
	tree, err := NewTree(Mount{Name: "/ws", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	_, err = tree.WriteFile(bg, readWrite(t), "/ws/f", bytes.NewReader(make([]byte, 2<<20)), WriteOptions{})
	if !errors.Is(err, unix.ENOSPC) {
		t.Error(err)
	}
	list, _ := os.ReadDir(dir)
	if got, _ := os.ReadFile(filepath.Join(dir, "f")); string(got) != "old" || len(list) != 1 {
		t.Errorf("%q, %v", got, list)
	}
}

func TestOwnerIsKept(t *testing.T) {
	w := newWorld(t)
	if err := os.Chown(w.host("a.txt"), 65534, 65534); err != nil {
		t.Skipf("owners can be given by root only: %v", err)
	}
	info, err := w.WriteFile(bg, readWrite(t), "/ws/a.txt", bytes.NewReader([]byte("x")), WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(w.host(info.Name()), &st); err != nil || st.Uid != 65534 || st.Gid != 65534 {
		t.Errorf("%d:%d, %v", st.Uid, st.Gid, err)
	}
}

// TestWithoutOpenat2 runs the path that sandboxes without openat2 take.
func TestWithoutOpenat2(t *testing.T) {
	w := newWorld(t)
	w.mounts.list()[0].kernel.Store(true)
	link(t, "../canary", w.host("out"))
	link(t, "sub", w.host("in"))
	r := readWrite(t)
	if got, err := read(w, r, "/ws/in/b.txt"); got != "beta" || err != nil {
		t.Error(got, err)
	}
	if _, err := read(w, r, "/ws/out"); !errors.Is(err, denied) {
		t.Error(err)
	}
	n := 0
	err := w.Walk(bg, r, "/ws", Walk{Workers: 1, File: func(f *Folder, e Entry) error { n++; return nil }})
	if n != 4 || err != nil {
		t.Error(n, err)
	}
	if _, err := w.WriteFile(bg, r, "/ws/in/c", bytes.NewReader([]byte("x")), WriteOptions{}); err != nil {
		t.Error(err)
	}
}
