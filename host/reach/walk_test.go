package reach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestWalkOrderAndState(t *testing.T) {
	w := newWorld(t)
	put(t, w.host("sub/deep/c.txt"), "gamma")
	put(t, w.host("skip/no.txt"), "no")
	var seen []string
	walk := Walk{
		Workers: 1,
		Folder: func(f *Folder) error {
			f.State = f.Depth * 10
			if f.Parent != nil && f.Parent.State != (f.Depth-1)*10 {
				t.Errorf("%s: the parent's state is %v", f.Name, f.Parent.State)
			}
			f.Entries = slices.DeleteFunc(f.Entries, func(e Entry) bool { return e.Name == "skip" })
			return nil
		},
		File: func(f *Folder, e Entry) error {
			info, err := f.Info(e.Name)
			if err != nil {
				return err
			}
			data, more, err := f.ReadFile(e.Name, nil, 3)
			seen = append(seen, fmt.Sprintf("%s/%s %s %v %d %v", f.Name, e.Name, data, more, info.Size(), f.State))
			return err
		},
	}
	if err := w.Walk(bg, readWrite(t), "/ws", walk); err != nil {
		t.Fatal(err)
	}
	want := []string{"/ws/a.txt alp true 5 0", "/ws/sub/b.txt bet true 4 10", "/ws/sub/deep/c.txt gam true 5 20"}
	if !slices.Equal(seen, want) {
		t.Errorf("%q", seen)
	}
	seen = nil
	if err := w.Walk(bg, readWrite(t), "/ws/sub/b.txt", walk); err != nil || len(seen) != 1 {
		t.Errorf("of a file: %q, %v", seen, err)
	}
}

func TestWalkParallel(t *testing.T) {
	w := newWorld(t)
	for d := range 20 {
		for f := range 100 {
			put(t, w.host(fmt.Sprintf("d%d/e%d/f%d", d, f%3, f)), "x")
		}
	}
	var files, folders atomic.Int64
	walk := Walk{
		Workers: 8,
		Folder:  func(*Folder) error { folders.Add(1); return nil },
		File: func(f *Folder, e Entry) error {
			files.Add(1)
			_, _, err := f.ReadFile(e.Name, nil, 0)
			return err
		},
	}
	if err := w.Walk(bg, readWrite(t), "/ws", walk); err != nil || files.Load() != 2002 || folders.Load() != 82 {
		t.Errorf("%d files, %d folders, %v", files.Load(), folders.Load(), err)
	}
	open := descriptors()
	for name, end := range map[string]error{"error": errors.New("enough"), "skip all": fs.SkipAll} {
		walk.File = func(*Folder, Entry) error { return end }
		err := w.Walk(bg, readWrite(t), "/ws", walk)
		if end == fs.SkipAll && err != nil || end != fs.SkipAll && err != end {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(bg)
	walk.File = func(*Folder, Entry) error { cancel(); return nil }
	if err := w.Walk(ctx, readWrite(t), "/ws", walk); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if now := descriptors(); now > open {
		t.Errorf("%d descriptors, were %d", now, open)
	}
}

func descriptors() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

func TestWalkRights(t *testing.T) {
	w := newWorld(t)
	put(t, w.host("private/key"), secretText)
	var mu sync.Mutex
	var skipped, seen []string
	err := w.Walk(bg, give(t, "fs.read /ws", "fs.read /ws/a.txt", "fs.read /ws/sub/**"), "/ws", Walk{
		File:    func(f *Folder, e Entry) error { mu.Lock(); defer mu.Unlock(); seen = append(seen, e.Name); return nil },
		Skipped: func(name string, err error) { mu.Lock(); defer mu.Unlock(); skipped = append(skipped, name) },
	})
	slices.Sort(seen)
	if err != nil || !slices.Equal(seen, []string{"a.txt", "b.txt"}) || !slices.Equal(skipped, []string{"/ws/private"}) {
		t.Errorf("%v, skipped %v, %v", seen, skipped, err)
	}
	if err := w.Walk(bg, give(t, "fs.read /ws/sub/**"), "/ws", Walk{}); !errors.Is(err, denied) {
		t.Error(err)
	}
}

// BenchmarkWalk compares reading every file of a tree with the plain loop that
// checks nothing.
func BenchmarkWalk(b *testing.B) {
	dir := b.TempDir()
	for d := range 50 {
		for f := range 100 {
			put(b, filepath.Join(dir, fmt.Sprintf("d%d/e%d/f%d.go", d/10, d, f)), "package x\n\nfunc f() {}\n")
		}
	}
	tree, err := NewTree(Mount{Name: "/ws", Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	defer tree.Close()
	r := readWrite(b)
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	for _, workers := range []int{1, 0} {
		b.Run(fmt.Sprintf("tree/workers=%d", workers), func(b *testing.B) {
			for b.Loop() {
				err := tree.Walk(bg, r, "/ws", Walk{Workers: workers, File: func(f *Folder, e Entry) error {
					buf := buffers.Get().(*[]byte)
					data, _, err := f.ReadFile(e.Name, *buf, 1<<20)
					*buf = data
					buffers.Put(buf)
					return err
				}})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("filepath.WalkDir", func(b *testing.B) {
		for b.Loop() {
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					_, err = os.ReadFile(p)
				}
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
